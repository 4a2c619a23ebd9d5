/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * C-TKT-TKT: a cohort lock of one ticket lock per domain, and one between the domains.
 *
 * From: Dice, Marathe and Shavit, "Lock cohorting", PPoPP'12 and TOPC'15, section 3.2 of the
 * latter.
 *
 * Order: FIFO within a domain, in bounded batches; FIFO between domains.
 *
 * Promise: mutual exclusion; within a domain first come, first served; D domains in turn: a waiter
 * that is next in its domain is bypassed by at most (D - 1) * (batch + 1) acquisitions of the
 * others. Timed waiters and trylock are excepted: they overtake and are overtaken without bound.
 * Waiters sleep under wait=park. 64 bytes per lock and 128 per domain, boxed; none per waiter or
 * holder. Atomic read-modify-writes: 2 uncontended (4 under wait=park), 1 within a batch (2 under
 * wait=park).
 *
 * part/cohort.h describes the structure, its states and the departures from the paper;
 * part/tickets.h the words of both locks.
 */
#ifndef POUNDLOCK_C_TKT_TKT_H
#define POUNDLOCK_C_TKT_TKT_H

#include "part/cohort.h"

#define c_tkt_tkt_settings(S) S(c_tkt_tkt, batch, 64, 1, UINT32_MAX)
#define c_tkt_tkt_bytes 0, 0, 0

COHORT_OF_TICKETS(c_tkt_tkt, TKT)

#endif
