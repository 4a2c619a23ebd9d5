/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Statistics of the C library's own locks: POUNDLOCK_LOCK=native with POUNDLOCK_STATS. */
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
