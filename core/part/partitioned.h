/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A partitioned ticket lock: numbers as in tickets.h, but each is served in one of several slots,
 * so that a release writes a line that few threads watch.
 *
 * From: Dice, "A partitioned ticket lock", SPAA'11. A part of cohort locks (cohort.h), which
 * provide the slots. Departure: a waiter may sleep, as in tickets.h.
 *
 *   next     the next number to issue, in steps of 2
 *   own      the holder's number; while the lock is free, the next holder's
 *   slot i   the last number n with n / 2 % slots == i that was served, + SLEEPERS as in tickets.h
 *
 *   next == own        free: its slot serves it
 *   next == own + 2k   held, k - 1 waiters
 */
#ifndef POUNDLOCK_PARTITIONED_H
#define POUNDLOCK_PARTITIONED_H

#include "part/tickets.h"

struct partitioned {
	W_ATOMIC(uint32_t) next;
	W_ATOMIC(uint32_t) own;
};

/* The slot, of @slots, that serves @number. */
static inline uint32_t partitioned_slot(uint32_t number, uint32_t slots)
{
	return number / TICKETS_STEP % slots;
}

/*
 * Numbers given out and not served yet, including the holder's. Exact to the holder, except for
 * arrivals.
 */
static inline uint32_t partitioned_count(struct partitioned *lock)
{
	/* relaxed, both: only the holder changes own, and its own next is visible to it */
	uint32_t own = w_load_relaxed(&lock->own);

	return (w_load_relaxed(&lock->next) - own) / TICKETS_STEP;
}

/* Takes the next number if @slot serves it already. @number: next, as last read. */
static inline bool partitioned_try_acquire(struct partitioned *lock, W_ATOMIC(uint32_t) *slot,
					   uint32_t number)
{
	/*
	 * [PARTITIONED-1] acquire: pairs with [TICKETS-6], [TICKETS-7]; the previous critical
	 * section
	 */
	if ((w_load_acquire(slot) & ~TICKETS_SLEEPERS) != number)
		return false;
	/*
	 * relaxed: the acquire above orders the previous holder's writes; a number publishes
	 * nothing
	 */
	return w_compare_exchange_relaxed(&lock->next, &number, number + TICKETS_STEP);
}

/* As the holder, advances to the next number and returns it; the caller serves it in its slot. */
static inline uint32_t partitioned_move_on(struct partitioned *lock)
{
	/* relaxed, both: only the holder accesses it, and serving the number orders it */
	uint32_t number = w_load_relaxed(&lock->own) + TICKETS_STEP;

	w_store_relaxed(&lock->own, number);
	return number;
}

/*
 * In a forked child, takes back all numbers, except the holder's if it is @held. Returns the
 * holder's.
 */
static inline uint32_t partitioned_drop_waiters(struct partitioned *lock, bool held)
{
	/* relaxed, both: published by the thread that repairs; nobody else writes before that */
	uint32_t own = w_load_relaxed(&lock->own);

	w_store_relaxed(&lock->next, held ? own + TICKETS_STEP : own);
	return own;
}

#endif
