/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A readers-writer lock that is locked for reading and never released: pthread_rwlock_rdlock()
 * fails with EAGAIN before a count wraps, in glibc's lock and in ours, and no writer enters beside
 * readers.
 */
#include "posix.h"

#define THREADS 16
#define READS (1u << 24) /* of a thread; of all of them, 2^28 */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void *read_for_good(void *argument)
{
	int error = 0;

	for (uint32_t i = 0; i < READS && !error; i++)
		error = pthread_rwlock_rdlock(&lock);
	EXPECT(!error || error == EAGAIN, "%s", strerror(error));
	return argument;
}

static void *is_refused(void *argument)
{
	struct timespec at = from_now(CLOCK_MONOTONIC, 3600 * 1000);

	EXPECT_RESULT(pthread_rwlock_rdlock(&lock), EAGAIN);
	EXPECT_RESULT(pthread_rwlock_tryrdlock(&lock), EAGAIN);
	EXPECT_RESULT(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &at), EAGAIN);
	EXPECT_RESULT(pthread_rwlock_trywrlock(&lock), EBUSY);
	return argument;
}

static void *enters(void *argument)
{
	EXPECT_OK(pthread_rwlock_rdlock(&lock));
	return argument;
}

int main(void)
{
	limit();
	for (int i = 0; i < THREADS; i++)
		finish(start(read_for_good, NULL));
	finish(start(is_refused, NULL));
	EXPECT_OK(pthread_rwlock_unlock(&lock));
	finish(start(enters, NULL));
	return 0;
}
