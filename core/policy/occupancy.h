/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shortest recent critical sections first, as in shortest-job-first scheduling: it minimises the
 * total waiting time, and prevents convoys of short critical sections behind long ones. A thread
 * with longer ones than the shuffler's keeps its place, up to the bound on bypass.
 *
 * From: ShflLock (SOSP'19) section 7, which names occupancy-aware order as one that shuffling
 * allows.
 */
#ifndef POUNDLOCK_POLICY_OCCUPANCY_H
#define POUNDLOCK_POLICY_OCCUPANCY_H

#include "part/hold.h"
#include "policy/stay.h"

static inline uint32_t policy_occupancy_note(const void *lock)
{
	return w_account(lock)->recent;
}

static inline uint32_t policy_occupancy_rank(uint32_t shuffler, uint32_t waiter)
{
	return waiter > shuffler ? POLICY_STAY : waiter;
}

#endif
