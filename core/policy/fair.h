/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Least virtual hold time first. A thread that has held the lock longer than the shuffler keeps its
 * place, up to the bound on bypass.
 *
 * From: Park and Eom (CFL), PPoPP'24, section 3: virtual lock hold time as a plain order, without
 * its averages, groups and rules for newcomers (cfl/cfl.h).
 */
#ifndef POUNDLOCK_POLICY_FAIR_H
#define POUNDLOCK_POLICY_FAIR_H

#include "part/hold.h"
#include "policy/stay.h"

/* In units of 256 ns, so that times less than 9 minutes apart compare correctly. */
static inline uint32_t policy_fair_note(const void *lock)
{
	return (uint32_t)(w_account(lock)->held >> 8);
}

static inline uint32_t policy_fair_rank(uint32_t shuffler, uint32_t waiter)
{
	int32_t ahead = (int32_t)(waiter - shuffler);

	/* maps the signed order to an unsigned one */
	return ahead > 0 ? POLICY_STAY : (uint32_t)ahead ^ 1u << 31;
}

#endif
