/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Policies: the orders in which shuffle.h can arrange waiters. A policy is two functions:
 *
 *   note(lock)               called once by each waiter as it enters the queue: the data by which
 *                            it is ranked
 *   rank(shuffler, waiter)   called by the shuffler with the notes of both, off the critical path.
 *                            POLICY_STAY: the waiter keeps its place. Any other value: it is
 *                            brought forward behind the shuffler, sorted by rank; equal ranks keep
 *                            their order
 *
 * Whatever they return, shuffle.h preserves mutual exclusion, every waiter, and the bound on
 * bypass. A constant policy is folded by the compiler: unused policies cost nothing.
 */
#ifndef POUNDLOCK_POLICY_H
#define POUNDLOCK_POLICY_H

#include "policy/fair.h"
#include "policy/fifo.h"
#include "policy/group.h"
#include "policy/numa.h"
#include "policy/occupancy.h"
#include "policy/route.h"

enum policy {
	POLICY_FIFO,
	POLICY_NUMA,
	POLICY_ROUTE,
	POLICY_GROUP,
	POLICY_FAIR,
	POLICY_OCCUPANCY,
	POLICY_OWN, /* the program's first one; its others have the numbers after it */
};

/* In the order of the values, without the program's. */
#define POLICY_NAMES "fifo numa route group fair occupancy"

/* The first of them, which need no hold times. */
#define POLICY_NAMES_UNMEASURED "fifo numa route group"
#define POLICY_UNMEASURED POLICY_FAIR

/* Returns whether the thread that takes and releases the lock must measure hold times (hold.h). */
static inline bool policy_measures(enum policy policy)
{
	return policy == POLICY_FAIR || policy == POLICY_OCCUPANCY;
}

static inline uint32_t policy_note(enum policy policy, const void *lock)
{
	if (policy >= POLICY_OWN)
		return w_own_policy_note(policy - POLICY_OWN, lock);
	switch (policy) {
	case POLICY_FIFO:
		return policy_fifo_note();
	case POLICY_NUMA:
		return policy_numa_note();
	case POLICY_ROUTE:
		return policy_route_note();
	case POLICY_GROUP:
		return policy_group_note();
	case POLICY_FAIR:
		return policy_fair_note(lock);
	case POLICY_OCCUPANCY:
		return policy_occupancy_note(lock);
	case POLICY_OWN:
		break;
	}
	return 0;
}

/*
 * Whether the program's policy @number is a strict order of ranks for a shuffler with @note:
 * waiters of the shuffler's rank stay while others rank before it. A world that has such policies
 * defines it before.
 */
#ifndef w_own_policy_strict
#define w_own_policy_strict(number, note) ((void)(number), (void)(note), false)
#endif

static inline bool policy_is_strict(enum policy policy, uint32_t note)
{
	return policy >= POLICY_OWN && w_own_policy_strict(policy - POLICY_OWN, note);
}

static inline uint32_t policy_rank(enum policy policy, uint32_t shuffler, uint32_t waiter)
{
	if (policy >= POLICY_OWN)
		return w_own_policy_rank(policy - POLICY_OWN, shuffler, waiter);
	switch (policy) {
	case POLICY_FIFO:
		return policy_fifo_rank(shuffler, waiter);
	case POLICY_NUMA:
		return policy_numa_rank(shuffler, waiter);
	case POLICY_ROUTE:
		return policy_route_rank(shuffler, waiter);
	case POLICY_GROUP:
		return policy_group_rank(shuffler, waiter);
	case POLICY_FAIR:
		return policy_fair_rank(shuffler, waiter);
	case POLICY_OCCUPANCY:
		return policy_occupancy_rank(shuffler, waiter);
	case POLICY_OWN:
		break;
	}
	return POLICY_STAY;
}

#endif
