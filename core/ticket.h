/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Ticket lock: take a number, wait until it is served.
 *
 * From: Reed and Kanodia (CACM'79) as in Bueso (CACM'15) and RON (OSDI'23) section 6.
 * Changed: a waiter may yield or sleep. As a number cannot be given back, a timed waiter polls for a free lock instead
 * of taking one.
 *
 * Promises: mutual exclusion; first come, first served, but for timed waiters. Blocking under wait=park, where each
 * release wakes all sleepers, since they sleep on one word. 12 bytes a lock, none a waiter or holder. Atomic
 * read-modify-writes: 1 uncontended and contended (2 under wait=park).
 *
 *   next      the next number to give out, in steps of 2
 *   serving   the number served, in steps of 2, + 1 if somebody sleeps until it changes (wait=park only)
 *
 *   next == serving      free
 *   next == serving + 2k held, k - 1 waiters
 *
 * Only the holder moves serving on; a waiter may set its lowest bit.
 */
#ifndef POUNDLOCK_TICKET_H
#define POUNDLOCK_TICKET_H

#include "generation.h"
#include "wait.h"

struct ticket {
	W_ATOMIC(uint32_t) next;
	W_ATOMIC(uint32_t) serving;
	W_ATOMIC(uint32_t) generation;
};

struct ticket_policy {
	enum wait wait;
};

#define ticket_settings(S)
#define ticket_bytes sizeof(struct ticket), 0, 0

#define TICKET_STEP 2u
#define TICKET_SLEEPERS 1u

/* In a forked child: takes back the numbers of the waiters that do not exist here. */
static inline void ticket_drop_waiters(struct ticket *lock)
{
	uint32_t serving, next;

	if (w_likely(!generation_claim(&lock->generation)))
		return;
	/* relaxed, all: [G4] publishes them, and nobody else writes until then: a holder from before the fork waits in
	 * generation_claim() too before it releases */
	serving = w_load_relaxed(&lock->serving) & ~TICKET_SLEEPERS;
	next = w_load_relaxed(&lock->next);
	w_store_relaxed(&lock->serving, serving);
	w_store_relaxed(&lock->next, next == serving ? serving : serving + TICKET_STEP);
	generation_settle(&lock->generation);
}

/* Takes @lock if it is free. */
static inline bool ticket_try_acquire(struct ticket *lock)
{
	uint32_t serving;

	ticket_drop_waiters(lock);
	/* [K1] acquire: pairs with [K4], [K5]; the last holder's critical section. Free, it has no sleepers: the bit is 0 */
	serving = w_load_acquire(&lock->serving);
	/* relaxed: the acquire above has the last holder's doing; a number publishes nothing */
	return w_compare_exchange_relaxed(&lock->next, &serving, serving + TICKET_STEP);
}

/* Sleeps until @ticket is served. */
static inline void ticket_park(struct ticket *lock, uint32_t ticket)
{
	uint32_t seen;

	/* [K2] acquire: pairs with [K5], as [K1] */
	while (((seen = w_load_acquire(&lock->serving)) & ~TICKET_SLEEPERS) != ticket) {
		/* relaxed: the bit says only that there is somebody to wake */
		if (!(seen & TICKET_SLEEPERS) &&
		    !w_compare_exchange_relaxed(&lock->serving, &seen, seen | TICKET_SLEEPERS))
			continue;
		w_event(park);
		w_park(&lock->serving, seen | TICKET_SLEEPERS, NULL);
	}
}

/* Takes @lock by polling until the deadline. */
static W_SLOW bool ticket_poll(struct ticket *lock, const struct w_deadline *deadline)
{
	uint32_t seen;

	do {
		/* relaxed: read before the try, so that a release that the try missed ends the wait below at once */
		seen = w_load_relaxed(&lock->serving);
		if (ticket_try_acquire(lock))
			return true;
		/* [K6] acquire: pairs with nothing; ticket_try_acquire reads again */
		(void)w_wait_acquire(&lock->serving, VAL != seen, W_YIELD, deadline);
	} while (!w_expired(deadline));
	w_event(abandon);
	return false;
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool ticket_acquire(struct ticket *lock, struct ticket_policy policy, const struct w_deadline *deadline)
{
	uint32_t ticket;

	if (deadline)
		return ticket_poll(lock, deadline);
	ticket_drop_waiters(lock);
	/* relaxed: order comes from serving */
	ticket = w_fetch_add_relaxed(&lock->next, TICKET_STEP);
	/* [K3] acquire: pairs with [K4], [K5], as [K1] */
	if (w_likely((w_load_acquire(&lock->serving) & ~TICKET_SLEEPERS) == ticket))
		return true;
	w_event(contended);
	/* [K7] acquire: pairs with [K4], [K5], as [K1] */
	if ((w_wait_acquire(&lock->serving, (VAL & ~TICKET_SLEEPERS) == ticket, wait_turn(policy.wait), NULL) &
	     ~TICKET_SLEEPERS) != ticket)
		ticket_park(lock, ticket);
	return true;
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool ticket_release(struct ticket *lock, struct ticket_policy policy)
{
	uint32_t serving;

	ticket_drop_waiters(lock);
	/* relaxed, both: only the holder moves serving on, and its own next is before it */
	serving = w_load_relaxed(&lock->serving) & ~TICKET_SLEEPERS;
	if (w_unlikely(w_load_relaxed(&lock->next) == serving))
		return false;
	if (policy.wait != WAIT_PARK) {
		/* [K4] release: pairs with [K1], [K3], [K7]; our critical section */
		w_store_release(&lock->serving, serving + TICKET_STEP);
		/* [K5] release: pairs with [K1], [K2], [K3], [K7]; our critical section */
	} else if (w_exchange_release(&lock->serving, serving + TICKET_STEP) & TICKET_SLEEPERS) {
		w_event(wake_in_cs);
		w_unpark_all(&lock->serving);
	}
	return true;
}

#endif
