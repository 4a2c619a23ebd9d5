/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The NUMA policy: waiters of the shuffler's domain belong together (ShflLock section 4.1, Figure 4 line 84).
 */
#ifndef POUNDLOCK_POLICY_NUMA_H
#define POUNDLOCK_POLICY_NUMA_H

#include <stdbool.h>
#include <stdint.h>

static inline bool policy_numa(int32_t shuffler_domain, int32_t waiter_domain)
{
	return shuffler_domain == waiter_domain;
}

#endif
