/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The calling thread's state and times; its table is tables.h's. */
#include "thread.h"

#include <pthread.h>

#include "kernel.h"
#include "row.h"

struct stats_thread stats_no_table;
struct stats_row stats_no_row;

#define SELF_INIT                                                                  \
	{                                                                          \
		.table = &stats_no_table, .last = { &stats_no_row, &stats_no_row } \
	}

__thread struct stats_self stats_self __attribute__((tls_model("initial-exec"))) = SELF_INIT;

static uint32_t hold_every;

static W_ATOMIC(uint32_t) free_tables, scan_at, scanning, left;

static uint32_t thread_now(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static uint32_t process_now(void)
{
	return (uint32_t)syscall(SYS_getpid);
}

static void forget_table(void)
{
	stats_self = (struct stats_self)SELF_INIT;
}

/* ---- Timed holds ---- */

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

#include "tables.h"
