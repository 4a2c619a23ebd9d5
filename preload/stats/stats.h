/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Statistics of every lock that is Poundlock's (POUNDLOCK_STATS): tables of functions that count,
 * and then do what the chosen locks do. Without statistics these tables are not used, and nothing
 * is slower. With POUNDLOCK_LOCK=native, of the C library's own locks (native.h).
 *
 * Each thread counts for itself in its table of the file (file.h): a cache of rows by lock. A
 * process that is killed loses nothing. A lock's own item is written only by waiters, and by
 * holders that have waiters.
 *
 *   *   file.h    layout of the file             row      a thread's rows
 *   region    the mapped file                count    acquisitions, waits, releases
 *   stack     stacks and modules             observe  tables that count
 *   thread    a thread's table; fork         posix    those for pthread's and C11's locks
 *   item      items of locks                 api      those for poundlock.h's locks
 *   native    functions around the C library's locks
 */
#ifndef POUNDLOCK_STATS_H
#define POUNDLOCK_STATS_H

#include "any_rw.h"

/* Mean number of acquisitions for each hold that is timed. */
W_HIDDEN uint32_t stats_hold_every(bool profile);

/*
 * Starts the statistics in @folder, and replaces @ops and @rw_ops (NULL: native) by tables that
 * count. If @ops is NULL, counts the C library's own locks. @profile: record the stacks of all
 * waits, and of the holds that they waited for. Where it cannot, prints a line to stderr and
 * changes nothing.
 */
W_HIDDEN void stats_start(const char *folder, bool profile, const struct any_ops **ops,
			  const struct any_rw_ops **rw_ops);

/*
 * Shortens the way of pthread's functions to the statistics, where @ops and @rw_ops (NULL: native)
 * are tables of these that have one. Called last, once.
 */
W_HIDDEN void stats_shorten(const struct any_ops *ops, const struct any_rw_ops *rw_ops);

extern W_HIDDEN bool stats_on;
extern W_HIDDEN struct any_ops stats_own_ops;
W_HIDDEN void stats_forget_slow(const void *lock);

/* Names @lock, also in the file. NULL or "": removes its name. */
W_HIDDEN void stats_name(const void *lock, const char *name);

/*
 * The functions that do what @ops (NULL: none) do without counting: for calls that the program has
 * not asked for.
 */
static inline const struct any_ops *stats_unobserved(const struct any_ops *ops)
{
	return ops && stats_on ? &stats_own_ops : ops;
}

/* Ends the statistics of @lock: from now on there is another lock at its address, or none. */
static inline void stats_forget(const void *lock)
{
	if (w_unlikely(stats_on))
		stats_forget_slow(lock);
}

#endif
