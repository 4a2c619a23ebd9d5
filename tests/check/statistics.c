/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of the rows of the preload library's statistics (preload/stats/row.c): their counts move
 * to the locks' items while another process reads the file, and while another thread destroys the
 * lock. The reader is that of docs/statistics.md: it compares `merges` before and after.
 */
#include <errno.h>

#define W_HIDDEN
#include "check.h"
#include "entry.h"

#include "../../preload/stats/file.h"

#define MOST_ITEMS 3

struct memory {
	struct stats_lock items[MOST_ITEMS];
	struct stats_thread table; /* of thread 0 */
};

struct notes {
	int error_number;
	struct {
		struct stats_thread *table;
		bool inside;
	} self;
	uint64_t other_key; /* of another lock, whose rows are at the same place */
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SHARED_BYTES sizeof(struct memory)

/* ---- The environment that row.c requires, in place of thread.h and region.h ---- */

#define POUNDLOCK_STATS_THREAD_H
#define POUNDLOCK_STATS_REGION_H

#undef errno
#define errno NOTES->error_number

#define stats_self NOTES->self /* thread 0's: the others have no rows */
#define stats_no_table (*(struct stats_thread *)NULL)
#define stats_attach() true
#define stats_check_fork() ((void)0)
#define stats_is_in_process() true
#define stats_first_timed() 1u
#define stats_scratch_row() ((struct stats_row *)NULL)
#define stats_region ((struct stats_header *)NULL)
#define stats_lock_item(index) (&M->items[index])
#define stats_used(area) ((void)(area), 1u)
#define stats_item(area, index) ((void)(area), (void)(index), &M->table)
#define stats_take(area, spare, index) ((void)(area), (void)(spare), *(index) = 0, NULL)

#include "../../preload/stats/row.c"

#define KEY 0x40u
#define FILLER 1u /* of rows that are worth more than the others */

uint32_t stats_item_of(uint64_t key, bool readers_writer, bool contended)
{
	(void)readers_writer, (void)contended;
	return key == KEY ? 1 : key == FILLER ? 0 : 2;
}

/* ---- The clients ---- */

static W_ATOMIC(uint64_t) *count_of(struct stats_row *row)
{
	return &row->counts[STATS_acquisitions];
}

static void count_one(uint64_t key)
{
	struct stats_row *row = stats_row_of(key, false);

	w_store_relaxed(count_of(row), w_load_relaxed(count_of(row)) + 1);
}

static void merge(uint64_t key)
{
	stats_row_merge(&M->table, stats_row_if_any(key));
}

/* The lock's acquisitions, by item and row, if no count has moved meanwhile. */
static bool read_count(uint64_t *count)
{
	struct stats_row *row = stats_row_at(&M->table, KEY, 0);
	uint64_t before = w_load_acquire(&M->table.merges);

	*count = w_load_relaxed(&row->key) ? w_load_relaxed(count_of(row)) : 0;
	*count += w_load_relaxed(&M->items[1].counts[STATS_acquisitions]);
	check_fence_acquire();
	return before % 2 == 0 && w_load_relaxed(&M->table.merges) == before;
}

/* Two acquisitions have been counted at the start, and a third one later. */
static void read_while_merging(uint32_t self)
{
	uint64_t count;

	if (!self) {
		merge(KEY);
		count_one(KEY);
		merge(KEY);
	} else if (read_count(&count)) {
		check_assert(count == 2 || count == 3);
		check_outcome(0, count);
	}
}

/* Thread 1 destroys the lock, of which thread 0 has a row, while that one counts another. */
static void end_while_counting(uint32_t self)
{
	if (self)
		stats_rows_end(KEY);
	else
		count_one(NOTES->other_key);
}

static void prepare_row(struct stats_row *row, uint64_t key, uint64_t count)
{
	row->key = key;
	row->lock = stats_item_of(key, false, false);
	row->item = &M->items[row->lock];
	row->counts[STATS_acquisitions] = count;
}

/* Whether @key's first row is that of KEY, and none of its others. */
static bool has_same_row(uint64_t key)
{
	struct stats_row *row = stats_row_at(&M->table, KEY, 0);

	for (uint32_t way = 1; way < STATS_WAYS; way++)
		if (stats_row_at(&M->table, key, way) == row)
			return false;
	return stats_row_at(&M->table, key, 0) == row;
}

static void prepare(void)
{
	NOTES->self.table = &M->table;
	prepare_row(stats_row_at(&M->table, KEY, 0), KEY, 2);
	NOTES->other_key = KEY;
	do
		NOTES->other_key += 16;
	while (!has_same_row(NOTES->other_key));
}

/* The other lock can only have the destroyed one's row. */
static void prepare_full(void)
{
	prepare();
	for (uint32_t way = 1; way < STATS_WAYS; way++)
		prepare_row(stats_row_at(&M->table, NOTES->other_key, way), FILLER, 9);
}

static uint64_t total(uint32_t lock)
{
	uint64_t sum = w_load_relaxed(&M->items[lock].counts[STATS_acquisitions]);

	for (uint32_t i = 0; i < STATS_ROWS; i++)
		if (M->table.rows[i].lock == lock && w_load_relaxed(&M->table.rows[i].key))
			sum += w_load_relaxed(count_of(&M->table.rows[i]));
	return sum;
}

static void finish_read(void)
{
	check_assert(total(1) == 3);
}

/* No later lock at the address finds a row of the former one; the other lock has its row. */
static void finish_end(void)
{
	check_assert(total(1) == 2 && total(2) == 1);
	check_assert(!stats_row_if_any(KEY) && stats_row_if_any(NOTES->other_key));
}

const struct check_client check_clients[] = {
	ENTRY("read/2", read_while_merging, 2, NULL, "0 2 3", prepare, finish_read),
	ENTRY("end/2", end_while_counting, 2, NULL, NULL, prepare, finish_end),
	ENTRY("end/full/2", end_while_counting, 2, NULL, NULL, prepare_full, finish_end),
	{.name = NULL},
};
