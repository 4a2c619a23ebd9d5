/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Counting of acquisitions, waits and releases.
 *
 * An acquisition tries the lock first, so that it is known whether it waits; the clock is read
 * before and after a wait. Holds are timed for the first acquisitions of each lock, and then for
 * one in many, at random.
 *
 * A lock's item holds the number of waiters. A holder that releases the lock and sees one stores
 * its domain there, and the waiter that gets the lock next takes it away: that is a hand-over.
 */
#ifndef POUNDLOCK_STATS_COUNT_H
#define POUNDLOCK_STATS_COUNT_H

#include "row.h"

/*
 * Whether all waits, and the holds that they waited for, are recorded with their stacks. Set once,
 * at the start.
 */
extern W_HIDDEN bool stats_profile;

/* A wait: for which lock, and how. */
struct stats_wait {
	bool (*wait)(const struct stats_wait *wait); /* false at the deadline */
	const void *own;                             /* the lock's own functions */
	void *lock;
	bool again;                        /* a reader's: as any_rw.h has it */
	const struct w_deadline *deadline; /* NULL: none */
	void *caller;                      /* return address of the program's call */
};

/*
 * Counts events (core/events.def) of the calling thread, and of the lock that its operation is
 * about.
 */
W_HIDDEN void stats_hear(enum w_event event);

/* Waits by @wait for the lock of @row, which was not free a moment ago. False at the deadline. */
W_HIDDEN W_SLOW bool stats_wait(struct stats_row *row, const struct stats_wait *wait);

/* The parts of the functions below that are rarely needed. */
W_HIDDEN W_SLOW int stats_begin_hold(struct stats_row *row);
W_HIDDEN W_SLOW bool stats_release_slow(struct stats_row *row, uint64_t key,
					bool (*unlock)(void *lock), void *lock);

/* Counts an acquisition of the lock taken last. Returns 0, so that callers need no stack frame. */
static inline int stats_count_again(struct stats_row *row)
{
	row->counts[STATS_acquisitions]++;
	return w_unlikely(!--row->until_timed) ? stats_begin_hold(row) : 0;
}

/* Counts an acquisition. Returns 0. */
static inline int stats_count_acquisition(struct stats_row *row, bool readers_writer)
{
	stats_self.last[readers_writer] = row;
	return stats_count_again(row);
}

/* Counts a trylock that has @taken the lock or not. Returns @taken. */
static inline bool stats_count_try(struct stats_row *row, bool readers_writer, bool taken)
{
	if (w_likely(taken))
		(void)stats_count_acquisition(row, readers_writer);
	else
		row->counts[STATS_trylock_failures]++;
	return taken;
}

/* Whether the calling thread took the lock @key last: @row. */
static inline bool stats_row_if_last(uint64_t key, bool readers_writer, struct stats_row **row)
{
	*row = stats_self.last[readers_writer];
	return stats_is_in_process() && stats_row_is(*row, key);
}

/*
 * Whether there is nothing to count of the release of the lock of @row: not timed, and nobody
 * waits.
 */
static inline bool stats_is_quiet(const struct stats_row *row)
{
	return w_likely(!(row->since | w_load_relaxed(&row->item->waiting)));
}

/* Releases @lock, whose key is @key, by @unlock. Returns what that returns. */
static inline bool stats_release(uint64_t key, bool readers_writer, bool (*unlock)(void *lock),
				 void *lock)
{
	struct stats_row *row;

	stats_check_fork();
	row = stats_self.last[readers_writer];
	if (w_load_relaxed(&row->key) != key)
		row = stats_row_if_any(key);
	return !row || stats_is_quiet(row) ? unlock(lock)
					   : stats_release_slow(row, key, unlock, lock);
}

/*
 * Whether @key is the lock taken last, and there is nothing to count of its release. A forked child
 * need not know that it is one, since nothing is written.
 */
static inline bool stats_is_last_and_quiet(uint64_t key, bool readers_writer)
{
	struct stats_row *row = stats_self.last[readers_writer];

	return stats_row_is(row, key) && stats_is_quiet(row);
}

/* The same for a lock that is not the one taken last, if its row is found at once. */
static inline bool stats_is_at_once_and_quiet(uint64_t key)
{
	struct stats_row *row;

	return stats_row_at_once(key, &row) && stats_is_quiet(row);
}

#endif
