/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Threads' tables, and what a forked child does with them. */
#include "thread.h"

#include <pthread.h>

#include "kernel.h"
#include "part/generation.h"
#include "row.h"

#define BEING_EMPTIED UINT32_MAX /* a table's tid */
#define SCAN_AT_LEAST 64u

struct stats_thread stats_no_table;
struct stats_row stats_no_row;

#define SELF_INIT                                                                  \
	{                                                                          \
		.table = &stats_no_table, .last = { &stats_no_row, &stats_no_row } \
	}

__thread struct stats_self stats_self __attribute__((tls_model("initial-exec"))) = SELF_INIT;

static uint32_t hold_every;
static W_ATOMIC(uint32_t) free_tables;
static W_ATOMIC(uint32_t) scan_at; /* tables from which on ended threads are looked for */
static W_ATOMIC(uint32_t) scanning;
static W_ATOMIC(uint32_t) process;

/* ---- Tables ---- */

static uint32_t thread_now(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/*
 * Whether the thread @tid has ended. The @caller has no table yet, so a table with its number is an
 * ended thread's.
 */
static bool has_ended(uint32_t tid, uint32_t caller)
{
	/* relaxed: set before the first table is */
	return tid == caller || !w_has_thread(w_load_relaxed(&process), tid);
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
		 * serial is still 0.
		 */
		if (w_load_relaxed(&table->serial) && !w_load_relaxed(&table->tid) &&
		    w_compare_exchange_acquire(&table->tid, &none, tid)) {
			(void)w_fetch_add_relaxed(&free_tables, (uint32_t)-1);
			return table;
		}
	}
	return NULL;
}

/*
 * Makes a table for the thread @tid. NULL if there is no room, or tables of ended threads are to be
 * looked for first.
 */
static struct stats_thread *make(uint32_t tid)
{
	struct stats_thread *table;
	uint32_t index;

	if (stats_used(STATS_THREADS) >= w_load_relaxed(&scan_at))
		return NULL;
	table = stats_take(STATS_THREADS, 0, &index);
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

void stats_time_one_of(uint32_t mean)
{
	hold_every = mean;
}

static uint32_t random_number(void)
{
	uint32_t x = stats_self.random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return stats_self.random = x;
}

uint32_t stats_next_timed(void)
{
	return 1 + random_number() % (2 * hold_every - 1);
}

uint32_t stats_first_timed(void)
{
	/* The rest of an interval from within it: nearly as likely as the lesser of two. */
	uint32_t one = stats_next_timed(), other = stats_next_timed();

	return one < other ? one : other;
}

static void begin_process(void)
{
	/* relaxed, both: every thread stores the same */
	w_store_relaxed(&process, (uint32_t)syscall(SYS_getpid));
	if (!w_load_relaxed(&scan_at))
		w_store_relaxed(&scan_at, SCAN_AT_LEAST);
}

/* A table for the calling thread, which has none. NULL if there is no room. */
static struct stats_thread *get_table(void)
{
	uint32_t tid = thread_now();
	struct stats_thread *table = take_or_make(tid);

	if (table)
		return table;
	free_ended(tid);
	return take_or_make(tid);
}

/* ---- Times ---- */

/* Keys below this need no memory of malloc. */
#define KEYS_IN_PLACE 32

static pthread_key_t key;
static bool has_key;

static void thread_ends(void *unused)
{
	(void)unused;
	stats_check_fork();
	if (stats_self.own)
		w_store_relaxed(&stats_self.own->end_ns, w_now());
}

/* The process ends by exit(). Not run in a process that is killed, or calls _exit(). */
__attribute__((destructor)) static void process_ends(void)
{
	if (!stats_region)
		return;
	stats_check_fork();
	if (stats_region_is_open())
		w_store_relaxed(&stats_region->end_ns, w_now());
}

void stats_watch_threads(void)
{
	has_key = !pthread_key_create(&key, thread_ends) && key < KEYS_IN_PLACE;
}

static void begin_thread(struct stats_thread *table)
{
	uint64_t now = w_now();

	/* relaxed, all: figures */
	w_store_relaxed(&table->end_ns, 0);
	w_store_relaxed(&table->seen_ns, now);
	w_store_relaxed(&table->start_ns, now);
	if (has_key)
		pthread_setspecific(key, table);
}

bool stats_attach(void)
{
	uint64_t serial;

	if (stats_self.refused)
		return false;
	if (stats_region_open(false)) {
		begin_process();
		stats_self.own = get_table();
	}
	if (!stats_self.own) {
		stats_self.refused = true;
		(void)w_fetch_add_relaxed(&stats_region->threads_unobserved, 1);
		return false;
	}
	serial = w_fetch_add_relaxed(&stats_region->threads, 1) + 1;
	w_store_relaxed(&stats_self.own->serial, serial);
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
	static W_ATOMIC(uint32_t) left;

	stats_self = (struct stats_self)SELF_INIT;
	stats_self.begun = w_fork_generation() + 1;
	if (!generation_claim(&left))
		return;
	stats_region_leave();
	/* relaxed, all: generation_settle() publishes them */
	w_store_relaxed(&free_tables, 0);
	w_store_relaxed(&scan_at, 0);
	w_store_relaxed(&scanning, 0);
	generation_settle(&left);
}
