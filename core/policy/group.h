/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Waiters of the shuffler's group (its cgroup or tenant) follow it, so that a tenant's data stays
 * in the caches for a batch, and tenants take turns. CFL shares time between groups by weight
 * (cfl/cfl.h).
 */
#ifndef POUNDLOCK_POLICY_GROUP_H
#define POUNDLOCK_POLICY_GROUP_H

#include "policy/stay.h"
#include "world.h"

static inline uint32_t policy_group_note(void)
{
	return w_group();
}

static inline uint32_t policy_group_rank(uint32_t shuffler, uint32_t waiter)
{
	return shuffler == waiter ? 0 : POLICY_STAY;
}

#endif
