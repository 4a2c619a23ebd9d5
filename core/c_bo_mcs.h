/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * C-BO-MCS: a cohort lock of one MCS lock per domain, and a test-and-set lock with back-off between
 * the domains.
 *
 * From: Dice, Marathe and Shavit, "Lock cohorting", PPoPP'12 and TOPC'15, section 3.1 of the
 * latter.
 *
 * Order: FIFO within a domain, in bounded batches; no order between domains.
 *
 * Promise: mutual exclusion; within a domain first come, first served, except for timed waiters,
 * which poll. Between domains there is no order and no bound on bypass, because the global lock has
 * none. Waiters sleep under wait=park. 64 bytes per lock and 128 per domain, boxed; one node per
 * waiter and per holder. Atomic read-modify-writes: 3 uncontended (4 under wait=park), 2 within a
 * batch, as MCS.
 *
 * part/cohort.h describes the structure, its states and the departures from the paper; mcs.h the
 * local queue; ttas.h the global word. One more departure: only spinning waiters back off. The
 * others yield or sleep, and should not be delayed further. The paper leaves the constants of the
 * back-off open; 512 pause instructions, doubled up to `backoff`, and its default are those of the
 * lock that later papers measure (LiTL's, from Concurrency Kit).
 */
#ifndef POUNDLOCK_C_BO_MCS_H
#define POUNDLOCK_C_BO_MCS_H

#include "part/cohort.h"

struct c_bo_mcs {
	struct cohort cohort;
};

struct c_bo_mcs_node {
	struct mcs_node mcs;
};

struct c_bo_mcs_policy {
	enum wait wait;
	uint32_t batch; /* consecutive hand-overs within one domain */
	/* Wait=spin: longest pause of a waiter for the global lock, in pause instructions. */
	uint32_t backoff;
};

/*
 * The back-off is that of the lock which the papers measure (CNA, ShflLock, RON: LiTL's, with the
 * constants of Concurrency Kit): from 512 pauses to 2^20 - 1. It starves the other domains, as
 * theirs does. A shorter one starves them less, and moves the lock's line more often.
 */
#define c_bo_mcs_settings(S) \
	S(c_bo_mcs, batch, 64, 1, UINT32_MAX) S(c_bo_mcs, backoff, 1048575, 1, 1048575)
#define c_bo_mcs_bytes 0, sizeof(struct c_bo_mcs_node), sizeof(struct c_bo_mcs_node)
#define c_bo_mcs_size cohort_size

static inline void c_bo_mcs_init(struct c_bo_mcs *lock, size_t size)
{
	cohort_init(&lock->cohort, size);
}

static inline struct cohort_policy c_bo_mcs_cohort(struct c_bo_mcs_policy policy)
{
	return (struct cohort_policy){COHORT_BO, COHORT_LOCAL_MCS, policy.wait, policy.batch,
				      policy.backoff};
}

/* Takes @lock if it is free. */
static inline bool c_bo_mcs_try_acquire(struct c_bo_mcs *lock, struct c_bo_mcs_node *node)
{
	if (!cohort_try_acquire(&lock->cohort, COHORT_BO))
		return false;
	mcs_node_init(&node->mcs);
	return true;
}

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 */
static inline bool c_bo_mcs_acquire(struct c_bo_mcs *lock, struct c_bo_mcs_node *node,
				    struct c_bo_mcs_policy policy,
				    const struct w_deadline *deadline)
{
	if (deadline) {
		if (!cohort_poll(&lock->cohort, COHORT_BO, deadline))
			return false;
		mcs_node_init(&node->mcs);
		return true;
	}
	cohort_acquire(&lock->cohort, &node->mcs, c_bo_mcs_cohort(policy));
	return true;
}

/* Releases @lock, held with @node. */
static inline void c_bo_mcs_release(struct c_bo_mcs *lock, struct c_bo_mcs_node *node,
				    struct c_bo_mcs_policy policy)
{
	/* Without a place, the node only marks the holder. */
	if (!lock->cohort.holder)
		node_free(&node->mcs.status);
	cohort_release(&lock->cohort, &node->mcs, c_bo_mcs_cohort(policy));
}

/*
 * In a forked child, discards all waiters of @lock, which is held with @node: their threads exist
 * only in the parent.
 */
static inline void c_bo_mcs_drop_waiters(struct c_bo_mcs *lock, struct c_bo_mcs_node *node)
{
	cohort_drop_local_waiters(&lock->cohort, &node->mcs, COHORT_LOCAL_MCS, true);
}

#endif
