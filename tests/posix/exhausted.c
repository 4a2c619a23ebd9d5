/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * No memory is left when threads wait for locks for the first time: they wait nevertheless. Also
 * for timed waits and condition variables.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "posix.h"

#define THREADS 8
#define ROUNDS 500

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all_here, none_left;
static unsigned long count, written;

static void *wait_without_memory(void *argument)
{
	pthread_barrier_wait(&all_here);
	pthread_barrier_wait(&none_left);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct timespec later = from_now(CLOCK_REALTIME, 600000), past = {.tv_sec = 1};

		EXPECT_OK(i % 2 ? pthread_mutex_lock(&mutex)
				: pthread_mutex_timedlock(&mutex, &later));
		count++;
		sched_yield(); /* so that the others wait */
		EXPECT_OK(pthread_cond_signal(&cond));
		if (i % 100 == 0)
			/* Or the signal of another thread. */
			(void)pthread_cond_timedwait(&cond, &mutex, &past);
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		write_and_read(&rwlock, &written);
	}
	return argument;
}

/* From here on, nothing can be mapped. */
static void exhaust(void)
{
	struct rlimit limit;

	EXPECT(!getrlimit(RLIMIT_AS, &limit), "getrlimit");
	limit.rlim_cur = 1;
	EXPECT(!setrlimit(RLIMIT_AS, &limit), "setrlimit");
}

int main(void)
{
	pthread_t threads[THREADS];

	EXPECT_OK(pthread_barrier_init(&all_here, NULL, THREADS + 1));
	EXPECT_OK(pthread_barrier_init(&none_left, NULL, THREADS + 1));
	for (size_t i = 0; i < THREADS; i++)
		threads[i] = start(wait_without_memory, NULL);
	pthread_barrier_wait(&all_here);
	exhaust();
	pthread_barrier_wait(&none_left);
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
	EXPECT(count == THREADS * ROUNDS && written == count, "%lu and %lu", count, written);
	return 0;
}
