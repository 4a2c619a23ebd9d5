/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Deadlines of condition variables on both clocks, by attribute and by pthread_cond_clockwait();
 * the effect of a wait on each type of mutex; and the error codes.
 */
#include "posix.h"

/* Checks that the caller holds the error-checking mutex: only then does unlocking it succeed. */
static void expect_mine(pthread_mutex_t *mutex)
{
	EXPECT_OK(pthread_mutex_unlock(mutex));
	EXPECT_OK(pthread_mutex_lock(mutex));
}

/* Waits with @clock, set as @cond's own clock if @by_attribute. */
static int wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
		      bool by_attribute, const struct timespec *at)
{
	return by_attribute ? pthread_cond_timedwait(cond, mutex, at)
			    : pthread_cond_clockwait(cond, mutex, clock, at);
}

static void deadlines(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
		      bool by_attribute)
{
	struct timespec at = from_now(clock, 20);

	errno = ENOTTY;
	EXPECT_RESULT(wait_until(cond, mutex, clock, by_attribute, &at), ETIMEDOUT);
	EXPECT(errno == ENOTTY, "errno became %d", errno);
	EXPECT(has_come(clock, at), "returned before the deadline");
	expect_mine(mutex);
	at = from_now(clock, -1000);
	EXPECT_RESULT(wait_until(cond, mutex, clock, by_attribute, &at), ETIMEDOUT);
	expect_mine(mutex);
	at = (struct timespec){.tv_sec = -1};
	EXPECT_RESULT(wait_until(cond, mutex, clock, by_attribute, &at), ETIMEDOUT);
	expect_mine(mutex);
	at = (struct timespec){.tv_nsec = 1000000000};
	EXPECT_RESULT(wait_until(cond, mutex, clock, by_attribute, &at), EINVAL);
	at = (struct timespec){.tv_nsec = -1};
	EXPECT_RESULT(wait_until(cond, mutex, clock, by_attribute, &at), EINVAL);
	expect_mine(mutex);
}

static void each_clock(pthread_mutex_t *mutex)
{
	EACH_CLOCK(clock)
	{
		pthread_condattr_t attr;
		pthread_cond_t cond;

		EXPECT_OK(pthread_condattr_init(&attr));
		EXPECT_OK(pthread_condattr_setclock(&attr, *clock));
		memset(&cond, 0x5a, sizeof(cond));
		EXPECT_OK(pthread_cond_init(&cond, &attr));
		deadlines(&cond, mutex, *clock, true);
		EACH_CLOCK(other)
		deadlines(&cond, mutex, *other, false);
		EXPECT_OK(pthread_cond_destroy(&cond));
		EXPECT_OK(pthread_condattr_destroy(&attr));
	}
}

static void errors(pthread_mutex_t *mutex)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec at = from_now(CLOCK_REALTIME, 1);

	EXPECT_RESULT(pthread_cond_clockwait(&cond, mutex, CLOCK_PROCESS_CPUTIME_ID, &at), EINVAL);
	expect_mine(mutex);
	EXPECT_OK(pthread_mutex_unlock(mutex));
	EXPECT_RESULT(pthread_cond_wait(&cond, mutex), EPERM);
	EXPECT_RESULT(pthread_cond_timedwait(&cond, mutex, &at), EPERM);
	EXPECT_OK(pthread_cond_destroy(&cond)); /* hangs if the refused waits are still counted */
	EXPECT_OK(pthread_mutex_lock(mutex));
}

/*
 * During a wait, another thread can lock the mutex; after the deadline the waiter waits for that
 * thread to unlock it.
 */
struct meeting {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool waits, held;
};

static void *time_out(void *argument)
{
	struct meeting *meeting = argument;
	struct timespec at = from_now(CLOCK_REALTIME, 10);

	EXPECT_OK(pthread_mutex_lock(&meeting->mutex));
	meeting->waits = true;
	EXPECT_RESULT(pthread_cond_timedwait(&meeting->cond, &meeting->mutex, &at), ETIMEDOUT);
	EXPECT(!meeting->held, "returned without the mutex");
	EXPECT_OK(pthread_mutex_unlock(&meeting->mutex));
	return NULL;
}

static void meet(int type)
{
	struct meeting meeting = {.cond = PTHREAD_COND_INITIALIZER};
	pthread_t thread;
	bool waits = false;

	init_mutex(&meeting.mutex, type);
	thread = start(time_out, &meeting);
	while (!waits) {
		EXPECT_OK(pthread_mutex_lock(&meeting.mutex));
		waits = meeting.waits;
		meeting.held = true;
		if (waits)
			sleep_ms(20);
		meeting.held = false;
		EXPECT_OK(pthread_mutex_unlock(&meeting.mutex));
		sleep_ms(1); /* without it, a lock without order may keep the other thread out */
	}
	finish(thread);
	EXPECT_OK(pthread_cond_destroy(&meeting.cond));
	EXPECT_OK(pthread_mutex_destroy(&meeting.mutex));
}

int main(void)
{
	pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

	EXPECT_OK(pthread_mutex_lock(&mutex));
	each_clock(&mutex);
	errors(&mutex);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	meet(PTHREAD_MUTEX_NORMAL);
	meet(PTHREAD_MUTEX_RECURSIVE);
	meet(PTHREAD_MUTEX_ERRORCHECK);
	meet(PTHREAD_MUTEX_ADAPTIVE_NP);
	return 0;
}
