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

/* Keeps the compiler from computing the address of @row again for each of its fields. */
#define STATS_ONCE(row) __asm__("" : "+r"(row))

/*
 * The row of @key at @way. The multiplier spreads locks side by side in an array, for most sizes of
 * its elements; for the others, whose first rows are few, the other ways' differ.
 */
static inline struct stats_row *stats_row_at(struct stats_thread *table, uint64_t key, uint32_t way)
{
	uint32_t product = (uint32_t)key * 0xefba91fdu;
	struct stats_row *row =
		&table->rows[product >> (32 - (way + 1) * STATS_ROWS_BITS) & (STATS_ROWS - 1)];

	STATS_ONCE(row);
	return row;
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

/*
 * Whether @row is that of @key. In one instruction, where gcc would not fold an atomic load into
 * the comparison.
 */
static inline bool stats_row_is(const struct stats_row *row, uint64_t key)
{
	bool is;

#ifdef __x86_64__
	__asm__ __volatile__("cmpq %2, %1" : "=@cce"(is) : "m"(row->key), "r"(key));
#else
	is = w_load_relaxed(&row->key) == key;
#endif
	return w_likely(is);
}

/* Whether the calling thread's row of the lock @key is at its first place: @row. */
static inline bool stats_row_at_once(uint64_t key, struct stats_row **row)
{
	*row = stats_row_at(stats_self.table, key, 0);
	return stats_is_in_process() && stats_row_is(*row, key);
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
