/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Priority ceilings and consistency: what they say of each kind of mutex, by pthread_mutex_getprioceiling,
 * _setprioceiling and _consistent, which are glibc's and look into mutexes that may be ours.
 */
#include <sched.h>

#include "posix.h"

static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
			    PTHREAD_MUTEX_ADAPTIVE_NP};

/* A mutex without a ceiling that is not robust: refused in each state, which stays what it was. */
static void expect_none(pthread_mutex_t *mutex)
{
	int ceiling = -7;

	EXPECT_RESULT(pthread_mutex_getprioceiling(mutex, &ceiling), EINVAL);
	EXPECT_RESULT(pthread_mutex_setprioceiling(mutex, sched_get_priority_min(SCHED_FIFO), &ceiling), EINVAL);
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
	if (!pthread_mutex_setprioceiling(&mutex, least + 1, &ceiling)) { /* else it may not have that priority */
		EXPECT(ceiling == least, "%d", ceiling);
		EXPECT_OK(pthread_mutex_getprioceiling(&mutex, &ceiling));
		EXPECT(ceiling == least + 1, "%d", ceiling);
	}
	EXPECT_OK(pthread_mutex_destroy(&mutex));
}

/* A robust one whose owner is alive is not inconsistent. */
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
