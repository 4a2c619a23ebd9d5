/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * many THREADS LOCKS: pairs of threads, each with a part of the mutexes, go through them in turn:
 * one takes the next mutex before it releases the last one, and leaves it when the other waits for
 * it. For each line of input, prints how many mutexes each pair has taken so far, at least. Ends
 * with the input.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t *locks;
static long threads, count;

/* Of one pair: how many mutexes the first thread has taken, and the second one has asked for. */
static struct steps {
	atomic_long taken;
	atomic_long asked;
} * steps;

static pthread_mutex_t *lock_of(long pair, long step)
{
	long pairs = threads / 2;

	return &locks[pair + step % (count / pairs) * pairs];
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void *first(void *number)
{
	long pair = (long)number;

	pthread_mutex_lock(lock_of(pair, 0));
	for (long step = 0;; step++) {
		atomic_store(&steps[pair].taken, step + 1);
		while (atomic_load(&steps[pair].asked) <= step)
			pause_ms(100);
		pause_ms(100);
		pthread_mutex_lock(lock_of(pair, step + 1));
		pthread_mutex_unlock(lock_of(pair, step));
	}
	return NULL;
}

static void *second(void *number)
{
	long pair = (long)number;

	while (!atomic_load(&steps[pair].taken))
		pause_ms(100);
	for (long step = 0;; step++) {
		atomic_store(&steps[pair].asked, step + 1);
		pthread_mutex_lock(lock_of(pair, step));
		pthread_mutex_unlock(lock_of(pair, step));
	}
	return NULL;
}

static long least_taken(void)
{
	long least = atomic_load(&steps[0].taken);

	for (long pair = 1; pair < threads / 2; pair++)
		if (atomic_load(&steps[pair].taken) < least)
			least = atomic_load(&steps[pair].taken);
	return least;
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
	steps = calloc(threads / 2, sizeof(*steps));
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (long number = 0; number < threads; number++)
		if (pthread_create(&thread, &small, number % 2 ? second : first,
				   (void *)(number / 2)))
			return 3;
	while (getchar() != EOF) {
		printf("%ld\n", least_taken());
		fflush(stdout);
	}
	return 0;
}
