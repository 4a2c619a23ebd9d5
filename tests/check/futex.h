/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's futexes, for clients of user space's sleeping (world/user/park.h), which this file
 * includes: FUTEX_WAIT_BITSET, FUTEX_WAKE, and additions by FUTEX_WAKE_OP.
 *
 * As in the kernel, a thread that sleeps compares the word and enters the queue in one step, and
 * FUTEX_WAKE_OP changes the word and takes sleepers out of the queue in one step. FUTEX_WAKE uses
 * the word's address only. A thread that is taken out of the queue runs later; meanwhile its
 * deadline may pass, or a signal may arrive. The explorer chooses which sleepers are woken, as
 * priorities do in the kernel. System calls order no accesses of the program.
 *
 * A client's shared memory begins with struct futex_kernel, and its private notes with struct
 * futex_queue.
 */
#ifndef POUNDLOCK_CHECK_FUTEX_H
#define POUNDLOCK_CHECK_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#define FUTEX_THREADS 4

struct futex_kernel {
	W_ATOMIC(uint32_t) entered;              /* of no meaning: entering the kernel is a step */
	W_ATOMIC(uint32_t) woken[FUTEX_THREADS]; /* by thread: a waker has chosen it */
};

struct futex_queue {
	/* By thread: where it sleeps, or NULL. */
	const volatile void *address[FUTEX_THREADS];
	uint32_t signals;   /* that may still end a sleep */
	uint32_t sleeps;    /* in all */
	bool lacks_wake_op; /* as kernels before 2.6.14, and some sandboxes */
};

static struct futex_kernel *futex_kernel(void)
{
	return check_shared(struct futex_kernel);
}

static struct futex_queue *futex_queue(void)
{
	return check_ghost(struct futex_queue);
}

/* Whether the sleep ends by a wake-up, and not by a signal or at @deadline. */
static bool futex_sleep(const void *deadline)
{
	W_ATOMIC(uint32_t) *woken = &futex_kernel()->woken[check_engine->self()];

	if (futex_queue()->signals) {
		/* A wait that may end at any moment; the acquire reads no release. */
		if (w_wait_acquire(woken, VAL, W_BRIEF, NULL))
			return true;
		if (futex_queue()->signals) {
			futex_queue()->signals--;
			return false;
		}
	}
	return w_wait_acquire(woken, VAL, W_SPIN, (const struct w_deadline *)deadline);
}

static long futex_wait(W_ATOMIC(uint32_t) *word, uint32_t expected, const void *deadline)
{
	uint32_t self = check_engine->self(), signals = futex_queue()->signals;
	const volatile void **address = &futex_queue()->address[self];
	bool woken;

	if (w_fetch_or_relaxed(word, 0) != expected)
		return -EAGAIN;
	*address = word;
	(void)check_add(&futex_queue()->sleeps, 1);
	woken = futex_sleep(deadline);
	if (!woken && *address) {
		*address = NULL;
		return signals != futex_queue()->signals ? -EINTR : -ETIMEDOUT;
	}
	if (!woken)
		(void)w_await_acquire(&futex_kernel()->woken[self], VAL);
	/* A read-modify-write, as the next waker's, which must find it. */
	(void)w_exchange_relaxed(&futex_kernel()->woken[self], 0);
	return 0;
}

/* Takes a sleeper on @word out of the queue. Returns the thread, or FUTEX_THREADS. */
static uint32_t futex_dequeue(const volatile void *word)
{
	uint32_t found[FUTEX_THREADS], count = 0, chosen;

	for (uint32_t thread = 0; thread < FUTEX_THREADS; thread++)
		if (futex_queue()->address[thread] == word)
			found[count++] = thread;
	if (!count)
		return FUTEX_THREADS;
	chosen = count == 1 ? 0
			    : (uint32_t)CHECK_DO("sleeper", CHECK_CHOOSE, CHECK_RELAXED, NULL,
						 count, 0);
	futex_queue()->address[found[chosen]] = NULL;
	return found[chosen];
}

/* Wakes up to @count of the sleepers on @word. The step before it has locked the queue. */
static long futex_wake(const volatile void *word, long count)
{
	uint32_t chosen[FUTEX_THREADS];
	long taken = 0;

	while (taken < count && (chosen[taken] = futex_dequeue(word)) < FUTEX_THREADS)
		taken++;
	for (long i = 0; i < taken; i++)
		(void)w_exchange_relaxed(&futex_kernel()->woken[chosen[i]], 1);
	return taken;
}

static long futex_wake_op(W_ATOMIC(uint32_t) *word, long count, uint32_t change)
{
	if (futex_queue()->lacks_wake_op)
		return -ENOSYS;
	check_assert(change >> 28 == FUTEX_OP_ADD && (change >> 24 & 15) == FUTEX_OP_CMP_EQ);
	(void)w_fetch_add_relaxed(word, change >> 12 & 0xfff);
	return futex_wake(word, count);
}

/* FUTEX_WAKE_OP has a count where others have the timeout, and wakes on a second word. */
static long w_system_call(long number, long word, long operation, long count, long timeout,
			  long second, long last)
{
	check_assert(number == SYS_futex && operation & FUTEX_PRIVATE_FLAG);
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT_BITSET:
		check_assert((uint32_t)last == FUTEX_BITSET_MATCH_ANY);
		return futex_wait((W_ATOMIC(uint32_t) *)word, (uint32_t)count, (void *)timeout);
	case FUTEX_WAKE:
		(void)w_fetch_add_relaxed(&futex_kernel()->entered, 0);
		return futex_wake((void *)word, count);
	case FUTEX_WAKE_OP:
		check_assert(!timeout && second == word);
		return futex_wake_op((W_ATOMIC(uint32_t) *)word, count, (uint32_t)last);
	}
	check_assert(!"an operation that the kernel has");
	return -ENOSYS;
}

/* ---- User space's ---- */

/* As in wait.h. The checker decides when it passes. */
struct user_deadline {
	clockid_t clock;
	struct timespec at;
};

#define w_deadline user_deadline
#include "../../world/user/park.h"
#undef w_deadline

/* The deadlines of a client are all in the future at first. */
static const struct user_deadline futex_deadline = {.clock = CLOCK_MONOTONIC, .at = {.tv_sec = 1}};

#undef w_park
#define w_park(p, expected, deadline) w_futex_park(p, expected, (deadline) ? &futex_deadline : NULL)
#undef w_unpark
#define w_unpark(p) w_futex_wake(p, 1)
#undef w_unpark_all
#define w_unpark_all(p) w_futex_wake(p, INT32_MAX)

#endif
