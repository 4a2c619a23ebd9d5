/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Rows of a thread's table: a set-associative cache by lock. A lock's counts that lose their row to
 * another lock are added to the lock's item, so shared memory is written rarely, and any number of
 * locks fits.
 */
#ifndef POUNDLOCK_STATS_ROW_H
#define POUNDLOCK_STATS_ROW_H

#include "thread.h"

#define STATS_WAYS 4

/*
 * The row of set @key at @way. Few bits of the hash are used; locks side by side in an array differ
 * in them.
 */
static inline struct stats_row *stats_row_at(struct stats_thread *table, uint64_t key, uint32_t way)
{
	uint32_t row = (uint32_t)(key >> 4 ^ key * 0x9e3779b97f4a7c15 >> 57);

	return &table->rows[(row + way) % STATS_ROWS];
}

/* Adds the counts of @row of @table to its lock's item, and frees it. */
W_HIDDEN void stats_row_merge(struct stats_thread *table, struct stats_row *row);

/* Marks all threads' rows of @key as stale: the lock is destroyed. */
W_HIDDEN void stats_rows_end(uint64_t key);

/* The parts of the functions below that are rarely needed. */
W_HIDDEN struct stats_row *stats_row_elsewhere(struct stats_thread *table, uint64_t key);
W_HIDDEN W_SLOW struct stats_row *stats_row_slow(uint64_t key, bool readers_writer);

/* The calling thread's row of the lock @key; NULL if it has none. */
static inline struct stats_row *stats_row_if_any(uint64_t key)
{
	struct stats_thread *table = stats_self.table;
	struct stats_row *row = stats_row_at(table, key, 0);

	return w_likely(w_load_relaxed(&row->key) == key) ? row : stats_row_elsewhere(table, key);
}

/* The calling thread's row of the lock @key, made if there is none. */
static inline struct stats_row *stats_row_of(uint64_t key, bool readers_writer)
{
	struct stats_row *row;

	stats_check_fork();
	row = stats_row_if_any(key);
	return w_likely(row) ? row : stats_row_slow(key, readers_writer);
}

#endif
