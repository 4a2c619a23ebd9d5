/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The blocking CFL: its head of the queue sleeps, and so may be passed by newcomers that have had less than their share.
 *
 * From: CFL (PPoPP'24) section 3.3. Changed: cfl.h.
 *
 * Promises: mutual exclusion. The time for which threads that want the lock hold it is shared among groups by their
 * weights, and in a group among its threads by theirs; who does not want it is owed nothing, and whoever wants it when
 * nobody else does gets it at once (unless told strict_guarantee). A waiter is passed by at most `bypass` others that are
 * moved before it, and by `bypass` newcomers while it waits (a head that was moved before others allows no more of
 * them). Blocking. A box a lock, a node a waiter (of the pool), none a holder. Atomic read-modify-writes:
 * 2 uncontended, and one reading of the clock; contended 6: three exchanges (tail, the next head's status and `before`), two
 * compare-exchanges (state, tail), and the release; and three readings of the clock.
 *
 * The structures, and the word: cfl.h.
 */
#ifndef POUNDLOCK_CFL_MUTEX_H
#define POUNDLOCK_CFL_MUTEX_H

#include "cfl/cfl.h"

struct cfl_mutex {
	struct cfl cfl;
};

struct cfl_mutex_policy {
	enum wait wait;
	uint32_t bypass, grace_period, strict_guarantee; /* as cfl_policy has them */
};

#define cfl_mutex_settings(S) CFL_SETTINGS(S, cfl_mutex)
#define cfl_mutex_bytes sizeof(void *), sizeof(struct cfl_node), 0

static inline size_t cfl_mutex_size(void)
{
	return sizeof(struct cfl_mutex);
}

/* Zeroed memory is an unlocked lock. */
static inline void cfl_mutex_init(struct cfl_mutex *lock, size_t size)
{
	(void)lock, (void)size;
}

/* Takes @lock if it is free, and nobody waits or the thread is entitled to pass. */
static inline bool cfl_mutex_try_acquire(struct cfl_mutex *lock)
{
	return cfl_try_acquire_by(&lock->cfl);
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool cfl_mutex_acquire(struct cfl_mutex *lock, struct cfl_mutex_policy policy,
				     const struct w_deadline *deadline)
{
	return cfl_acquire_by(&lock->cfl, CFL_SETTLED(policy, true), deadline);
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool cfl_mutex_release(struct cfl_mutex *lock, struct cfl_mutex_policy policy)
{
	return cfl_release_by(&lock->cfl, CFL_SETTLED(policy, true));
}

#endif
