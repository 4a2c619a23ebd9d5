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
	uint32_t patience; /* as in shfl_rw.h */
	uint32_t inhibit;  /* multiple of the time of a revocation for which the bias stays off */
};

#define bravo_shfl_rw_settings(S)                    \
	S(bravo_shfl_rw, patience, 4, 0, 1000000000) \
	S(bravo_shfl_rw, inhibit, BRAVO_INHIBIT, 0, 1000000)
#define bravo_shfl_rw_bytes sizeof(struct bravo_shfl_rw), sizeof(struct shfl_node), 0

static inline struct shfl_rw_policy bravo_shfl_rw_under(struct bravo_shfl_rw_policy policy)
{
	return (struct shfl_rw_policy){.wait = policy.wait, .patience = policy.patience};
}

BRAVO_OVER(shfl_rw)

#endif
