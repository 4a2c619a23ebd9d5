/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Long waits use no CPU time, which may be rationed: while threads wait for a mutex, for a readers-
 * writer lock as readers and as a writer, and for a condition variable, the process's CPU time
 * stays the same. Measured by the kernel's count of CPU time, which other programs do not change.
 */
#include <sys/resource.h>

#include "waiters.h"

#define THREADS 8
#define HELD_MS 1000
#define CPU_MS 100 /* of all waiters together: a tenth of the time of one spinning waiter */

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool ready;

static void *wait_until_ready(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	while (!ready)
		EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

static long cpu_ms(void)
{
	struct rusage usage;

	EXPECT(!getrusage(RUSAGE_SELF, &usage), "getrusage");
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* Starts threads that do @wait while it must block; @let unblocks them. */
static void expect_idle(void *(*wait)(void *), int (*let)(void), const char *what)
{
	pthread_t threads[THREADS];
	long before = cpu_ms(), taken;

	for (size_t i = 0; i < THREADS; i++)
		threads[i] = start(wait, i % 2 ? threads : NULL);
	sleep_ms(HELD_MS);
	taken = cpu_ms() - before;
	EXPECT_OK(let());
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
	EXPECT(taken < CPU_MS, "waiters for a %s took %ld ms of CPU time", what, taken);
}

static int unlock_mutex(void)
{
	return pthread_mutex_unlock(&mutex);
}

static int unlock_rwlock(void)
{
	return pthread_rwlock_unlock(&rwlock);
}

static int make_ready(void)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	ready = true;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return pthread_cond_broadcast(&cond);
}

int main(void)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	expect_idle(lock_mutex, unlock_mutex, "mutex");
	EXPECT_OK(pthread_rwlock_wrlock(&rwlock));
	expect_idle(read_or_write, unlock_rwlock, "written lock");
	EXPECT_OK(pthread_rwlock_rdlock(&rwlock));
	expect_idle(read_or_write, unlock_rwlock, "read lock");
	expect_idle(wait_until_ready, make_ready, "condition");
	return 0;
}
