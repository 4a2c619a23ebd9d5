/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread that waits in pthread_mutex_lock() leaves through a signal handler, which ends the
 * thread or jumps out of the wait. glibc's waiters leave without a trace, as do those of locks
 * without a queue.
 */
#include <setjmp.h>
#include <signal.h>

#include "posix.h"

#define OTHERS 3
#define ROUNDS 1000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf before;
static volatile bool jumps;
static atomic_bool waits;
static unsigned long count;

static void leave(int signal)
{
	(void)signal;
	if (jumps)
		siglongjmp(before, 1);
	pthread_exit(NULL);
}

static void *wait_and_leave(void *argument)
{
	if (sigsetjmp(before, 1))
		return argument;
	atomic_store(&waits, true);
	(void)pthread_mutex_lock(&mutex);
	EXPECT(false, "the wait ended otherwise");
	return argument;
}

static void *use(void *argument)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		count++;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return argument;
}

static void leave_amid_others(void)
{
	pthread_t waiter, others[OTHERS];

	count = 0;
	atomic_store(&waits, false);
	EXPECT_OK(pthread_mutex_lock(&mutex));
	EXPECT_OK(pthread_create(&waiter, NULL, wait_and_leave, NULL));
	while (!atomic_load(&waits))
		sched_yield();
	for (size_t i = 0; i < OTHERS; i++)
		others[i] = start(use, NULL);
	sleep_ms(50); /* probably asleep by now; otherwise it leaves a little earlier */
	EXPECT_OK(pthread_kill(waiter, SIGUSR1));
	EXPECT_OK(pthread_join(waiter, NULL));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	for (size_t i = 0; i < OTHERS; i++)
		finish(others[i]);
	EXPECT(count == OTHERS * ROUNDS, "%lu", count);
}

int main(void)
{
	limit();
	EXPECT(signal(SIGUSR1, leave) != SIG_ERR, "signal");
	leave_amid_others();
	jumps = true;
	leave_amid_others();
	return 0;
}
