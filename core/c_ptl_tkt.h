/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * C-PTL-TKT: a cohort lock of one ticket lock per domain, and a partitioned ticket lock between the
 * domains, so that their first waiters do not watch the same line.
 *
 * From: Dice, Marathe and Shavit, "Lock cohorting", PPoPP'12 and TOPC'15: the variant that its
 * evaluation calls C-PTL-TKT.
 *
 * Order: FIFO within a domain, in bounded batches; FIFO between domains.
 *
 * Promise: as c_tkt_tkt.h.
 *
 * part/cohort.h describes the structure, its states and the departures from the paper;
 * part/tickets.h the local words; part/partitioned.h the global lock and its slots.
 */
#ifndef POUNDLOCK_C_PTL_TKT_H
#define POUNDLOCK_C_PTL_TKT_H

#include "part/cohort.h"

#define c_ptl_tkt_settings(S) S(c_ptl_tkt, batch, 64, 1, UINT32_MAX)
#define c_ptl_tkt_bytes 0, 0, 0

COHORT_OF_TICKETS(c_ptl_tkt, PTL)

#endif
