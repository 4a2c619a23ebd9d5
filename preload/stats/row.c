/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The life of a row: made, merged into its lock's item, marked as stale. */
#include "row.h"

#include <errno.h>

#include "item.h"

/* ---- Merging ---- */

static void add_to_sum(W_ATOMIC(uint64_t) *sum, uint64_t more)
{
	(void)w_fetch_add_relaxed(sum, more);
}

static void add_to_max(W_ATOMIC(uint64_t) *most, uint64_t value)
{
	uint64_t seen = w_load_relaxed(most);

	while (seen < value && !w_compare_exchange_relaxed(most, &seen, value))
		;
}

/* Records how often the thread of @table took the contended lock of @row. */
static void keep_share(struct stats_thread *table, struct stats_row *row)
{
	struct stats_share *share;
	uint32_t index;

	share = stats_take(STATS_SHARES, 0, &index);
	if (!share) {
		(void)w_fetch_add_relaxed(&stats_region->shares_unobserved, 1);
		return;
	}
	share->lock = row->lock;
	share->acquisitions = row->counts[STATS_acquisitions];
	/* release: for readers of the file */
	w_store_release(&share->thread, w_load_relaxed(&table->serial));
}

/* Moves one count of @row to @item. */
static void move_count(struct stats_lock *item, struct stats_row *row, int counter)
{
	/* Others read the file meanwhile. */
	W_ATOMIC(uint64_t) *from = (W_ATOMIC(uint64_t) *)&row->counts[counter];
	uint64_t count = w_load_relaxed(from);

	if (!count)
		return;
	switch (counter) {
#define SUM add_to_sum
#define MAX add_to_max
#define COUNTER(name, how)                          \
	case STATS_##name:                          \
		how(&item->counts[counter], count); \
		break;
		STATS_COUNTERS(COUNTER)
#undef COUNTER
#undef SUM
#undef MAX
	}
	w_store_relaxed(from, 0);
}

void stats_row_merge(struct stats_thread *table, struct stats_row *row)
{
	struct stats_lock *item = stats_lock_item(row->lock);

	w_store_relaxed(&table->merges, w_load_relaxed(&table->merges) + 1);
	/* A reader of the file that sees a count which has moved sees the odd number afterwards. */
	w_fence_seq_cst();
	if (row->lock && w_load_relaxed(&item->stack) && row->counts[STATS_acquisitions])
		keep_share(table, row);
	for (int i = 0; i < STATS_COUNTS; i++)
		move_count(item, row, i);
	row->since = 0;
	w_store_relaxed(&row->key, 0);
	/* release: for readers of the file; the counts have moved */
	w_store_release(&table->merges, w_load_relaxed(&table->merges) + 1);
}

void stats_rows_end(uint64_t key)
{
	for (uint32_t i = 0; i < stats_used(STATS_THREADS); i++) {
		for (uint32_t way = 0; way < STATS_WAYS; way++) {
			struct stats_row *row =
				stats_row_at(stats_item(STATS_THREADS, i), key, way);
			uint64_t seen = key;

			(void)w_compare_exchange_relaxed(&row->key, &seen, key | STATS_STALE);
		}
	}
}

/* ---- Making ---- */

/* How many acquisitions from now on are among the first of the lock @index. */
static uint16_t first_of(uint32_t index)
{
	uint64_t taken = index ? w_load_relaxed(&stats_lock_item(index)->counts[STATS_acquisitions])
			       : STATS_HOLDS_FIRST;

	return taken < STATS_HOLDS_FIRST ? (uint16_t)(STATS_HOLDS_FIRST - taken) : 0;
}

/* How much is lost by giving up @row: 0 if it is free or stale. */
static uint64_t worth_of(struct stats_row *row)
{
	uint64_t key = w_load_relaxed(&row->key);

	return !key || (key & STATS_STALE) ? 0 : row->counts[STATS_acquisitions] + 1;
}

/* Makes a row for a lock that has none, in place of the one that is worth least. */
static struct stats_row *make(struct stats_thread *table, uint64_t key, bool readers_writer)
{
	struct stats_row *least = NULL;
	uint64_t least_worth = UINT64_MAX;

	for (uint32_t way = 0; way < STATS_WAYS; way++) {
		struct stats_row *row = stats_row_at(table, key, way);
		uint64_t worth = worth_of(row);

		if (worth < least_worth) {
			least = row;
			least_worth = worth;
		}
	}
	if (w_load_relaxed(&least->key))
		stats_row_merge(table, least);
	least->lock = stats_item_of(key, readers_writer, false);
	least->item = stats_lock_item(least->lock);
	least->readers_writer = readers_writer;
	least->first = first_of(least->lock);
	least->until_timed = least->first ? 1 : stats_first_timed();
	/* release: for readers of the file, and for stats_rows_end() */
	w_store_release(&least->key, key);
	return least;
}

W_SLOW struct stats_row *stats_row_slow(uint64_t key, bool readers_writer)
{
	bool inside = stats_self.inside;
	struct stats_row *row;
	int saved = errno;

	/* Already for the scratch row: a thread's first use of its block locks a mutex. */
	stats_self.inside = true;
	row = stats_scratch_row();
	if (!inside && (stats_self.table != &stats_no_table || stats_attach()))
		row = make(stats_self.table, key, readers_writer);
	stats_self.inside = inside;
	errno = saved;
	return row;
}

struct stats_row *stats_row_elsewhere(struct stats_thread *table, uint64_t key)
{
	for (uint32_t way = 1; way < STATS_WAYS; way++)
		if (w_load_relaxed(&stats_row_at(table, key, way)->key) == key)
			return stats_row_at(table, key, way);
	return NULL;
}
