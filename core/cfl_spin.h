/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The non-blocking CFL: its head of the queue spins.
 *
 * From: CFL (PPoPP'24) section 3.2, figures 3 and 4. Changed: cfl.h. And newcomers that are entitled to pass do so here,
 * too (section 3.3 has it for the mutex): with two threads there is one waiter, no order, and no other way to be fair.
 *
 * Promises: mutual exclusion. The time for which threads that want the lock hold it is shared among groups by their
 * weights, and in a group among its threads by theirs; who does not want it is owed nothing, and whoever wants it when
 * nobody else does gets it at once (unless told strict_guarantee). A waiter is passed by at most `bypass` others that are
 * moved before it, and by `bypass` newcomers while it waits (a head that was moved before others allows no more of
 * them). The head never sleeps; those behind it do under wait=park. A box a lock, a node a waiter (of the pool), none a
 * holder. Atomic read-modify-writes: 2 uncontended, and one reading of the clock; contended 6: three exchanges (tail, the
 * next head's status and `before`), two compare-exchanges (state, tail), and the release; and three readings of the clock.
 *
 * The structures, and the word: cfl.h.
 */
#ifndef POUNDLOCK_CFL_SPIN_H
#define POUNDLOCK_CFL_SPIN_H

#include "cfl/cfl.h"

struct cfl_spin {
	struct cfl cfl;
};

struct cfl_spin_policy {
	enum wait wait;
	uint32_t bypass, grace_period, strict_guarantee; /* as cfl_policy has them */
};

#define cfl_spin_settings(S) CFL_SETTINGS(S, cfl_spin)
#define cfl_spin_bytes sizeof(void *), sizeof(struct cfl_node), 0

static inline size_t cfl_spin_size(void)
{
	return sizeof(struct cfl_spin);
}

/* Zeroed memory is an unlocked lock. */
static inline void cfl_spin_init(struct cfl_spin *lock, size_t size)
{
	(void)lock, (void)size;
}

/* Takes @lock if it is free, and nobody waits or the thread is entitled to pass. */
static inline bool cfl_spin_try_acquire(struct cfl_spin *lock)
{
	return cfl_try_acquire_by(&lock->cfl);
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool cfl_spin_acquire(struct cfl_spin *lock, struct cfl_spin_policy policy,
				    const struct w_deadline *deadline)
{
	return cfl_acquire_by(&lock->cfl, CFL_SETTLED(policy, false), deadline);
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool cfl_spin_release(struct cfl_spin *lock, struct cfl_spin_policy policy)
{
	return cfl_release_by(&lock->cfl, CFL_SETTLED(policy, false));
}

#endif
