/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The non-blocking CFL: the head of the queue spins.
 *
 * From: Park and Eom (CFL), PPoPP'24, section 3.2, figures 3 and 4. cfl/order.h lists the
 * departures. One more: newcomers that may overtake do so here as well (section 3.3 has it for the
 * mutex). With two threads there is one waiter, no order to choose, and no other way to be fair.
 *
 * Order: least hold time first, by group, domain and thread, within a bound on bypass.
 *
 * Promise: as cfl_mutex.h, but the head never sleeps; the waiters behind it do under wait=park.
 * Boxed; one pool node per waiter, none per holder. Atomic read-modify-writes: as cfl_mutex.h.
 *
 * cfl/cfl.h describes the word.
 */
#ifndef POUNDLOCK_CFL_SPIN_H
#define POUNDLOCK_CFL_SPIN_H

#include "cfl/cfl.h"

#define cfl_spin_settings(S) CFL_SETTINGS(S, cfl_spin)
#define cfl_spin_bytes sizeof(void *), sizeof(struct cfl_node), 0

CFL_LOCK(cfl_spin, false)

#endif
