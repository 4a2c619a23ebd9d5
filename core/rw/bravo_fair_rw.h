/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * BRAVO over the fair queued readers-writer lock.
 *
 * From: Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX ATC'19.
 *
 * Order: as fair_rw; without writers, readers do not touch the lock.
 *
 * Promise: as bravo.h, over fair_rw.h.
 */
#ifndef POUNDLOCK_BRAVO_FAIR_RW_H
#define POUNDLOCK_BRAVO_FAIR_RW_H

#include "rw/bravo.h"
#include "rw/fair_rw.h"

struct bravo_fair_rw_policy {
	enum wait wait;
	uint32_t inhibit; /* multiple of the time of a revocation for which the bias stays off */
};

#define bravo_fair_rw_settings(S) S(bravo_fair_rw, inhibit, BRAVO_INHIBIT, 0, 1000000)
#define bravo_fair_rw_bytes sizeof(struct bravo_fair_rw), sizeof(struct mcs_node), 0

static inline struct fair_rw_policy bravo_fair_rw_under(struct bravo_fair_rw_policy policy)
{
	return (struct fair_rw_policy){.wait = policy.wait};
}

BRAVO_OVER(fair_rw)

#endif
