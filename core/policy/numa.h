/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Waiters of the shuffler's domain follow it (ShflLock section 4.1, figure 4 line 84), as do urgent
 * waiters, which thus stay behind no later waiter.
 */
#ifndef POUNDLOCK_POLICY_NUMA_H
#define POUNDLOCK_POLICY_NUMA_H

#include "policy/stay.h"
#include "world.h"

/* In a note, beside the domain. */
#define POLICY_NUMA_URGENT (W_URGENCY ? 1u << 31 : 0)

/* The calling thread's note, as one of @domain. */
static inline uint32_t policy_numa_note_in(uint32_t domain)
{
	return domain | (w_urgent() ? POLICY_NUMA_URGENT : 0);
}

static inline uint32_t policy_numa_note(void)
{
	return policy_numa_note_in((uint32_t)w_domain());
}

static inline uint32_t policy_numa_rank(uint32_t shuffler, uint32_t waiter)
{
	return waiter & POLICY_NUMA_URGENT || !((shuffler ^ waiter) & ~POLICY_NUMA_URGENT)
		       ? 0
		       : POLICY_STAY;
}

#endif
