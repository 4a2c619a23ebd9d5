/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * C-TKT-TKT: a cohort lock of a ticket lock for each domain and one between them.
 *
 * From: Dice, Marathe and Shavit, "Lock cohorting", PPoPP'12 and TOPC'15, section 3.2 there. Changed: see cohort.h.
 *
 * Promises: mutual exclusion; within a domain first come, first served; between D domains each in turn: a waiter that is
 * next in its domain is passed by at most (D - 1) * (batch + 1) acquisitions of the others; but for timed waiters and
 * trylock, which pass and are passed without bound. Blocking under wait=park. 64 bytes a lock and 128 a domain in its
 * box; none a waiter or holder. Atomic read-modify-writes: 2 uncontended (4 under wait=park), 1 within a batch (2 under
 * wait=park).
 *
 * The structure, and which state is legal when: cohort.h; the words of both locks: tickets.h.
 */
#ifndef POUNDLOCK_C_TKT_TKT_H
#define POUNDLOCK_C_TKT_TKT_H

#include "part/cohort.h"

#define c_tkt_tkt_settings(S) S(c_tkt_tkt, batch, 64, 1, UINT32_MAX)
#define c_tkt_tkt_bytes 0, 0, 0

COHORT_OF_TICKETS(c_tkt_tkt, TKT)

#endif
