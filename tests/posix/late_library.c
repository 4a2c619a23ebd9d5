/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The library that late.c opens; late.h describes it. */
#include "late.h"

#include "posix.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned long count;

void late_own_run(unsigned rounds)
{
	struct timespec past = {.tv_sec = 1};

	for (unsigned i = 0; i < rounds; i++) {
		EXPECT_OK(pthread_rwlock_rdlock(&rwlock));
		EXPECT_OK(pthread_mutex_lock(&mutex));
		count++;
		if (i % 100 == 0)
			EXPECT_RESULT(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		EXPECT_OK(pthread_rwlock_unlock(&rwlock));
	}
}

unsigned long late_own_count(void)
{
	unsigned long seen;

	EXPECT_OK(pthread_mutex_lock(&mutex));
	seen = count;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return seen;
}

void late_shared_run(pthread_mutex_t *theirs, pthread_cond_t *changed, unsigned long *number,
		     unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		unsigned long before;

		EXPECT_OK(pthread_mutex_lock(theirs));
		before = ++*number;
		while (*number == before)
			EXPECT_OK(pthread_cond_wait(changed, theirs));
		EXPECT_OK(pthread_mutex_unlock(theirs));
	}
}
