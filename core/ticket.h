/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Ticket lock: take a number, wait until it is served.
 *
 * From: Reed and Kanodia (CACM'79), as in Bueso (CACM'15) and RON (OSDI'23) section 6. Proportional
 * back-off (Mellor-Crummey and Scott, TOCS'91, section 2.2) is a setting.
 *
 * Order: FIFO.
 *
 * Promise: mutual exclusion; first come, first served, except for timed waiters, which poll.
 * Waiters sleep under wait=park. 12 bytes per lock, none per waiter or holder. Atomic
 * read-modify-writes: 1, uncontended and contended (2 under wait=park).
 *
 * part/tickets.h describes the words next and serving, and who may write them.
 *
 * Departures: a waiter may yield or sleep. A number cannot be returned, so a timed waiter polls for
 * a free lock instead of taking one. After its pause a waiter reads once more, and then waits for a
 * hand-over before it pauses again, so that too short a pause causes no polling.
 */
#ifndef POUNDLOCK_TICKET_H
#define POUNDLOCK_TICKET_H

#include "part/generation.h"
#include "part/tickets.h"

struct ticket {
	struct tickets tickets;
	uint32_t embedder[3]; /* overlays __owner, __nusers and __kind in a pthread_mutex_t */
	W_ATOMIC(uint32_t) generation;
};

struct ticket_policy {
	enum wait wait;
	uint32_t backoff; /* pauses between two reads, per number to be served before; 0: none */
};

#define ticket_settings(S) S(ticket, backoff, 0, 0, 1000000)
/* Excludes the embedder's fields. */
#define ticket_bytes sizeof(struct ticket) - 3 * sizeof(uint32_t), 0, 0

/* In a forked child, takes back the numbers of the parent's waiters. */
static inline void ticket_drop_waiters(struct ticket *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return;
	/* A holder from before the fork also waits in generation_claim() before it releases. */
	tickets_drop_waiters(&lock->tickets, tickets_count(&lock->tickets));
	generation_settle(&lock->generation);
}

/* Takes @lock if it is free. */
static inline bool ticket_try_acquire(struct ticket *lock)
{
	ticket_drop_waiters(lock);
	return tickets_try_acquire(&lock->tickets);
}

/* Polls @lock until the deadline. */
static W_SLOW bool ticket_poll(struct ticket *lock, const struct w_deadline *deadline)
{
	uint32_t seen;

	do {
		/*
		 * relaxed: read before the attempt, so that a release during it ends the wait below
		 * at once
		 */
		seen = w_load_relaxed(&lock->tickets.serving);
		if (ticket_try_acquire(lock))
			return true;
		/*
		 * [TICKET-1] acquire: pairs with nothing; ticket_try_acquire() reads the word again
		 */
		(void)w_wait_acquire(&lock->tickets.serving, VAL != seen, W_YIELD, deadline);
	} while (!w_expired(deadline));
	w_event(abandon);
	return false;
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool ticket_acquire(struct ticket *lock, struct ticket_policy policy,
				  const struct w_deadline *deadline)
{
	if (deadline)
		return ticket_poll(lock, deadline);
	ticket_drop_waiters(lock);
	tickets_acquire(&lock->tickets, policy.wait, policy.backoff);
	return true;
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool ticket_release(struct ticket *lock, struct ticket_policy policy)
{
	ticket_drop_waiters(lock);
	if (w_unlikely(!tickets_count(&lock->tickets)))
		return false;
	tickets_release(&lock->tickets, policy.wait);
	return true;
}

#endif
