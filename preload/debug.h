/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* POUNDLOCK_DEBUG: the checks of lib/checks for pthread's and C11's locks. */
#ifndef POUNDLOCK_PRELOAD_DEBUG_H
#define POUNDLOCK_PRELOAD_DEBUG_H

#include "any_rw.h"

extern W_HIDDEN bool debug_on;

/*
 * If POUNDLOCK_DEBUG asks for it, replaces the tables by ones that check, and do what these do.
 * Called once, at the start.
 */
W_HIDDEN void debug_wrap(const struct any_ops **ops, const struct any_rw_ops **rw_ops);

/* The table that @ops replaced, or @ops. */
W_HIDDEN const struct any_ops *debug_unchecked(const struct any_ops *ops);

W_HIDDEN void debug_created_slow(const void *lock);
W_HIDDEN void debug_destroyed_slow(const void *lock);

/* The lock is initialised. */
static inline void debug_created(const void *lock)
{
	if (w_unlikely(debug_on))
		debug_created_slow(lock);
}

/* The lock is about to be destroyed, held or not. */
static inline void debug_destroyed(const void *lock)
{
	if (w_unlikely(debug_on))
		debug_destroyed_slow(lock);
}

#endif
