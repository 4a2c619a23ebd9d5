/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pthread_mutex_timedlock() and _clocklock() on both clocks: past, invalid and met deadlines, and
 * the queue that they leave.
 */
#include "posix.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *times_out(void *argument)
{
	(void)argument;
	EACH_CLOCK(clock)
	{
		struct timespec at = from_now(*clock, 20);

		EXPECT_RESULT(pthread_mutex_clocklock(&mutex, *clock, &at), ETIMEDOUT);
		EXPECT(has_come(*clock, at), "returned before the deadline");
	}
	return NULL;
}

static void *is_refused(void *argument)
{
	struct timespec at;

	(void)argument;
	EACH_CLOCK(clock)
	{
		at = from_now(*clock, -1000);
		EXPECT_RESULT(pthread_mutex_clocklock(&mutex, *clock, &at), ETIMEDOUT);
		at = (struct timespec){.tv_sec = -1};
		EXPECT_RESULT(pthread_mutex_clocklock(&mutex, *clock, &at), ETIMEDOUT);
		at = (struct timespec){.tv_nsec = 1000000000};
		EXPECT_RESULT(pthread_mutex_clocklock(&mutex, *clock, &at), EINVAL);
		at = (struct timespec){.tv_nsec = -1};
		EXPECT_RESULT(pthread_mutex_clocklock(&mutex, *clock, &at), EINVAL);
	}
	at = from_now(CLOCK_REALTIME, -1);
	EXPECT_RESULT(pthread_mutex_timedlock(&mutex, &at), ETIMEDOUT);
	at.tv_nsec = LONG_MAX;
	EXPECT_RESULT(pthread_mutex_timedlock(&mutex, &at), EINVAL);
	return NULL;
}

static void *is_served(void *argument)
{
	(void)argument;
	EACH_CLOCK(clock)
	{
		struct timespec at = from_now(*clock, 3600 * 1000);

		EXPECT_OK(pthread_mutex_clocklock(&mutex, *clock, &at));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return NULL;
}

/* A free mutex is taken without checking the time; the clock's id is always checked. */
static void while_free(void)
{
	struct timespec past = {.tv_sec = 1}, invalid = {.tv_nsec = 1000000000};

	EXPECT_OK(pthread_mutex_timedlock(&mutex, &past));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_OK(pthread_mutex_timedlock(&mutex, &invalid));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT_RESULT(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &past), EINVAL);
	EXPECT_RESULT(pthread_mutex_clocklock(&mutex, 1234, &past), EINVAL);
}

#define THREADS 12
#define ROUNDS 400
static unsigned inside, served;

static void *hurries(void *argument)
{
	uintptr_t number = (uintptr_t)argument;

	for (unsigned i = 0; i < ROUNDS; i++) {
		clockid_t clock = clocks[i % 2];
		struct timespec at = from_now(clock, i % 2);

		if (number % 3 && pthread_mutex_clocklock(&mutex, clock, &at))
			continue;
		if (number % 3 == 0)
			EXPECT_OK(pthread_mutex_lock(&mutex));
		EXPECT(!inside++, "two threads inside");
		if (i % 50 == 0)
			sleep_ms(1);
		served++;
		inside--;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return NULL;
}

int main(void)
{
	void *(*const during[])(void *) = {times_out, is_refused, times_out, is_served, times_out};
	pthread_t threads[THREADS];

	while_free();
	EXPECT_OK(pthread_mutex_lock(&mutex));
	for (size_t i = 0; i < 5; i++)
		threads[i] = start(during[i], NULL);
	for (size_t i = 0; i < 5; i++)
		if (during[i] != is_served)
			finish(threads[i]);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	finish(threads[3]);

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start(hurries, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
	EXPECT(served >= ROUNDS * THREADS / 3, "%u", served);
	EXPECT_OK(pthread_mutex_trylock(&mutex));
	return 0;
}
