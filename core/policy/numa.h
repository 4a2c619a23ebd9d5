/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Waiters of the shuffler's domain follow it (ShflLock section 4.1, figure 4 line 84).
 */
#ifndef POUNDLOCK_POLICY_NUMA_H
#define POUNDLOCK_POLICY_NUMA_H

#include "policy/stay.h"
#include "world.h"

static inline uint32_t policy_numa_note(void)
{
	return (uint32_t)w_domain();
}

static inline uint32_t policy_numa_rank(uint32_t shuffler, uint32_t waiter)
{
	return shuffler == waiter ? 0 : POLICY_STAY;
}

#endif
