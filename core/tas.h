/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TAS: test-and-set on one word, repeated until it succeeds.
 *
 * From: Anderson, "The performance of spin lock alternatives for shared-memory multiprocessors",
 * TPDS'90, with its exponential back-off as a setting. It is "TAS" in RON (OSDI'23) and in table 1
 * of ShflLock (SOSP'19).
 *
 * Order: no order; unbounded bypass.
 *
 * Promise: mutual exclusion; no order, and no bound on bypass. Under wait=park, waiters sleep after
 * `tries` failed attempts. 4 bytes per lock, none per waiter or holder. Atomic read-modify-writes:
 * 1 uncontended (2 under wait=park), unbounded contended: one per attempt.
 *
 * The word and the sleep are ttas.h's:
 *
 *   FREE ──acquire──▶ HELD ──release──▶ FREE            HELD_SLEEPERS: see ttas.h
 *
 * Departure: the test-and-set is a compare-exchange, so that it keeps HELD_SLEEPERS. A failed one
 * takes the cache line all the same.
 */
#ifndef POUNDLOCK_TAS_H
#define POUNDLOCK_TAS_H

#include "part/backoff.h"
#include "ttas.h"

struct tas {
	struct ttas word;
};

struct tas_policy {
	enum wait wait;
	uint32_t backoff; /* longest pause after a failed attempt, in pause instructions; 0: none */
	uint32_t tries;   /* under wait=park, failed attempts before a waiter sleeps; at least 1 */
};

#define tas_settings(S) S(tas, backoff, 0, 0, 1000000) S(tas, tries, 100, 1, 1000000000)
#define tas_bytes sizeof(struct tas), 0, 0

/* FREE -> HELD. */
static inline bool tas_try_acquire(struct tas *lock)
{
	return ttas_try_acquire(&lock->word);
}

static W_SLOW bool tas_acquire_contended(struct tas *lock, struct tas_policy policy,
					 const struct w_deadline *deadline)
{
	uint32_t pauses = 1, tries = 0, spun = 0;

	w_event(contended);
	while (!w_expired(deadline)) {
		pauses = backoff_pause(pauses, policy.backoff);
		backoff_yield(policy.wait, &spun, pauses);
		if (tas_try_acquire(lock))
			return true;
		if (policy.wait == WAIT_PARK && ++tries == policy.tries)
			return ttas_park(&lock->word, deadline);
	}
	w_event(abandon);
	return false;
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool tas_acquire(struct tas *lock, struct tas_policy policy,
			       const struct w_deadline *deadline)
{
	return w_likely(tas_try_acquire(lock)) || tas_acquire_contended(lock, policy, deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool tas_release(struct tas *lock, struct tas_policy policy)
{
	return ttas_release(&lock->word, (struct ttas_policy){.wait = policy.wait});
}

#endif
