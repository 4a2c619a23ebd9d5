/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * RON-plock: RON's tour with a test-and-set lock at each place. The scheduler decides which thread
 * of a place is next, so the lock does not wait for a thread that is not running.
 *
 * From: Lo et al., "RON", OSDI'23, section 5.2, algorithm 3. part/tour.h contains the tour.
 *
 * Order: the next on a tour of the CPUs; no order within a CPU.
 *
 * Promise: mutual exclusion; each other place is served at most once before a waiter's place is
 * served. Within a place there is no order, and no bound on bypass, newcomers included. Waiters
 * sleep under wait=park. A box of part/tour.h's size; none per waiter or holder, however many
 * threads wait. Atomic read-modify-writes: 2 uncontended; contended at least 2 (the count, the
 * token) or 3 (and the word) to wait, 1 to hand over (the token), and 1 more if the place's group
 * becomes empty.
 *
 *   place = TOKEN | SLEEPERS | number of waiters
 *     TOKEN     the lock is here. Set by the holder if the number is not 0; cleared by a waiter,
 *               which then holds the lock
 *     SLEEPERS  a waiter sleeps until the word changes (wait=park only). Set by a waiter; cleared
 *               by the last one that leaves
 *
 *   0 ──waiter──▶ 1 ──waiter──▶ 2 ──holder──▶ TOKEN | 2 ──waiter, the new holder──▶ 1
 *   1 ──waiter, at its deadline──▶ 0
 *
 * Departures from the paper: algorithm 3 reads numWait and then sets lock = HAS_LOCK. If the last
 * waiter leaves in between, or migrates to another CPU (its threads read their CPU repeatedly),
 * nobody takes the token and all threads wait indefinitely. Here the count and the token are one
 * word: the token is only given together with a count above 0, and a waiter that wants to leave but
 * finds the token takes it. The holder is not counted. A waiter may yield, sleep, or leave at a
 * deadline. part/tour.h lists the rest.
 */
#ifndef POUNDLOCK_RON_PLOCK_H
#define POUNDLOCK_RON_PLOCK_H

#include "part/tour.h"

#define RON_PLOCK_TOKEN 0x80000000u
#define RON_PLOCK_SLEEPERS 0x40000000u
#define RON_PLOCK_WAITERS 0x3fffffffu

struct ron_plock_place {
	W_ATOMIC(uint32_t) word;
};

struct ron_plock {
	struct tour tour;
};

struct ron_plock_policy {
	enum wait wait;
};

#define ron_plock_settings(S)
#define ron_plock_bytes sizeof(void *), 0, 0

static inline bool ron_plock_waits(void *memory)
{
	struct ron_plock_place *place = memory;

	/* relaxed: only a hint for the search */
	return w_load_relaxed(&place->word) & RON_PLOCK_WAITERS;
}

static inline bool ron_plock_grant(void *memory, enum wait wait)
{
	struct ron_plock_place *place = memory;
	/*
	 * relaxed: the compare-exchange decides, and the waiter behind a stale 0 has set its
	 * group's bit
	 */
	uint32_t seen = w_load_relaxed(&place->word);

	(void)wait;
	do
		if (!(seen & RON_PLOCK_WAITERS))
			return false;
	/* [RON_PLOCK-1] release: pairs with [RON_PLOCK-2]; our critical section */
	while (!w_compare_exchange_release(&place->word, &seen, seen | RON_PLOCK_TOKEN));
	if (seen & RON_PLOCK_SLEEPERS) {
		w_event(wake_in_cs);
		w_unpark(&place->word);
	}
	return true;
}

static inline void ron_plock_clear(void *memory)
{
	struct ron_plock_place *place = memory;

	/* relaxed: [GENERATION-3] publishes it */
	w_store_relaxed(&place->word, 0);
}

static const struct tour_kind ron_plock_kind = {ron_plock_waits, ron_plock_grant, ron_plock_clear};

_Static_assert(sizeof(struct ron_plock_place) <= TOUR_PLACE_BYTES, "a place has room for it");

static inline size_t ron_plock_size(void)
{
	return tour_size();
}

static inline void ron_plock_init(struct ron_plock *lock, size_t size)
{
	(void)size;
	tour_init(&lock->tour);
}

static W_SLOW void ron_plock_hand_over(struct ron_plock *lock, enum wait wait)
{
	tour_hand_over(&lock->tour, &ron_plock_kind, wait);
}

/* Takes @lock if it is free. */
static inline bool ron_plock_try_acquire(struct ron_plock *lock)
{
	return tour_try_acquire(&lock->tour);
}

/*
 * n -> n - 1, without the token. Returns true if the token was there: the caller then holds the
 * lock. @only_with_token: do nothing without it.
 */
static inline bool ron_plock_leave(struct ron_plock_place *place, bool only_with_token)
{
	/* relaxed: the compare-exchange decides */
	uint32_t left, seen = w_load_relaxed(&place->word);

	do {
		if (only_with_token && !(seen & RON_PLOCK_TOKEN))
			return false;
		left = (seen & ~RON_PLOCK_TOKEN) - 1;
		/* [RON_PLOCK-2] acquire: pairs with [RON_PLOCK-1]; the previous critical section */
	} while (!w_compare_exchange_acquire(&place->word, &seen,
					     left & RON_PLOCK_WAITERS ? left : 0));
	return seen & RON_PLOCK_TOKEN;
}

/* n -> SLEEPERS|n, then sleeps until @place changes, unless it has the token. */
static inline void ron_plock_park(struct ron_plock_place *place, const struct w_deadline *deadline)
{
	/* relaxed, both: the bit only requests a wake-up */
	uint32_t seen = w_load_relaxed(&place->word);

	if (seen & RON_PLOCK_TOKEN)
		return;
	if (!(seen & RON_PLOCK_SLEEPERS) &&
	    !w_compare_exchange_relaxed(&place->word, &seen, seen | RON_PLOCK_SLEEPERS))
		return;
	w_event(park);
	w_park(&place->word, seen | RON_PLOCK_SLEEPERS, deadline);
}

/*
 * Waits for the token of @place, which counts the caller, and takes it. Returns false if @deadline
 * passes first.
 */
static inline bool ron_plock_wait(struct ron_plock_place *place, enum wait wait,
				  const struct w_deadline *deadline)
{
	w_event(contended);
	do {
		/* [RON_PLOCK-3] acquire: pairs with nothing; [RON_PLOCK-2] reads the word again */
		if (w_wait_acquire(&place->word, VAL & RON_PLOCK_TOKEN, wait_ordered(wait),
				   deadline) &
		    RON_PLOCK_TOKEN) {
			if (ron_plock_leave(place, true))
				return true;
		} else if (wait == WAIT_PARK) {
			ron_plock_park(place, deadline);
		}
	} while (!w_expired(deadline));
	if (ron_plock_leave(place, false))
		return true;
	w_event(abandon);
	return false;
}

static W_SLOW bool ron_plock_acquire_slow(struct ron_plock *lock, enum wait wait,
					  const struct w_deadline *deadline)
{
	struct ron_plock_place *place;
	uint32_t here;

	tour_drop_waiters(&lock->tour, &ron_plock_kind);
	here = tour_here(&lock->tour);
	place = tour_place(&lock->tour, here);
	/* relaxed: tour_mark() announces it */
	(void)w_fetch_add_relaxed(&place->word, 1);
	if (tour_mark(&lock->tour, here))
		ron_plock_hand_over(lock, wait);
	if (!ron_plock_wait(place, wait, deadline))
		return false;
	tour_arrive(&lock->tour, here);
	return true;
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool ron_plock_acquire(struct ron_plock *lock, struct ron_plock_policy policy,
				     const struct w_deadline *deadline)
{
	return w_likely(ron_plock_try_acquire(lock)) ||
	       ron_plock_acquire_slow(lock, policy.wait, deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool ron_plock_release(struct ron_plock *lock, struct ron_plock_policy policy)
{
	bool held = true;

	if (w_unlikely(!tour_leave(&lock->tour, &held)) && held)
		ron_plock_hand_over(lock, policy.wait);
	return held;
}

#endif
