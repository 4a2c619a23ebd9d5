/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process whose waiting is known: four threads hold a mutex for 2 ms each and sleep 2 ms between,
 * in sleep, so that their waiting does not depend on the machine. Each thread measures its own
 * waits. One thread idles on a condition variable, and one is woken from another by work.
 *
 * With the argument `busy`, holders compute instead of sleeping.
 *
 * For each line of input, prints the waiting time and the time of all threads so far, in ns. Ends
 * with the input.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 4, THREADS = WORKERS + 3 };

pthread_mutex_t planted_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static atomic_long waited;
static int holders_compute;

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000l + time.tv_nsec;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

__attribute__((noinline)) void compute(void)
{
	for (long start = now(); now() - start < 2000000;)
		;
}

__attribute__((noinline)) void planted_site(void)
{
	long start = now();

	pthread_mutex_lock(&planted_lock);
	atomic_fetch_add(&waited, now() - start);
	if (holders_compute)
		compute();
	else
		pause_ms(2);
	pthread_mutex_unlock(&planted_lock);
}

static void *worker(void *unused)
{
	for (;;) {
		planted_site();
		pause_ms(2);
		pthread_cond_signal(&work);
	}
	return unused;
}

static void *consumer(void *condition)
{
	pthread_mutex_lock(&queue_lock);
	for (;;)
		pthread_cond_wait(condition, &queue_lock);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	long start = now();

	holders_compute = argc > 1 && !strcmp(argv[1], "busy");

	for (int i = 0; i < WORKERS; i++)
		pthread_create(&thread, NULL, worker, NULL);
	pthread_create(&thread, NULL, consumer, &work);
	pthread_create(&thread, NULL, consumer, &never);
	while (getchar() != EOF) {
		printf("%ld %ld\n", atomic_load(&waited), (now() - start) * THREADS);
		fflush(stdout);
	}
	return 0;
}
