/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The thread that has held the lock least, in time by weight, comes first; one that has held it more than the shuffler
 * stays where it is, until it has been passed as often as may be.
 *
 * From: CFL (PPoPP'24) section 3, virtual lock hold time, as a plain order: without its averages, groups and rules for
 * newcomers (cfl.h has them).
 */
#ifndef POUNDLOCK_POLICY_FAIR_H
#define POUNDLOCK_POLICY_FAIR_H

#include "part/hold.h"
#include "policy/stay.h"

/* In units of 256 ns, so that times compare if they are less than 9 minutes apart. */
static inline uint32_t policy_fair_note(const void *lock)
{
	return (uint32_t)(w_account(lock)->held >> 8);
}

static inline uint32_t policy_fair_rank(uint32_t shuffler, uint32_t waiter)
{
	int32_t ahead = (int32_t)(waiter - shuffler);

	return ahead > 0 ? POLICY_STAY : (uint32_t)ahead ^ 1u << 31; /* as they compare with a sign */
}

#endif
