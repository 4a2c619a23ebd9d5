/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The policies that shuffle.h takes as its argument: what orders the waiters. A policy is two functions:
 *
 *   note(lock)               what is to be known of a waiter, by its own thread, once, as it enters the queue
 *   rank(shuffler, waiter)   by the shuffler, off the holder's critical path, of the two's notes: POLICY_STAY: the waiter
 *                            stays where it is; else it is brought forward behind the shuffler, by rank, and equals in
 *                            the order of arrival
 *
 * Whatever they answer, shuffle.h keeps exclusion, every node, and the bound on how often a waiter is passed. A policy
 * that is a constant folds: what a lock does not use is not there.
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
	POLICY_OWN, /* the program's */
};

/* In the order of the values. */
#define POLICY_NAMES "fifo numa route group fair occupancy own"

/* Whether hold times must be measured for it (hold.h), by whoever takes and releases the lock. */
static inline bool policy_measures(enum policy policy)
{
	return policy == POLICY_FAIR || policy == POLICY_OCCUPANCY;
}

static inline uint32_t policy_note(enum policy policy, const void *lock)
{
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
		return w_own_policy_note(lock);
	}
	return 0;
}

static inline uint32_t policy_rank(enum policy policy, uint32_t shuffler, uint32_t waiter)
{
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
		return w_own_policy_rank(shuffler, waiter);
	}
	return POLICY_STAY;
}

#endif
