/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Order along the route: a tour over the CPUs that begins at the shuffler's CPU.
 *
 * From: RON (OSDI'23) section 4, one-way circular routing. Its section 9 suggests waiters that sort
 * themselves off the holder's critical path. Every waiter takes part in the tour, so nobody is left
 * behind: once placed, a waiter is overtaken only by those of the same walk whose CPUs come first,
 * once each.
 */
#ifndef POUNDLOCK_POLICY_ROUTE_H
#define POUNDLOCK_POLICY_ROUTE_H

#include "world.h"

static inline uint32_t policy_route_note(void)
{
	return w_route_position();
}

/* Distance on the route from the shuffler to the waiter. */
static inline uint32_t policy_route_rank(uint32_t shuffler, uint32_t waiter)
{
	return waiter >= shuffler ? waiter - shuffler : waiter + w_cpu_count() - shuffler;
}

#endif
