/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A partitioned ticket lock: numbers as in tickets.h, but each is served in one of several slots, so that a release
 * writes a line that few watch.
 *
 * From: Dice, "A partitioned ticket lock", SPAA'11. A part of cohort locks (cohort.h), which have the slots.
 * Changed: a waiter may sleep on its slot.
 *
 *   next     the next number to give out, in steps of 2
 *   own      the holder's number; while nobody holds the lock, the next holder's
 *   slot i   the last number n with n / 2 % slots == i that was served, + 1 if somebody sleeps until it changes
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

/* Which of @slots slots serves @number. */
static inline uint32_t partitioned_slot(uint32_t number, uint32_t slots)
{
	return number / TICKETS_STEP % slots;
}

/* How many numbers have been given out and not served, the holder's among them: exact to the holder but for arrivals. */
static inline uint32_t partitioned_count(struct partitioned *lock)
{
	/* relaxed, both: only the holder moves own on, and its own next is before it */
	uint32_t own = w_load_relaxed(&lock->own);

	return (w_load_relaxed(&lock->next) - own) / TICKETS_STEP;
}

/* Takes the next number, if the @slot it is served in serves it already; @number is what next was seen to be. */
static inline bool partitioned_try_acquire(struct partitioned *lock, W_ATOMIC(uint32_t) *slot, uint32_t number)
{
	/* [PARTITIONED-1] acquire: pairs with [TICKETS-6], [TICKETS-7]; the last holder's critical
	 * section */
	if ((w_load_acquire(slot) & ~TICKETS_SLEEPERS) != number)
		return false;
	/* relaxed: the acquire above has the last holder's doing; a number publishes nothing */
	return w_compare_exchange_relaxed(&lock->next, &number, number + TICKETS_STEP);
}

/* Moves on to the next number, which it returns and which is then to be served in its slot, as the holder. */
static inline uint32_t partitioned_move_on(struct partitioned *lock)
{
	/* relaxed, both: only the holder reads or moves it, and serving the number orders it */
	uint32_t number = w_load_relaxed(&lock->own) + TICKETS_STEP;

	w_store_relaxed(&lock->own, number);
	return number;
}

/* In a forked child: takes back all numbers but, if it is held, the holder's, which it returns. */
static inline uint32_t partitioned_drop_waiters(struct partitioned *lock, bool held)
{
	/* relaxed, both: who repairs publishes them, and nobody else writes until then */
	uint32_t own = w_load_relaxed(&lock->own);

	w_store_relaxed(&lock->next, held ? own + TICKETS_STEP : own);
	return own;
}

#endif
