/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * many THREADS LOCKS: threads that hold one of many mutexes in turn while their neighbour waits for
 * it. Prints a line when all run, and ends with its input.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t *locks;
static long threads, count;
static pthread_barrier_t all_run;

/* Two threads each go through the same locks. */
static void *user(void *number)
{
	long pair = (long)number / 2, pairs = threads / 2;

	pthread_barrier_wait(&all_run);
	for (long lock = pair;; lock = (lock + pairs) % count) {
		pthread_mutex_lock(&locks[lock]);
		nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
		pthread_mutex_unlock(&locks[lock]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t thread;

	if (argc != 3)
		return 2;
	threads = atol(argv[1]);
	count = atol(argv[2]);
	locks = calloc(count, sizeof(*locks));
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_barrier_init(&all_run, NULL, threads + 1);
	for (long number = 0; number < threads; number++)
		if (pthread_create(&thread, &small, user, (void *)number))
			return 3;
	pthread_barrier_wait(&all_run);
	puts("running");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
