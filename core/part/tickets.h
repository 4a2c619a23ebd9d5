/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Numbers that are issued and served in order: the ticket lock itself (ticket.h), and a part of
 * cohort locks.
 *
 *   next      the next number to issue, in steps of 2
 *   serving   the number served, in steps of 2, + SLEEPERS if a thread went to sleep since the last
 *             release (wait=park)
 *
 *   next == serving       free
 *   next == serving + 2k  held, k - 1 waiters
 *
 *   own ──waiter that goes to sleep──▶ own|SLEEPERS ──release──▶ own + 2, then wake that waiter
 *
 * Only the holder advances serving; a waiter may set SLEEPERS.
 *
 * A sleeper sleeps on the slot of its number (slot.h): a release wakes the next holder, however
 * many others sleep. A release reads the slot unless its waiter cannot be asleep: SLEEPERS is not
 * set, and the number had not been issued when the release began. A sleeper whose SLEEPERS an
 * earlier release has cleared was issued its number before that release, which all later holders
 * see.
 */
#ifndef POUNDLOCK_TICKETS_H
#define POUNDLOCK_TICKETS_H

#include "part/slot.h"
#include "part/wait.h"

struct tickets {
	W_ATOMIC(uint32_t) next;
	W_ATOMIC(uint32_t) serving;
};

#define TICKETS_STEP 2u
#define TICKETS_SLEEPERS 1u

/* Takes a number if it is served at once. */
static inline bool tickets_try_acquire(struct tickets *tickets)
{
	/*
	 * [TICKETS-1] acquire: pairs with [TICKETS-6], [TICKETS-7]; the previous critical section.
	 * A free lock has no sleepers: the bit is 0
	 */
	uint32_t serving = w_load_acquire(&tickets->serving);

	/* relaxed: the acquire above orders the last holder's writes; a number publishes nothing */
	return w_compare_exchange_relaxed(&tickets->next, &serving, serving + TICKETS_STEP);
}

/* The slot on which the waiter for @number of @serving sleeps. */
static inline W_ATOMIC(uint32_t) *tickets_slot(W_ATOMIC(uint32_t) *serving, uint32_t number)
{
	return w_slot((uint64_t)(uintptr_t)serving << 32 | number);
}

/* Sleeps until @serving is @number. */
static inline void tickets_park(W_ATOMIC(uint32_t) *serving, uint32_t number)
{
	W_ATOMIC(uint32_t) *slot = tickets_slot(serving, number);
	uint32_t seen;

	/* [TICKETS-2] acquire: pairs with [TICKETS-7], as [TICKETS-1] */
	while ((w_load_acquire(serving) & ~TICKETS_SLEEPERS) != number) {
		seen = slot_announce(slot);
		/*
		 * [TICKETS-8] acq_rel: release pairs with [TICKETS-7]: the announcement, and that
		 * our number was issued; acquire pairs with [TICKETS-7], as [TICKETS-1]
		 */
		if ((w_fetch_or_acq_rel(serving, TICKETS_SLEEPERS) & ~TICKETS_SLEEPERS) == number)
			return;
		slot_sleep(slot, seen);
	}
}

/*
 * Proportional back-off: pauses for @pauses per number before ours, and reads @serving again.
 * Returns when our number is served, or when the wait in @how ends; the caller reads again.
 */
static inline void tickets_stay_away(W_ATOMIC(uint32_t) *serving, uint32_t number, uint32_t pauses,
				     enum w_how how)
{
	/* relaxed: only the distance to our turn */
	uint32_t seen = w_load_relaxed(serving) & ~TICKETS_SLEEPERS, before = ~seen;

	while (seen != number && seen != before) {
		w_pause_for((number - seen) / TICKETS_STEP * pauses);
		before = seen;
		/* [TICKETS-3] acquire: pairs with nothing; the caller reads again */
		seen = w_wait_acquire(serving, (VAL & ~TICKETS_SLEEPERS) != before, how, NULL) &
		       ~TICKETS_SLEEPERS;
	}
}

/* Waits until @serving is @number; @backoff as in tickets_acquire(). */
static W_SLOW void tickets_wait(W_ATOMIC(uint32_t) *serving, uint32_t number, enum wait wait,
				uint32_t backoff)
{
	enum w_how how = wait_ordered(wait);

	w_event(contended);
	if (backoff)
		tickets_stay_away(serving, number, backoff, how);
	/* [TICKETS-4] acquire: pairs with [TICKETS-6], [TICKETS-7], as [TICKETS-1] */
	if ((w_wait_acquire(serving, (VAL & ~TICKETS_SLEEPERS) == number, how, NULL) &
	     ~TICKETS_SLEEPERS) != number)
		tickets_park(serving, number);
}

/* Waits until @serving is @number, if it is not. */
static inline void tickets_await(W_ATOMIC(uint32_t) *serving, uint32_t number, enum wait wait,
				 uint32_t backoff)
{
	/* [TICKETS-5] acquire: pairs with [TICKETS-6], [TICKETS-7], as [TICKETS-1] */
	if (w_unlikely((w_load_acquire(serving) & ~TICKETS_SLEEPERS) != number))
		tickets_wait(serving, number, wait, backoff);
}

/*
 * Takes a number and waits until it is served. @backoff: pauses per number before it, between two
 * reads.
 */
static inline void tickets_acquire(struct tickets *tickets, enum wait wait, uint32_t backoff)
{
	/* relaxed: serving orders the critical sections */
	uint32_t number = w_fetch_add_relaxed(&tickets->next, TICKETS_STEP);

	tickets_await(&tickets->serving, number, wait, backoff);
}

/*
 * Numbers given out and not served yet, including the holder's. Exact to the holder, except for
 * arrivals.
 */
static inline uint32_t tickets_count(struct tickets *tickets)
{
	/* relaxed, both: only the holder changes serving, and its own next is visible to it */
	uint32_t serving = w_load_relaxed(&tickets->serving) & ~TICKETS_SLEEPERS;

	return (w_load_relaxed(&tickets->next) - serving) / TICKETS_STEP;
}

/* Wakes the waiter for @number if it sleeps. @serving is only hashed: its memory may be gone. */
static inline void tickets_wake(W_ATOMIC(uint32_t) *serving, uint32_t number)
{
	W_ATOMIC(uint32_t) *slot = tickets_slot(serving, number);

	/* relaxed: [TICKETS-7] makes earlier announcements visible */
	if ((w_load_relaxed(slot) & SLOT_SLEEPERS) && slot_bump(slot)) {
		w_event(wake_in_cs);
		w_unpark_all(slot);
	}
}

/*
 * Makes @serving @number. @next: the next number to issue, or NULL if @number is certain to have
 * been issued. A waiter that is issued the number after @next was read sets SLEEPERS before it
 * sleeps.
 */
static inline void tickets_serve(W_ATOMIC(uint32_t) *serving, uint32_t number,
				 W_ATOMIC(uint32_t) *next, enum wait wait)
{
	bool issued;

	if (wait != WAIT_PARK) {
		/*
		 * [TICKETS-6] release: pairs with [TICKETS-1], [TICKETS-5], [TICKETS-4],
		 * [PARTITIONED-1]; our critical section
		 */
		w_store_release(serving, number);
		return;
	}
	/* relaxed: a number issued later is announced by SLEEPERS */
	issued = !next || w_load_relaxed(next) != number;
	/*
	 * [TICKETS-7] acq_rel: release pairs with [TICKETS-1], [TICKETS-2], [TICKETS-5],
	 * [TICKETS-4], [TICKETS-8], [PARTITIONED-1]: our critical section; acquire pairs with
	 * [TICKETS-8]: the announcements, and the numbers that were issued before them
	 */
	if ((w_exchange_acq_rel(serving, number) & TICKETS_SLEEPERS) || issued)
		tickets_wake(serving, number);
}

/* The number after the one served, as the holder. */
static inline uint32_t tickets_next(struct tickets *tickets)
{
	/* relaxed: as in tickets_count */
	return (w_load_relaxed(&tickets->serving) & ~TICKETS_SLEEPERS) + TICKETS_STEP;
}

/* Serves the next number, as the holder. */
static inline void tickets_release(struct tickets *tickets, enum wait wait)
{
	tickets_serve(&tickets->serving, tickets_next(tickets), &tickets->next, wait);
}

/*
 * In a forked child, before others use @tickets: takes back all numbers, except the holder's if it
 * is @held.
 */
static inline void tickets_drop_waiters(struct tickets *tickets, bool held)
{
	/* relaxed, all: published by the thread that repairs; nobody else writes before that */
	uint32_t serving = w_load_relaxed(&tickets->serving) & ~TICKETS_SLEEPERS;

	w_store_relaxed(&tickets->serving, serving);
	w_store_relaxed(&tickets->next, held ? serving + TICKETS_STEP : serving);
}

#endif
