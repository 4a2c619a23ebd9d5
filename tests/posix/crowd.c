/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Large numbers: one broadcast wakes 1,000 threads; and 20,000 threads in the life of a process,
 * each of which waits for a lock, do not make it grow.
 */
#include <stdio.h>

#include "posix.h"

#define WAITERS 1000
#define THREADS 20000
#define AT_A_TIME 4

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned waiting, generation, count;

static void *wait_twice(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	for (unsigned round = 1; round <= 2; round++) {
		waiting++;
		while (generation < round)
			EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	}
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

static void wake_all(unsigned round, bool holding)
{
	until_is(&mutex, &waiting, round * WAITERS);
	EXPECT_OK(pthread_mutex_lock(&mutex));
	generation = round;
	if (holding)
		EXPECT_OK(pthread_cond_broadcast(&cond));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	if (!holding)
		EXPECT_OK(pthread_cond_broadcast(&cond));
}

static void broadcast(void)
{
	static pthread_t threads[WAITERS];

	for (size_t i = 0; i < WAITERS; i++)
		threads[i] = start(wait_twice, NULL);
	wake_all(1, true);
	wake_all(2, false);
	for (size_t i = 0; i < WAITERS; i++)
		finish(threads[i]);
}

static void *lock_once(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	count++;
	sched_yield(); /* so that the others wait */
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_OK(pthread_rwlock_rdlock(&rwlock));
	EXPECT_OK(pthread_rwlock_unlock(&rwlock));
	return argument;
}

static void come_and_go(unsigned threads)
{
	pthread_t some[AT_A_TIME];

	for (unsigned i = 0; i < threads; i += AT_A_TIME) {
		for (size_t j = 0; j < AT_A_TIME; j++)
			some[j] = start(lock_once, NULL);
		for (size_t j = 0; j < AT_A_TIME; j++)
			finish(some[j]);
	}
}

/* The size of this process's address space, in pages. */
static unsigned long size(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	EXPECT(file && fscanf(file, "%lu", &pages) == 1, "statm");
	fclose(file);
	return pages;
}

int main(void)
{
	unsigned long before;

	broadcast();
	come_and_go(THREADS / 10);
	before = size();
	come_and_go(THREADS / 10 * 9);
	EXPECT(count == THREADS, "%u", count);
	EXPECT(size() <= before + 64, "grew by %lu pages", size() - before);
	return 0;
}
