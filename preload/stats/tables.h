/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Threads' tables: given to threads, emptied when these have ended, and left to the parent by a
 * forked child. Included by thread.c, and by the model checker's clients (tests/check/tables.c).
 * The including file defines:
 *
 *   free_tables                  tables without a thread
 *   scan_at                      tables from which on ended threads are looked for; 0: at first
 *   scanning                     a thread looks for them
 *   left                         the fork generation that left the parent's file
 *   thread_now(), process_now()  ids of the caller
 *   begin_thread(table)          the caller begins to use @table
 *   forget_table()               resets stats_self
 *
 * and includes thread.h and row.h.
 */

#include "part/generation.h"

#define BEING_EMPTIED UINT32_MAX /* a table's tid */
#define SCAN_AT_LEAST 64u

/* ---- Tables ---- */

/*
 * Whether the thread @tid has ended. The @caller has no table yet, so a table with its number is an
 * ended thread's.
 */
static bool has_ended(uint32_t tid, uint32_t caller)
{
	return tid == caller || !w_has_thread(w_process(), tid);
}

/* Adds the time of @table's thread, which has ended, to that of all such threads. */
static void keep_time(struct stats_thread *table)
{
	/* relaxed, all: figures */
	uint64_t end = w_load_relaxed(&table->end_ns);

	end = end ? end : w_load_relaxed(&table->seen_ns);
	(void)w_fetch_add_relaxed(&stats_region->thread_ns, end - w_load_relaxed(&table->start_ns));
	w_store_relaxed(&table->start_ns, 0);
}

/* Adds the counts of @table to the locks' items. */
static void empty(struct stats_thread *table, uint32_t index)
{
	keep_time(table);
	for (int row = 0; row < STATS_ROWS; row++)
		if (w_load_relaxed(&table->rows[row].key))
			stats_row_merge(table, &table->rows[row]);
	stats_private->pending[index].key = 0;
}

/* Empties and frees the tables of threads that have ended, unless another thread is doing so. */
static void free_ended(uint32_t caller)
{
	uint32_t alive = 0, tid;

	if (w_exchange_acquire(&scanning, 1))
		return;
	for (uint32_t i = 0; i < stats_used(STATS_THREADS); i++) {
		struct stats_thread *table = stats_item(STATS_THREADS, i);

		tid = w_load_relaxed(&table->tid);
		if (!tid || tid == BEING_EMPTIED)
			continue;
		if (!has_ended(tid, caller)) {
			alive++;
			continue;
		}
		if (!w_compare_exchange_acquire(&table->tid, &tid, BEING_EMPTIED))
			continue;
		empty(table, i);
		/* release: pairs with the acquire in take_free(); an empty table */
		w_store_release(&table->tid, 0);
		(void)w_fetch_add_relaxed(&free_tables, 1);
	}
	w_store_relaxed(&scan_at, 2 * alive + SCAN_AT_LEAST);
	w_store_release(&scanning, 0);
}

/* Takes a free table for the thread @tid. NULL if there is none. */
static struct stats_thread *take_free(uint32_t tid)
{
	uint32_t none;

	if (!w_load_relaxed(&free_tables))
		return NULL;
	for (uint32_t i = 0; i < stats_used(STATS_THREADS); i++) {
		struct stats_thread *table = stats_item(STATS_THREADS, i);

		none = 0;
		/*
		 * A table that was taken, but whose memory could not be had, looks free. Only its
		 * serial is still 0. acquire: pairs with the release in stats_attach(); the id of
		 * the thread that made the table
		 */
		if (w_load_acquire(&table->serial) && !w_load_relaxed(&table->tid) &&
		    w_compare_exchange_acquire(&table->tid, &none, tid)) {
			(void)w_fetch_add_relaxed(&free_tables, (uint32_t)-1);
			return table;
		}
	}
	return NULL;
}

/* Makes a table for the thread @tid. NULL if there is no room. */
static struct stats_thread *make(uint32_t tid)
{
	uint32_t index;
	struct stats_thread *table = stats_take(STATS_THREADS, 0, &index);

	if (table)
		w_store_relaxed(&table->tid, tid);
	return table;
}

static struct stats_thread *take_or_make(uint32_t tid)
{
	struct stats_thread *table = take_free(tid);

	return table ? table : make(tid);
}

/* ---- The calling thread ---- */

/*
 * A table for the calling thread, which has none. NULL if there is no room. A thread that meets
 * another one's search for ended threads does not wait for it, but makes a table.
 */
static struct stats_thread *get_table(void)
{
	uint32_t tid = thread_now(), many = w_load_relaxed(&scan_at);
	struct stats_thread *table = NULL;

	if (stats_used(STATS_THREADS) < (many ? many : SCAN_AT_LEAST))
		table = take_or_make(tid);
	if (table)
		return table;
	free_ended(tid);
	return take_or_make(tid);
}

/*
 * A vfork child has its parent's thread-local storage: a table with the id of the child would look
 * like an ended thread's while the parent counts in it.
 */
static bool is_guest(void)
{
	return process_now() != w_process();
}

bool stats_attach(void)
{
	uint64_t serial;

	if (stats_self.refused || is_guest())
		return false;
	if (stats_region_open(false))
		stats_self.own = get_table();
	if (!stats_self.own) {
		stats_self.refused = true;
		(void)w_fetch_add_relaxed(&stats_region->threads_unobserved, 1);
		return false;
	}
	serial = w_fetch_add_relaxed(&stats_region->threads, 1) + 1;
	/* release: pairs with the acquire in take_free() */
	w_store_release(&stats_self.own->serial, serial);
	begin_thread(stats_self.own);
	stats_self.random = (uint32_t)serial * 2654435761u | 1;
	stats_self.table = stats_self.own;
	return true;
}

/* ---- Fork ---- */

/*
 * In a forked child: the first thread that comes here leaves the file to the parent; each thread
 * forgets its table.
 */
W_SLOW void stats_leave_to_parent(void)
{
	forget_table();
	/* A signal handler that locks would get a table of the parent's file. */
	stats_self.inside = true;
	stats_self.begun = w_fork_generation() + 1;
	if (generation_claim(&left)) {
		stats_region_leave();
		/* relaxed, all: generation_settle() publishes them */
		w_store_relaxed(&free_tables, 0);
		w_store_relaxed(&scan_at, 0);
		w_store_relaxed(&scanning, 0);
		generation_settle(&left);
	}
	stats_self.inside = false;
}
