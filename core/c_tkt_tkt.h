/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * C-TKT-TKT: a cohort lock of a ticket lock for each domain and one between them.
 *
 * From: Dice, Marathe and Shavit, "Lock cohorting", PPoPP'12 and TOPC'15, section 3.2 there. Changed: see cohort.h.
 *
 * Promises: mutual exclusion; within a domain first come, first served; between D domains each in turn: a waiter that is
 * next in its domain is passed by at most (D - 1) * (batch + 1) acquisitions of the others; but for timed waiters and
 * trylock, which pass and are passed without bound. Blocking under wait=park, where each release wakes all sleepers of
 * the domain. 64 bytes a lock and 128 a domain in its box; none a waiter or holder. Atomic read-modify-writes: 2
 * uncontended (4 under wait=park), 1 within a batch (2 under wait=park).
 *
 * The structure, and which state is legal when: cohort.h; the words of both locks: tickets.h.
 */
#ifndef POUNDLOCK_C_TKT_TKT_H
#define POUNDLOCK_C_TKT_TKT_H

#include "part/cohort.h"

struct c_tkt_tkt {
	struct cohort cohort;
};

struct c_tkt_tkt_policy {
	enum wait wait;
	uint32_t batch; /* consecutive hand-overs within one domain */
};

#define c_tkt_tkt_settings(S) S(c_tkt_tkt, batch, 64, 1, UINT32_MAX)
#define c_tkt_tkt_bytes 0, 0, 0
#define c_tkt_tkt_size cohort_size

static inline void c_tkt_tkt_init(struct c_tkt_tkt *lock, size_t size)
{
	cohort_init(&lock->cohort, size);
}

static inline struct cohort_policy c_tkt_tkt_cohort(struct c_tkt_tkt_policy policy)
{
	return (struct cohort_policy){COHORT_TKT, COHORT_LOCAL_TKT, policy.wait, policy.batch, 0};
}

/* Takes @lock if it is free. */
static inline bool c_tkt_tkt_try_acquire(struct c_tkt_tkt *lock)
{
	cohort_see_to_fork(&lock->cohort, COHORT_TKT);
	return cohort_try_acquire(&lock->cohort, COHORT_TKT);
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool c_tkt_tkt_acquire(struct c_tkt_tkt *lock, struct c_tkt_tkt_policy policy,
				     const struct w_deadline *deadline)
{
	cohort_see_to_fork(&lock->cohort, COHORT_TKT);
	if (deadline)
		return cohort_poll(&lock->cohort, COHORT_TKT, deadline);
	cohort_acquire(&lock->cohort, NULL, c_tkt_tkt_cohort(policy));
	return true;
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool c_tkt_tkt_release(struct c_tkt_tkt *lock, struct c_tkt_tkt_policy policy)
{
	cohort_see_to_fork(&lock->cohort, COHORT_TKT);
	if (w_unlikely(!tickets_count(&lock->cohort.tkt)))
		return false;
	cohort_release(&lock->cohort, NULL, c_tkt_tkt_cohort(policy));
	return true;
}

#endif
