/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Each type of mutex keeps its meaning and error codes, from its static initialiser, from
 * pthread_mutex_init(), re-initialised and copied.
 */
#include "posix.h"

static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
			    PTHREAD_MUTEX_ADAPTIVE_NP};

static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

static int lock_briefly(pthread_mutex_t *mutex)
{
	struct timespec at = from_now(CLOCK_REALTIME, 1);

	return pthread_mutex_timedlock(mutex, &at);
}

static void expect_locked(pthread_mutex_t *mutex)
{
	EXPECT_RESULT(elsewhere(pthread_mutex_trylock, mutex), EBUSY);
	EXPECT_RESULT(elsewhere(lock_briefly, mutex), ETIMEDOUT);
	EXPECT_RESULT(pthread_mutex_destroy(mutex), EBUSY);
}

static int lock_and_unlock(pthread_mutex_t *mutex)
{
	EXPECT_OK(pthread_mutex_lock(mutex));
	return pthread_mutex_unlock(mutex);
}

static void expect_free(pthread_mutex_t *mutex)
{
	EXPECT_OK(elsewhere(lock_and_unlock, mutex));
	EXPECT_OK(pthread_mutex_trylock(mutex));
	EXPECT_OK(pthread_mutex_unlock(mutex));
}

/* Checks that the caller holds the mutex once. */
static void relock(pthread_mutex_t *mutex, int type)
{
	switch (type) {
	case PTHREAD_MUTEX_RECURSIVE:
		EXPECT_OK(pthread_mutex_lock(mutex));
		EXPECT_OK(pthread_mutex_trylock(mutex));
		EXPECT_OK(lock_briefly(mutex));
		for (int i = 0; i < 3; i++) {
			expect_locked(mutex);
			EXPECT_OK(pthread_mutex_unlock(mutex));
		}
		break;
	case PTHREAD_MUTEX_ERRORCHECK:
		EXPECT_RESULT(pthread_mutex_lock(mutex), EDEADLK);
		EXPECT_RESULT(pthread_mutex_trylock(mutex), EBUSY);
		EXPECT_RESULT(lock_briefly(mutex), EDEADLK);
		break;
	default:
		EXPECT_RESULT(pthread_mutex_trylock(mutex), EBUSY);
		EXPECT_RESULT(lock_briefly(mutex), ETIMEDOUT);
	}
}

static void use(pthread_mutex_t *mutex, int type)
{
	bool owned = type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;

	expect_free(mutex);
	EXPECT_OK(pthread_mutex_lock(mutex));
	relock(mutex, type);
	expect_locked(mutex);
	if (owned) {
		EXPECT_RESULT(elsewhere(pthread_mutex_unlock, mutex), EPERM);
		expect_locked(mutex);
		EXPECT_OK(pthread_mutex_unlock(mutex));
		EXPECT_RESULT(pthread_mutex_unlock(mutex), EPERM);
	} else {
		EXPECT_OK(elsewhere(pthread_mutex_unlock, mutex));
	}
	expect_free(mutex);
}

static void initialised(int type)
{
	pthread_mutex_t mutex, copy;

	memset(&mutex, 0x5a, sizeof(mutex));
	init_mutex(&mutex, type);
	use(&mutex, type);
	memcpy(&copy, &mutex, sizeof(copy));
	use(&copy, type);
	EXPECT_OK(pthread_mutex_destroy(&mutex));
	EXPECT_RESULT(pthread_mutex_lock(&mutex), EINVAL);
	init_mutex(&mutex, type);
	use(&mutex, type);
	EXPECT_OK(pthread_mutex_destroy(&mutex));
	EXPECT_OK(pthread_mutex_destroy(&copy));
}

int main(void)
{
	int ceiling;

	use(&normal, PTHREAD_MUTEX_NORMAL);
	use(&recursive, PTHREAD_MUTEX_RECURSIVE);
	use(&errorcheck, PTHREAD_MUTEX_ERRORCHECK);
	use(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		initialised(types[i]);
	EXPECT_RESULT(pthread_mutex_getprioceiling(&normal, &ceiling), EINVAL);
	EXPECT_RESULT(pthread_mutex_consistent(&normal), EINVAL);
	return 0;
}
