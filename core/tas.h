/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * TAS: test-and-set, again and again, on one word.
 *
 * From: Anderson, "The performance of spin lock alternatives for shared-memory multiprocessors", TPDS'90; the "TAS" of
 * RON (OSDI'23) and of ShflLock (SOSP'19) table 1. With exponential back-off, Anderson's, as a policy.
 * Changed: the test-and-set is a compare-exchange, which leaves the mark of sleepers alone; it takes the cache line
 * all the same, also in vain.
 *
 * Promises: as ttas.h, whose word it is and whose sleep: mutual exclusion, and nothing about order. Blocking under
 * wait=park, after `tries` vain tries. 4 bytes a lock, none a waiter or holder. Atomic read-modify-writes: 1 uncontended
 * (2 under wait=park), unbounded contended: one for each look.
 *
 *   FREE ──acquire──▶ HELD ──release──▶ FREE            and HELD_SLEEPERS: see ttas.h
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
	uint32_t backoff; /* the longest pause after a vain try, in pause instructions; 0: none */
	uint32_t tries;   /* under wait=park, the vain tries before a waiter sleeps; at least 1 */
};

#define tas_settings(S) S(tas, backoff, 0, 0, 1000000, 2) S(tas, tries, 100, 1, 1000000000, 1)
#define tas_bytes sizeof(struct tas), 0, 0

/* Takes @lock if it is free. */
static inline bool tas_try_acquire(struct tas *lock)
{
	return ttas_try_acquire(&lock->word);
}

static W_SLOW bool tas_acquire_contended(struct tas *lock, struct tas_policy policy, const struct w_deadline *deadline)
{
	uint32_t pauses = 1, tries = 0, spun = 0;

	w_event(contended);
	while (!w_expired(deadline)) {
		pauses = backoff_pause(pauses, policy.backoff);
		backoff_give_way(policy.wait, &spun, pauses);
		if (tas_try_acquire(lock))
			return true;
		if (policy.wait == WAIT_PARK && ++tries == policy.tries)
			return ttas_park(&lock->word, deadline);
	}
	w_event(abandon);
	return false;
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool tas_acquire(struct tas *lock, struct tas_policy policy, const struct w_deadline *deadline)
{
	return w_likely(tas_try_acquire(lock)) || tas_acquire_contended(lock, policy, deadline);
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool tas_release(struct tas *lock, struct tas_policy policy)
{
	return ttas_release(&lock->word, (struct ttas_policy){.wait = policy.wait});
}

#endif
