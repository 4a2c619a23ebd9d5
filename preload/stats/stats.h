/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Statistics of every lock that is ours (POUNDLOCK_STATS): tables of functions that count and then do what the chosen
 * ones do. Without statistics they are not used, and nothing is different.
 *
 * Each thread counts for itself, in a cache of rows by lock, in the file that file.h describes: a process that is
 * killed loses nothing. Of a lock's own item only those who wait write, and holders that release it to waiters.
 */
#ifndef POUNDLOCK_STATS_H
#define POUNDLOCK_STATS_H

#include "any_rw.h"

/* One acquisition of so many is timed while it is held, in the mean. */
W_HIDDEN uint32_t stats_hold_every(bool profile);

/*
 * Begins the statistics in @folder, and replaces @ops and @rw_ops by those that count. @profile: with the stacks of all
 * waits and of the holds that they waited for. If there can be none, says so on stderr, and all is as it was.
 */
W_HIDDEN void stats_start(const char *folder, bool profile, const struct any_ops **ops,
			  const struct any_rw_ops **rw_ops);

extern W_HIDDEN bool stats_on;
extern W_HIDDEN struct any_ops stats_inner;
W_HIDDEN void stats_forget_slow(const void *lock);

/* The functions that do without counting what @ops (NULL: none) do: for what the program has not asked for. */
static inline const struct any_ops *stats_unobserved(const struct any_ops *ops)
{
	return ops && stats_on ? &stats_inner : ops;
}

/* What is at @lock from now on is another lock than the one that was there. */
static inline void stats_forget(const void *lock)
{
	if (w_unlikely(stats_on))
		stats_forget_slow(lock);
}

#endif
