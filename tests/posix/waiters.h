/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads that wait for a mutex or a readers-writer lock that the test holds, so that the test can
 * measure their use of resources.
 */
#ifndef POUNDLOCK_TESTS_WAITERS_H
#define POUNDLOCK_TESTS_WAITERS_H

#include "posix.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void *lock_mutex(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

/* Locks for writing if there is an argument. */
static void *read_or_write(void *argument)
{
	EXPECT_OK(argument ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock));
	EXPECT_OK(pthread_rwlock_unlock(&rwlock));
	return argument;
}

#endif
