/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef POUNDLOCK_STATS_POSIX_H
#define POUNDLOCK_STATS_POSIX_H

#include "any_rw.h"

/*
 * The table that counts and does what @own does, for pthread's and C11's locks. Each is called
 * once, at the start.
 */
W_HIDDEN const struct any_ops *stats_observe_posix(const struct any_ops *own);
W_HIDDEN const struct any_rw_ops *stats_observe_posix_rw(const struct any_rw_ops *own);

/* As stats_shorten(). */
W_HIDDEN void stats_shorten_posix(const struct any_ops *ops, const struct any_rw_ops *rw_ops);

#endif
