/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Along the route: waiters in the order in which a tour over the CPUs that begins at the shuffler's CPU comes to theirs.
 *
 * From: RON (OSDI'23) section 4, one-way circular routing; that the waiters sort themselves, off the holder's critical
 * path, is its future work (section 9). All waiters belong to the tour, so that nobody is left behind: one that was
 * placed is passed only by those of its walk whose CPUs come first, each once.
 */
#ifndef POUNDLOCK_POLICY_ROUTE_H
#define POUNDLOCK_POLICY_ROUTE_H

#include "world.h"

static inline uint32_t policy_route_note(void)
{
	return w_route_position();
}

/* How many places behind the shuffler's the waiter's is. */
static inline uint32_t policy_route_rank(uint32_t shuffler, uint32_t waiter)
{
	return waiter >= shuffler ? waiter - shuffler : waiter + w_cpu_count() - shuffler;
}

#endif
