/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Priority ceilings and consistency: the results of pthread_mutex_getprioceiling(),
 * _setprioceiling() and _consistent() for each kind of mutex. These functions are glibc's and read
 * mutexes that may be ours.
 */
#include <sched.h>

#include "posix.h"

static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
			    PTHREAD_MUTEX_ADAPTIVE_NP};

/* A mutex without a ceiling that is not robust: refused in each state, without changing it. */
static void expect_none(pthread_mutex_t *mutex)
{
	int ceiling = -7;

	EXPECT_RESULT(pthread_mutex_getprioceiling(mutex, &ceiling), EINVAL);
	EXPECT_RESULT(pthread_mutex_setprioceiling(mutex, sched_get_priority_min(SCHED_FIFO),
						   &ceiling),
		      EINVAL);
	EXPECT(ceiling == -7, "%d", ceiling);
	EXPECT_RESULT(pthread_mutex_consistent(mutex), EINVAL);
}

static void without(int type)
{
	pthread_mutex_t mutex;

	init_mutex(&mutex, type);
	expect_none(&mutex);
	EXPECT_OK(pthread_mutex_lock(&mutex));
	expect_none(&mutex);
	EXPECT_RESULT(elsewhere(pthread_mutex_trylock, &mutex), EBUSY);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_OK(pthread_mutex_trylock(&mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_OK(pthread_mutex_destroy(&mutex));
}

static void with_ceiling(int type)
{
	int least = sched_get_priority_min(SCHED_FIFO), ceiling = -7;
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;

	EXPECT_OK(pthread_mutexattr_init(&attr));
	EXPECT_OK(pthread_mutexattr_settype(&attr, type));
	EXPECT_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT));
	EXPECT_OK(pthread_mutexattr_setprioceiling(&attr, least));
	EXPECT_OK(pthread_mutex_init(&mutex, &attr));
	EXPECT_OK(pthread_mutexattr_destroy(&attr));
	EXPECT_OK(pthread_mutex_getprioceiling(&mutex, &ceiling));
	EXPECT(ceiling == least, "%d", ceiling);
	/* Otherwise it may not use that priority. */
	if (!pthread_mutex_setprioceiling(&mutex, least + 1, &ceiling)) {
		EXPECT(ceiling == least, "%d", ceiling);
		EXPECT_OK(pthread_mutex_getprioceiling(&mutex, &ceiling));
		EXPECT(ceiling == least + 1, "%d", ceiling);
	}
	EXPECT_OK(pthread_mutex_destroy(&mutex));
}

/* A robust mutex with a living owner is not inconsistent. */
static void robust(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;

	EXPECT_OK(pthread_mutexattr_init(&attr));
	EXPECT_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	EXPECT_OK(pthread_mutex_init(&mutex, &attr));
	EXPECT_OK(pthread_mutexattr_destroy(&attr));
	EXPECT_RESULT(pthread_mutex_consistent(&mutex), EINVAL);
	EXPECT_OK(pthread_mutex_lock(&mutex));
	EXPECT_RESULT(pthread_mutex_consistent(&mutex), EINVAL);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_OK(pthread_mutex_destroy(&mutex));
}

int main(void)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		without(types[i]);
		with_ceiling(types[i]);
	}
	robust();
	return 0;
}
