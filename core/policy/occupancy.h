/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The thread with the shortest critical sections lately comes first: the least waiting on the whole, as of shortest jobs
 * first, and no convoys of short sections behind long ones. One with longer sections than the shuffler's stays where it
 * is, until it has been passed as often as may be.
 *
 * From: ShflLock (SOSP'19) section 7, which names occupancy-aware order as one that shuffling allows.
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
