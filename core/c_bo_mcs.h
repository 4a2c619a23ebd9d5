/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * C-BO-MCS: a cohort lock of an MCS lock for each domain and a test-and-set lock with back-off between them.
 *
 * From: Dice, Marathe and Shavit, "Lock cohorting", PPoPP'12 and TOPC'15, section 3.1 there. Changed: see cohort.h; and
 * only waiters that spin back off: the others give the CPU up or sleep, and are not to be late besides.
 *
 * Promises: mutual exclusion; within a domain first come, first served, but for timed waiters, who poll. Between the
 * domains no order: one may be passed without bound, as the global lock has none. Blocking under wait=park. 64 bytes a
 * lock and 128 a domain in its box; a node a waiter and a holder. Atomic read-modify-writes: 3 uncontended (4 under
 * wait=park), 2 within a batch as MCS.
 *
 * The structure, and which state is legal when: cohort.h; the local queue: mcs.h; the global word: ttas.h.
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
	uint32_t batch;   /* how often in a row a domain may pass the lock on within itself */
	uint32_t backoff; /* wait=spin: the longest pause of a waiter for the global lock, in pause instructions */
};

/*
 * The back-off is that of the lock that the papers measure (CNA, ShflLock, RON: LiTL's, with Concurrency Kit's constants):
 * from 512 pauses to 2^20 - 1. It starves the other domains, as theirs does; with less there is less of that, and the
 * lock's line comes more often.
 */
#define c_bo_mcs_settings(S) S(c_bo_mcs, batch, 64, 1, UINT32_MAX) S(c_bo_mcs, backoff, 1048575, 1, 1048575)
#define c_bo_mcs_bytes 0, sizeof(struct c_bo_mcs_node), sizeof(struct c_bo_mcs_node)
#define c_bo_mcs_size cohort_size

static inline void c_bo_mcs_init(struct c_bo_mcs *lock, size_t size)
{
	cohort_init(&lock->cohort, size);
}

static inline struct cohort_policy c_bo_mcs_cohort(struct c_bo_mcs_policy policy)
{
	return (struct cohort_policy){COHORT_BO, COHORT_LOCAL_MCS, policy.wait, policy.batch, policy.backoff};
}

/* Takes @lock if it is free. */
static inline bool c_bo_mcs_try_acquire(struct c_bo_mcs *lock, struct c_bo_mcs_node *node)
{
	if (!cohort_try_acquire(&lock->cohort, COHORT_BO))
		return false;
	mcs_node_init(&node->mcs);
	return true;
}

/* Takes @lock. False, with @node left to its pool, if @deadline (NULL: never) passed first. */
static inline bool c_bo_mcs_acquire(struct c_bo_mcs *lock, struct c_bo_mcs_node *node, struct c_bo_mcs_policy policy,
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
static inline void c_bo_mcs_release(struct c_bo_mcs *lock, struct c_bo_mcs_node *node, struct c_bo_mcs_policy policy)
{
	/* Without a place the node is only a token of holding. */
	if (!lock->cohort.holder)
		node_free(&node->mcs.status);
	cohort_release(&lock->cohort, &node->mcs, c_bo_mcs_cohort(policy));
}

/* In a forked child: drops all waiters of @lock, which is held with @node; their threads do not exist here. */
static inline void c_bo_mcs_drop_waiters(struct c_bo_mcs *lock, struct c_bo_mcs_node *node)
{
	cohort_drop_local_waiters(&lock->cohort, &node->mcs, COHORT_LOCAL_MCS, true);
}

#endif
