/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * RON-ticket: RON's tour, with a ticket lock at each place.
 *
 * From: Lo et al., "RON", OSDI'23, section 5.2, algorithm 2. part/tour.h contains the tour,
 * part/tickets.h the tickets.
 *
 * Order: the next on a tour of the CPUs; FIFO within a CPU.
 *
 * Promise: mutual exclusion. Places are served in the order of the tour, waiters of one place in
 * order of arrival; timed waiters poll. A waiter with k others before it at its place is overtaken
 * by at most k + 1 waiters of each other place. Waiters sleep under wait=park. A box of
 * part/tour.h's size; none per waiter or holder, however many threads wait. Atomic
 * read-modify-writes: 2 uncontended; contended 1 (the ticket) or 2 (and the word) to wait, none to
 * hand over (1 under wait=park), and 1 if the place's group becomes empty.
 *
 *   place   next      the next number to issue, in steps of 2
 *           serving   the last number served, in steps of 2, + SLEEPERS as in part/tickets.h
 *
 *   next == serving        nobody waits: the last number issued has been served
 *   next == serving + 2k   k waiters
 *
 * Unlike in part/tickets.h, the number served may be that of an earlier holder: a thread that found
 * the lock free has none. So a waiter's number is the one that next advances to. Only holders
 * advance serving; a waiter may set SLEEPERS.
 *
 * Departures from the paper: algorithm 2 counts a waiter (nWait) before it has a ticket, and an
 * unlock that finds the count above 0 searches until a ticket is there, however long its thread is
 * preempted. Here the ticket comes first, and what the unlock reads comes last: every waiter that
 * it finds has a ticket. Waiters that are not next at their place wait as `wait` specifies; the
 * algorithm's always yield. A number cannot be returned, so a timed waiter polls for a free lock.
 */
#ifndef POUNDLOCK_RON_TICKET_H
#define POUNDLOCK_RON_TICKET_H

#include "part/tickets.h"
#include "part/tour.h"

struct ron_ticket {
	struct tour tour;
};

struct ron_ticket_policy {
	enum wait wait;
};

#define ron_ticket_settings(S)
#define ron_ticket_bytes sizeof(void *), 0, 0

static inline bool ron_ticket_waits(void *place)
{
	return tickets_count(place);
}

static inline bool ron_ticket_grant(void *place, enum wait wait)
{
	struct tickets *tickets = place;

	tickets_serve(&tickets->serving, tickets_next(tickets), NULL, wait);
	return true;
}

static inline void ron_ticket_clear(void *place)
{
	tickets_drop_waiters(place, false);
}

static const struct tour_kind ron_ticket_kind = {ron_ticket_waits, ron_ticket_grant,
						 ron_ticket_clear};

_Static_assert(sizeof(struct tickets) <= TOUR_PLACE_BYTES, "a place has room for it");

static inline size_t ron_ticket_size(void)
{
	return tour_size();
}

static inline void ron_ticket_init(struct ron_ticket *lock, size_t size)
{
	(void)size;
	tour_init(&lock->tour);
}

static W_SLOW void ron_ticket_hand_over(struct ron_ticket *lock, enum wait wait)
{
	tour_hand_over(&lock->tour, &ron_ticket_kind, wait);
}

/* Takes @lock if it is free. */
static inline bool ron_ticket_try_acquire(struct ron_ticket *lock)
{
	return tour_try_acquire(&lock->tour);
}

/* Waits for @lock at the place of the current CPU. Returns the place, for tour_arrive(). */
static inline uint32_t ron_ticket_wait(struct ron_ticket *lock, enum wait wait)
{
	const uint32_t here = tour_here(&lock->tour);
	struct tickets *place = tour_place(&lock->tour, here);
	/* relaxed: tour_mark() announces it */
	const uint32_t number = w_fetch_add_relaxed(&place->next, TICKETS_STEP) + TICKETS_STEP;

	if (tour_mark(&lock->tour, here))
		ron_ticket_hand_over(lock, wait);
	tickets_wait(&place->serving, number, wait, 0);
	return here;
}

static W_SLOW bool ron_ticket_acquire_slow(struct ron_ticket *lock, enum wait wait,
					   const struct w_deadline *deadline)
{
	if (deadline)
		return tour_poll(&lock->tour, deadline);
	tour_drop_waiters(&lock->tour, &ron_ticket_kind);
	tour_arrive(&lock->tour, ron_ticket_wait(lock, wait));
	return true;
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool ron_ticket_acquire(struct ron_ticket *lock, struct ron_ticket_policy policy,
				      const struct w_deadline *deadline)
{
	return w_likely(ron_ticket_try_acquire(lock)) ||
	       ron_ticket_acquire_slow(lock, policy.wait, deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool ron_ticket_release(struct ron_ticket *lock, struct ron_ticket_policy policy)
{
	bool held = true;

	if (w_unlikely(!tour_leave(&lock->tour, &held)) && held)
		ron_ticket_hand_over(lock, policy.wait);
	return held;
}

#endif
