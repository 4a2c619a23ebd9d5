/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The non-blocking CFL: the head of the queue spins.
 *
 * From: Park and Eom (CFL), PPoPP'24, section 3.2, figures 3 and 4. cfl/order.h lists the
 * departures. One more: newcomers that may overtake do so here as well (section 3.3 has it for the
 * mutex). With two threads there is one waiter, no order to choose, and no other way to be fair.
 *
 * Promise: as cfl_mutex.h, but the head never sleeps; the waiters behind it do under wait=park.
 * Boxed; one pool node per waiter, none per holder. Atomic read-modify-writes: as cfl_mutex.h.
 *
 * cfl/cfl.h describes the word.
 */
#ifndef POUNDLOCK_CFL_SPIN_H
#define POUNDLOCK_CFL_SPIN_H

#include "cfl/cfl.h"

struct cfl_spin {
	struct cfl cfl;
};

struct cfl_spin_policy {
	enum wait wait;
	uint32_t bypass, grace_period, strict_guarantee; /* as in struct cfl_policy */
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

/* Takes @lock if it is free and either nobody waits or this thread may overtake. */
static inline bool cfl_spin_try_acquire(struct cfl_spin *lock)
{
	return cfl_try_acquire_by(&lock->cfl);
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool cfl_spin_acquire(struct cfl_spin *lock, struct cfl_spin_policy policy,
				    const struct w_deadline *deadline)
{
	return cfl_acquire_by(&lock->cfl, CFL_POLICY(policy, false), deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool cfl_spin_release(struct cfl_spin *lock, struct cfl_spin_policy policy)
{
	return cfl_release_by(&lock->cfl, CFL_POLICY(policy, false));
}

#endif
