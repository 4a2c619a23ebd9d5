/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The word of pthread_cond_*: 64 bits. Waiters sleep on its low half, destroyers on the high one.
 *
 *   state = DESTROYING:1 waiters:31 | sequence:26 woken:5 0:1
 *     waiters     number of threads inside a wait; each changes it for itself
 *     sequence    advanced by each signal and broadcast that wakes
 *     woken       at least min(woken, waiters) waiters return without another signal
 *     DESTROYING  a destroyer sleeps until waiters is 0
 *
 *   wait        waiters++, and s = sequence, in one step; unlock the mutex; sleep while
 *               sequence == s; waiters-- and woken-- in one step; lock the mutex
 *   signal      if waiters > woken: advance sequence, woken++, and wake one sleeper, in one step of
 *               the kernel
 *   broadcast   the same with all sleepers, and woken increased by its maximum
 *   destroy     wait until waiters is 0
 *
 * A signal reaches a thread that was waiting before it, and no later one instead. FUTEX_WAKE_OP
 * changes the word and wakes while it holds the kernel's lock of the futex, under which sleepers
 * compare the word. A thread that is asleep then has read an older sequence; a thread that has read
 * an older one and is not asleep yet will not fall asleep. So a sleeper that is woken and finds the
 * sequence unchanged passes the wake-up on: it was meant for another one.
 *
 * A signal may do nothing if waiters <= woken: all waiters return without it then, and see under
 * the mutex what was signalled. Call a waiter awake if it is not asleep and will not fall asleep:
 * it was woken, or has read an older sequence, or is leaving. At all times at least min(woken,
 * waiters) are awake:
 *   - A signal that finds a sleeper makes it awake, and adds 1 to woken. One that finds none leaves
 *     all waiters awake, since a waiter that is not asleep has an older sequence now: any value of
 *     woken is right.
 *   - A thread that enters adds a waiter that is not awake. So it first sets woken to
 *     min(woken, waiters): the excess stands for no waiter.
 *   - A thread that leaves was awake, and takes 1 from min(woken, waiters).
 *   - A waiter that is awake stays so until it leaves. If woken overflows into sequence, woken
 *     becomes smaller and the sequence newer.
 * Waiters are entered, counted and compared in one word, and woken is raised in the same step as
 * the wake-up: no signal relies on another that has not happened yet. tests/posix/cond_model.py
 * explores all interleavings of a model of this, and tests/check/cond_word.c those of this file.
 *
 * The bound: a thread that is preempted between its last read of the sequence and the kernel's
 * comparison, for a multiple of 2^26 wake-ups, falls asleep although it was signalled.
 *
 * Destruction may follow at once after a broadcast, or after a signal once its waiter has run: the
 * last access of a waiter takes it out of the count, before it locks the mutex. A signal accesses
 * the memory in one system call, which survives memory that is unmapped.
 *
 * In a forked child the threads that waited in the parent do not exist: the first one that enters
 * there counts from 0.
 *
 * The includer provides world.h's operations and those of world/user/kernel.h.
 */
#ifndef POUNDLOCK_PRELOAD_COND_WORD_H
#define POUNDLOCK_PRELOAD_COND_WORD_H

#include <limits.h>

#include "part/generation.h"

struct cond {
	W_ATOMIC(uint64_t) state;
	W_ATOMIC(uint32_t) generation;
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "waiters sleep on the low half of the state, at its address");

/* ---- The state ---- */

/* Bit 0 stays 0: FUTEX_WAKE_OP's second wake-up, which is conditional on it, never happens. */
#define WOKEN_STEP 2u
#define WOKEN_MOST 31u
#define SEQUENCE_STEP 64u
#define WAITER ((uint64_t)1 << 32)
#define DESTROYING 0x80000000u /* in the high half */

static inline uint32_t sequence_of(uint64_t state)
{
	return (uint32_t)state / SEQUENCE_STEP;
}

static inline uint32_t waiters_of(uint64_t state)
{
	return (uint32_t)(state >> 32) & ~DESTROYING;
}

static inline uint32_t woken_of(uint64_t state)
{
	return (uint32_t)state / WOKEN_STEP & WOKEN_MOST;
}

/* The number of waiters that are certain to be awake. */
static inline uint32_t awake_of(uint64_t state)
{
	return woken_of(state) < waiters_of(state) ? woken_of(state) : waiters_of(state);
}

static inline uint64_t with_woken(uint64_t state, uint32_t woken)
{
	return (state & ~(uint64_t)(WOKEN_MOST * WOKEN_STEP)) | woken * WOKEN_STEP;
}

/* The futex of waiters. */
static inline W_ATOMIC(uint32_t) *low_half(struct cond *c)
{
	return (W_ATOMIC(uint32_t) *)&c->state;
}

/* The futex of destroyers. */
static inline W_ATOMIC(uint32_t) *high_half(struct cond *c)
{
	return low_half(c) + 1;
}

#define SIGNAL FUTEX_OP(FUTEX_OP_ADD, SEQUENCE_STEP + WOKEN_STEP, FUTEX_OP_CMP_EQ, 1)
#define BROADCAST \
	FUTEX_OP(FUTEX_OP_ADD, SEQUENCE_STEP + WOKEN_MOST * WOKEN_STEP, FUTEX_OP_CMP_EQ, 1)

static W_SLOW int advance_and_wake(struct cond *c, int count)
{
	int operation = FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG,
	    change = count == 1 ? SIGNAL : BROADCAST;

	if (w_system_call(SYS_futex, (long)low_half(c), operation, count, 0, (long)low_half(c),
			  change) < 0) {
		/*
		 * The kernel lacks it. Two steps: a waiter of real-time priority may enter in
		 * between, so woken must not count a waiter that is not woken yet.
		 */
		(void)w_fetch_add_relaxed(low_half(c), SEQUENCE_STEP);
		w_futex_wake(low_half(c), count);
	}
	return 0;
}

/* ---- The count of threads inside a wait ---- */

/* In a forked child: forgets the waiters that do not exist here. */
static inline void forget_parents(struct cond *c)
{
	if (w_likely(!generation_claim(&c->generation)))
		return;
	/* relaxed: [GENERATION-3] publishes it; a signal may advance the sequence meanwhile */
	(void)w_fetch_and_relaxed(&c->state, UINT32_MAX & ~(uint64_t)(WOKEN_MOST * WOKEN_STEP));
	generation_settle(&c->generation);
}

/* Counts the calling thread as a waiter. Returns the sequence. */
static inline uint32_t enter(struct cond *c)
{
	uint64_t seen;

	forget_parents(c);
	/* relaxed, both: a signal after the waiter's unlock sees the count through the mutex */
	seen = w_load_relaxed(&c->state);
	while (!w_compare_exchange_relaxed(&c->state, &seen,
					   with_woken(seen, awake_of(seen)) + WAITER))
		;
	return sequence_of(seen);
}

/* The last access to @c of a waiter that entered in @generation. */
static inline void leave(struct cond *c, uint32_t generation)
{
	uint64_t seen;
	uint32_t awake;

	/* A signal handler forked during the wait: the child's count does not include it. */
	if (w_fork_generation() != generation)
		return;
	/* relaxed: the compare-exchange decides */
	seen = w_load_relaxed(&c->state);
	do
		awake = awake_of(seen);
	/* release: pairs with the acquire in await_leavers(); all our accesses precede it */
	while (!w_compare_exchange_release(&c->state, &seen,
					   with_woken(seen, awake ? awake - 1 : 0) - WAITER));
	if ((uint32_t)(seen >> 32) == (DESTROYING | 1))
		w_futex_wake(high_half(c), INT_MAX);
}

/* ---- Waiting ---- */

/* A thread inside a wait: the sequence and the fork generation at its entry. */
struct cond_waiter {
	struct cond *cond;
	uint32_t sequence;
	uint32_t generation;
};

/* relaxed: it is only compared; the mutex orders what was signalled */
static inline bool is_advanced(const struct cond_waiter *waiter)
{
	return sequence_of(w_load_relaxed(&waiter->cond->state)) != waiter->sequence;
}

/*
 * Sleeps until it is woken (0), the word has changed (EAGAIN), a signal handler has run (EINTR) or
 * the deadline (ETIMEDOUT).
 */
static inline int sleep_once(const struct cond_waiter *waiter, const struct w_deadline *deadline)
{
	/* relaxed: as in is_advanced() */
	uint64_t seen = w_load_relaxed(&waiter->cond->state);

	if (sequence_of(seen) != waiter->sequence)
		return EAGAIN;
	return w_futex_wait(low_half(waiter->cond), (uint32_t)seen, deadline);
}

static inline void pass_on(const struct cond_waiter *waiter)
{
	w_futex_wake(low_half(waiter->cond), 1);
}

/* Whether the waiter sleeps again after @result of sleep_once(). */
static inline bool sleeps_again(const struct cond_waiter *waiter, int result)
{
	return result == EINTR || (result == EAGAIN && !is_advanced(waiter));
}

/*
 * The result of a wait whose last sleep_once() returned @result: ETIMEDOUT, or 0, which may be
 * spurious.
 */
static inline int slept(const struct cond_waiter *waiter, int result)
{
	if (!result && !is_advanced(waiter))
		pass_on(waiter);
	return result == ETIMEDOUT ? ETIMEDOUT : 0;
}

/* A waiter leaves while it may sleep. */
static inline void leave_cancelled(const struct cond_waiter *waiter)
{
	/* relaxed: a read-modify-write, since a load may return the state before its wake-up */
	if (sequence_of(w_fetch_or_relaxed(&waiter->cond->state, 0)) != waiter->sequence)
		pass_on(waiter);
	leave(waiter->cond, waiter->generation);
}

/* ---- Waking, and the end ---- */

/* Signals if @count is 1, and broadcasts if it is INT_MAX. */
static inline int wake(struct cond *c, int count)
{
	/*
	 * relaxed: as in enter(). Waiters of another generation count: a useless wake-up is
	 * harmless
	 */
	uint64_t seen = w_load_relaxed(&c->state);

	return w_likely(waiters_of(seen) <= woken_of(seen)) ? 0 : advance_and_wake(c, count);
}

/* Waits until no thread is inside a wait. */
static inline void await_leavers(struct cond *c)
{
	uint64_t seen;

	forget_parents(c);
	/*
	 * acquire: pairs with the release in leave(); the leavers' accesses. A failed
	 * compare-exchange acquires nothing, so it must not end the loop.
	 */
	while (waiters_of(seen = w_load_acquire(&c->state)))
		/* relaxed: the load acquires */
		if (w_compare_exchange_relaxed(&c->state, &seen, seen | DESTROYING * WAITER))
			w_futex_wait(high_half(c), (uint32_t)(seen >> 32) | DESTROYING, NULL);
}

#endif
