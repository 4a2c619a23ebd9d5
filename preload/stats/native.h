/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Statistics of the C library's own locks: POUNDLOCK_LOCK=native with POUNDLOCK_STATS.
 *
 * Condition variables of one process wait by cond.c, which unlocks and locks the mutex by functions
 * that count. In the C library's wait nothing can observe the second part: a waiter that was woken
 * locks the mutex inside the function, in which the caller runs no code; neither the mutex nor the
 * condition variable show afterwards when the waiter was woken, or whether it found the mutex held
 * (it leaves the same word in both cases); and the function needs the mutex that is released after
 * it has counted its caller as a waiter, so no other mutex can be handed to it without losing
 * signals.
 */
#ifndef POUNDLOCK_STATS_NATIVE_H
#define POUNDLOCK_STATS_NATIVE_H

#include "world.h"

/*
 * Replaces the functions of `real` by ones that count and call them. Called once, at the start,
 * after real_resolve() and layout_probe().
 */
W_HIDDEN void stats_observe_native(void);

/* As stats_shorten(). */
W_HIDDEN void stats_shorten_native(void);

#endif
