/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread that waits in pthread_mutex_lock() or for a readers-writer lock jumps out of the wait
 * from a signal handler. The lock may be lost (docs/preload.md), but the waiter's old stack belongs
 * to the thread again: neither the releaser nor other waiters write to it.
 */
#include <setjmp.h>
#include <signal.h>

#include "posix.h"

#define STACK 16384
#define PATTERN 0x5a

struct lock {
	int (*acquire)(void *lock);
	int (*acquire_until)(void *lock, const struct timespec *at);
	int (*release)(void *lock);
	void *memory;
};

static sigjmp_buf before;
static atomic_int waiter;
static atomic_bool covered, released;

static void leave(int signal)
{
	(void)signal;
	siglongjmp(before, 1);
}

/* Fills the stack that the wait used, has the lock released, and checks the stack. */
__attribute__((noinline)) static void keep_stack(void)
{
	volatile unsigned char stack[STACK];

	for (size_t i = 0; i < STACK; i++)
		stack[i] = PATTERN;
	atomic_store(&covered, true);
	while (!atomic_load(&released))
		sleep_ms(1);
	sleep_ms(20); /* gives late writes a chance; without it fewer would be caught */
	for (size_t i = 0; i < STACK; i++)
		EXPECT(stack[i] == PATTERN, "byte %zu became %u", i, stack[i]);
}

static void *wait_and_leave(void *argument)
{
	struct lock *lock = argument;

	if (sigsetjmp(before, 1)) {
		keep_stack();
		return NULL;
	}
	atomic_store(&waiter, kernel_id());
	(void)lock->acquire(lock->memory);
	EXPECT(false, "the wait ended otherwise");
	return NULL;
}

/* Queues behind the waiter that left. */
static void *come_and_go(void *argument)
{
	struct lock *lock = argument;
	struct timespec at = from_now(CLOCK_REALTIME, 5);

	EXPECT_RESULT(lock->acquire_until(lock->memory, &at), ETIMEDOUT);
	return NULL;
}

static void leave_and_release(struct lock lock)
{
	pthread_t thread;

	atomic_store(&waiter, 0);
	atomic_store(&covered, false);
	atomic_store(&released, false);
	EXPECT_OK(lock.acquire(lock.memory));
	EXPECT_OK(pthread_create(&thread, NULL, wait_and_leave, &lock));
	while (!atomic_load(&waiter))
		sleep_ms(1);
	until_asleep(atomic_load(&waiter));
	EXPECT_OK(pthread_kill(thread, SIGUSR1));
	while (!atomic_load(&covered))
		sleep_ms(1);
	finish(start(come_and_go, &lock));
	EXPECT_OK(lock.release(lock.memory));
	atomic_store(&released, true);
	EXPECT_OK(pthread_join(thread, NULL));
}

static int lock_mutex(void *lock)
{
	return pthread_mutex_lock(lock);
}

static int lock_mutex_until(void *lock, const struct timespec *at)
{
	return pthread_mutex_timedlock(lock, at);
}

static int unlock_mutex(void *lock)
{
	return pthread_mutex_unlock(lock);
}

static int lock_to_write(void *lock)
{
	return pthread_rwlock_wrlock(lock);
}

static int lock_to_write_until(void *lock, const struct timespec *at)
{
	return pthread_rwlock_timedwrlock(lock, at);
}

static int unlock_rwlock(void *lock)
{
	return pthread_rwlock_unlock(lock);
}

int main(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

	limit();
	EXPECT(signal(SIGUSR1, leave) != SIG_ERR, "signal");
	leave_and_release((struct lock){lock_mutex, lock_mutex_until, unlock_mutex, &mutex});
	leave_and_release(
		(struct lock){lock_to_write, lock_to_write_until, unlock_rwlock, &rwlock});
	return 0;
}
