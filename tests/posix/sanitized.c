/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program without sanitizer errors: threads share a count under a mutex, a readers-writer lock
 * and a condition variable. It is built with each sanitizer, whose runtime initialises itself
 * before or after the preload library.
 */
#include "posix.h"

#define THREADS 4
#define ROUNDS 1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned count, written;

static void *add(void *argument)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		count++;
		EXPECT_OK(pthread_cond_signal(&cond));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		EXPECT_OK(pthread_rwlock_rdlock(&rwlock));
		EXPECT(written < ROUNDS, "%u", written);
		EXPECT_OK(pthread_rwlock_unlock(&rwlock));
		EXPECT_OK(pthread_rwlock_wrlock(&rwlock));
		written = written < i ? i : written;
		EXPECT_OK(pthread_rwlock_unlock(&rwlock));
	}
	return argument;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		EXPECT_OK(pthread_create(&threads[i], NULL, add, NULL));
	EXPECT_OK(pthread_mutex_lock(&mutex));
	while (count < THREADS * ROUNDS)
		EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	for (size_t i = 0; i < THREADS; i++)
		EXPECT_OK(pthread_join(threads[i], NULL));
	EXPECT(written == ROUNDS - 1, "%u", written);
	return 0;
}
