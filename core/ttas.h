/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TTAS: test, then test-and-set, on one word.
 *
 * From: Lo et al., RON (OSDI'23) section 6, where it is "plock"; Bueso (CACM'15), where it is
 * "CCAS" (compare before compare-and-swap). Exponential back-off (Anderson, TPDS'90) is a setting.
 *
 * Order: no order; unbounded bypass.
 *
 * Promise: mutual exclusion; no order, and no bound on bypass. Waiters sleep under wait=park. 4
 * bytes per lock, none per waiter or holder. Atomic read-modify-writes: 1 uncontended (2 under
 * wait=park), unbounded contended.
 *
 *   FREE ──acquire──▶ HELD ──release──▶ FREE
 *                      │ a waiter is about to sleep              (wait=park only)
 *                      └──▶ HELD_SLEEPERS ──release, unpark──▶ FREE
 */
#ifndef POUNDLOCK_TTAS_H
#define POUNDLOCK_TTAS_H

#include "part/backoff.h"
#include "part/wait.h"

struct ttas {
	W_ATOMIC(uint32_t) word;
};

enum { TTAS_FREE, TTAS_HELD, TTAS_HELD_SLEEPERS };

struct ttas_policy {
	enum wait wait;
	uint32_t backoff; /* longest pause after a failed attempt, in pause instructions; 0: none */
};

#define ttas_settings(S) S(ttas, backoff, 0, 0, 1000000)
#define ttas_bytes sizeof(struct ttas), 0, 0

/* FREE -> HELD. */
static inline bool ttas_try_acquire(struct ttas *lock)
{
	uint32_t seen = TTAS_FREE;

	/* [TTAS-1] acquire: pairs with [TTAS-4], [TTAS-5]; the previous critical section */
	return w_compare_exchange_acquire(&lock->word, &seen, TTAS_HELD);
}

/*
 * Any -> HELD_SLEEPERS until the old value is FREE; sleeps in between. Returns false if @deadline
 * passes first. The word may then be HELD_SLEEPERS without a sleeper, which costs one wake-up.
 */
static inline bool ttas_park(struct ttas *lock, const struct w_deadline *deadline)
{
	/* [TTAS-2] acquire: pairs with [TTAS-5], as [TTAS-1] */
	while (w_exchange_acquire(&lock->word, TTAS_HELD_SLEEPERS) != TTAS_FREE) {
		/*
		 * A waiter may leave only here: if it consumed a wake-up, the holder now owes one
		 * to the sleepers.
		 */
		if (w_expired(deadline)) {
			w_event(abandon);
			return false;
		}
		w_event(park);
		w_park(&lock->word, TTAS_HELD_SLEEPERS, deadline);
	}
	return true;
}

static W_SLOW bool ttas_acquire_contended(struct ttas *lock, struct ttas_policy policy,
					  const struct w_deadline *deadline)
{
	uint32_t pauses = 1;

	w_event(contended);
	/* [TTAS-3] acquire: pairs with nothing; [TTAS-1] reads the word again */
	while (w_wait_acquire(&lock->word, VAL == TTAS_FREE, wait_race(policy.wait), deadline) ==
	       TTAS_FREE) {
		if (ttas_try_acquire(lock))
			return true;
		pauses = backoff_pause(pauses, policy.backoff);
	}
	if (policy.wait == WAIT_PARK)
		return ttas_park(lock, deadline);
	w_event(abandon);
	return false;
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool ttas_acquire(struct ttas *lock, struct ttas_policy policy,
				const struct w_deadline *deadline)
{
	return w_likely(ttas_try_acquire(lock)) || ttas_acquire_contended(lock, policy, deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool ttas_release(struct ttas *lock, struct ttas_policy policy)
{
	/* relaxed: only the holder writes FREE, so it reads its own write */
	if (w_unlikely(w_load_relaxed(&lock->word) == TTAS_FREE))
		return false;
	if (policy.wait != WAIT_PARK) {
		/* [TTAS-4] release: pairs with [TTAS-1]; our critical section */
		w_store_release(&lock->word, TTAS_FREE);
		/* [TTAS-5] release: pairs with [TTAS-1], [TTAS-2]; our critical section */
	} else if (w_exchange_release(&lock->word, TTAS_FREE) == TTAS_HELD_SLEEPERS) {
		w_event(wake_late);
		w_unpark(&lock->word);
	}
	return true;
}

#endif
