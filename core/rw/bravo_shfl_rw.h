/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BRAVO over ShflLock's readers-writer lock.
 *
 * From: Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX ATC'19.
 *
 * Order: as shfl_rw; without writers, readers do not touch the lock.
 *
 * Promise: as bravo.h, over shfl_rw.h.
 */
#ifndef POUNDLOCK_BRAVO_SHFL_RW_H
#define POUNDLOCK_BRAVO_SHFL_RW_H

#include "rw/bravo.h"
#include "rw/shfl_rw.h"

struct bravo_shfl_rw_policy {
	enum wait wait;
	/* as in shfl_rw.h, and in the same places: they change like its own (lib/live.h) */
	uint32_t patience;
	enum policy policy;
	uint32_t batch, spins;
	uint32_t inhibit; /* multiple of the time of a revocation for which the bias stays off */
};

#define bravo_shfl_rw_settings(S)                                                                \
	S(bravo_shfl_rw, patience, 4, 0, 1000000000)                                             \
	S(bravo_shfl_rw, policy, POLICY_NUMA, 0, POLICY_UNMEASURED - 1, POLICY_NAMES_UNMEASURED) \
	S(bravo_shfl_rw, batch, SHFL_MAX_BATCH, 1, 1000000)                                      \
	S(bravo_shfl_rw, spins, 1, 0, 31)                                                        \
	S(bravo_shfl_rw, inhibit, BRAVO_INHIBIT, 0, 1000000)
#define bravo_shfl_rw_bytes sizeof(struct bravo_shfl_rw), sizeof(struct shfl_node), 0

static inline struct shfl_rw_policy bravo_shfl_rw_under(struct bravo_shfl_rw_policy policy)
{
	return (struct shfl_rw_policy){policy.wait, policy.patience, policy.policy, policy.batch,
				       policy.spins};
}

BRAVO_OVER(shfl_rw)

#endif
