/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The blocking CFL: the head of the queue sleeps, so newcomers that have had less than their share
 * may overtake it.
 *
 * From: Park and Eom (CFL), PPoPP'24, section 3.3. cfl/order.h lists the departures.
 *
 * Order: as cfl_spin; newcomers overtake sleepers while that is fair.
 *
 * Promise: mutual exclusion. The hold time of threads that want the lock is shared between groups
 * by their weights, and between the threads of a group by theirs. A thread that does not want the
 * lock accumulates no claim, and a thread that is alone gets it at once (unless strict_guarantee is
 * on). At most `bypass` waiters are moved before a waiter, and at most `bypass` newcomers overtake
 * it; a head that was moved forward allows no more of them. Waiters sleep under wait=park. Boxed;
 * one pool node per waiter, none per holder. Atomic read-modify-writes: 2 uncontended, and one
 * reading of the clock; contended 6 (three exchanges: the tail, the next head's status and
 * `before`; two compare-exchanges: the state, the tail; the release), and three readings of the
 * clock.
 *
 * cfl/cfl.h describes the word.
 */
#ifndef POUNDLOCK_CFL_MUTEX_H
#define POUNDLOCK_CFL_MUTEX_H

#include "cfl/cfl.h"

#define cfl_mutex_settings(S) CFL_SETTINGS(S, cfl_mutex)
#define cfl_mutex_bytes sizeof(void *), sizeof(struct cfl_node), 0

CFL_LOCK(cfl_mutex, true)

#endif
