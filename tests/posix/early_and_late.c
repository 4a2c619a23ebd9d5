/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Locks work before any constructor has run, in constructors, after main, in destructors of thread-
 * local data, and in threads that were started before any constructor.
 */
#include "posix.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned counted, waiting;
static pthread_t early;

static void use(void)
{
	struct timespec past = {.tv_sec = 1};

	EXPECT_OK(pthread_mutex_lock(&recursive));
	EXPECT_OK(pthread_mutex_lock(&mutex));
	counted++;
	EXPECT_RESULT(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
	EXPECT_OK(pthread_mutex_lock(&recursive));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_OK(pthread_mutex_unlock(&recursive));
	EXPECT_OK(pthread_mutex_unlock(&recursive));
}

static void *wait_till_main(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	waiting++;
	while (waiting)
		EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

static void before_constructors(void)
{
	use();
	early = start(wait_till_main, NULL);
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const preinit)(void) = before_constructors;

__attribute__((constructor)) static void in_constructor(void)
{
	use();
}

__attribute__((destructor)) static void in_destructor(void)
{
	use();
	EXPECT(counted == 6, "%u", counted);
}

static void in_thread_destructor(void *argument)
{
	(void)argument;
	use();
}

static void *with_data(void *argument)
{
	EXPECT_OK(pthread_setspecific(*(pthread_key_t *)argument, argument));
	return NULL;
}

static void wake_early(void)
{
	for (bool woken = false; !woken;) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		woken = waiting;
		waiting = 0;
		EXPECT_OK(pthread_cond_signal(&cond));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	finish(early);
}

int main(void)
{
	pthread_key_t key;

	use();
	wake_early();
	EXPECT_OK(pthread_key_create(&key, in_thread_destructor));
	finish(start(with_data, &key));
	atexit(use);
	return 0;
}
