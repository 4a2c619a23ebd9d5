/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of the threads' tables of the preload library's statistics (preload/stats/tables.h): each
 * thread counts alone in its table. No count is lost when its thread ends and another thread gets
 * the table, and a child, which may be forked at any moment, leaves its parent's file alone.
 */
#include <string.h>

#define W_HIDDEN
#define STATS_ROWS_BITS 1
#include "check.h"
#include "entry.h"

#include "../../preload/stats/file.h"

#define MOST_THREADS 4
#define MOST_TABLES 4
#define MOST_IDS 8

struct memory {
	/* As in region.c. */
	struct {
		W_ATOMIC(uint64_t) threads, threads_unobserved, thread_ns;
		W_ATOMIC(uint32_t) used;
		struct stats_thread tables[MOST_TABLES];
		W_ATOMIC(uint64_t) merged;
	} file;
	struct {
		struct {
			uint64_t key;
		} pending[MOST_TABLES];
	} private;
	/* As in thread.c. */
	W_ATOMIC(uint32_t) free_tables, scan_at, scanning, left;
	W_ATOMIC(uint32_t) ended[MOST_IDS]; /* by the kernel's id of a thread */
};

struct notes {
	/* By thread: as in thread.h; its id and that of its process. */
	struct {
		struct stats_thread *table, *own;
		uint32_t begun, random;
		bool inside, refused;
	} self[MOST_THREADS];
	uint32_t tid[MOST_THREADS], pid[MOST_THREADS];
	uint32_t most;              /* tables that fit in the file */
	uint32_t user[MOST_TABLES]; /* by table: 1 + the thread that has it; 0: none */
	uint32_t counted;           /* in the process's file */
	uint32_t process;           /* its id */
	bool interrupts;            /* a signal handler may still run */
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SHARED_BYTES sizeof(struct memory)
#define SELF check_engine->self()

/* ---- The environment that tables.h requires, in place of thread.h, row.h and region.h ---- */

#define free_tables M->free_tables
#define scan_at M->scan_at
#define scanning M->scanning
#define left M->left
#define stats_self NOTES->self[SELF]
#define stats_region (&M->file)
#define stats_private (&M->private)
#define stats_used(area) ((void)(area), most_used(w_load_relaxed(&M->file.used)))
#define stats_item(area, index) ((void)(area), &M->file.tables[index])

static uint32_t most_used(uint32_t used)
{
	return used < NOTES->most ? used : NOTES->most;
}

static struct stats_thread *stats_take(enum stats_area_name area, uint32_t spare, uint32_t *index)
{
	(void)area, (void)spare;
	if (w_load_relaxed(&M->file.used) >= NOTES->most)
		return NULL;
	*index = w_fetch_add_relaxed(&M->file.used, 1);
	return *index < NOTES->most ? &M->file.tables[*index] : NULL;
}

static bool stats_region_open(bool report)
{
	return !report;
}

static void wipe_table(struct stats_thread *table)
{
	w_store_relaxed(&table->tid, 0);
	w_store_relaxed(&table->serial, 0);
	for (uint32_t row = 0; row < STATS_ROWS; row++) {
		w_store_relaxed(&table->rows[row].key, 0);
		table->rows[row].counts[STATS_acquisitions] = 0;
	}
}

/* From here on the file is another one, which is empty. */
static void stats_region_leave(void)
{
	w_store_relaxed(&M->file.used, 0);
	w_store_relaxed(&M->file.merged, 0);
	NOTES->counted = 0;
	for (uint32_t i = 0; i < MOST_TABLES; i++) {
		wipe_table(&M->file.tables[i]);
		NOTES->user[i] = 0;
	}
}

/* The counts move to the lock's item (row.c). */
static void stats_row_merge(struct stats_thread *table, struct stats_row *row)
{
	(void)table;
	(void)w_fetch_add_relaxed(&M->file.merged, row->counts[STATS_acquisitions]);
	row->counts[STATS_acquisitions] = 0;
	w_store_relaxed(&row->key, 0);
}

static uint32_t thread_now(void)
{
	return NOTES->tid[SELF];
}

static uint32_t process_now(void)
{
	return NOTES->pid[SELF];
}

static bool w_has_thread(uint32_t of, uint32_t thread)
{
	return of == NOTES->process && !w_fetch_or_acquire(&M->ended[thread], 0);
}

static void begin_thread(struct stats_thread *table)
{
	w_store_relaxed(&table->start_ns, 1);
	w_store_relaxed(&table->end_ns, 0);
	w_store_relaxed(&table->seen_ns, 1);
}

static void forget_table(void)
{
	if (stats_self.own)
		NOTES->user[stats_self.own - M->file.tables] = 0;
	memset(&stats_self, 0, sizeof(stats_self));
}

static bool stats_attach(void);
static void stats_leave_to_parent(void);
static void may_be_interrupted(void);

#undef w_process
#define w_process() NOTES->process

#undef w_fork_generation
static uint32_t w_fork_generation(void)
{
	may_be_interrupted();
	return check_engine->generation();
}

/* As in thread.h. */
static void stats_check_fork(void)
{
	if (stats_self.begun != w_fork_generation() + 1)
		stats_leave_to_parent();
}

#include "../../preload/stats/tables.h"

/* ---- Threads ---- */

static uint32_t index_of(const struct stats_thread *table)
{
	return (uint32_t)(table - M->file.tables);
}

/* The caller becomes a thread with the id @tid of the process @pid. */
static void become(uint32_t tid, uint32_t pid)
{
	NOTES->tid[SELF] = tid;
	NOTES->pid[SELF] = pid;
}

/* Whether the caller has a table, or gets one for itself alone. */
static bool has_table(void)
{
	if (stats_self.table)
		return true;
	if (!stats_attach())
		return false;
	check_assert(!NOTES->user[index_of(stats_self.own)]);
	NOTES->user[index_of(stats_self.own)] = SELF + 1;
	return true;
}

/* Counts one acquisition, as stats_row_of() does. */
static void count_one(void)
{
	bool inside;

	stats_check_fork();
	inside = stats_self.inside;
	stats_self.inside = true;
	if (!inside && has_table()) {
		check_assert(NOTES->user[index_of(stats_self.table)] == SELF + 1);
		w_store_relaxed(&stats_self.table->rows[0].key, 1);
		stats_self.table->rows[0].counts[STATS_acquisitions]++;
		(void)check_add(&NOTES->counted, 1);
	}
	stats_self.inside = inside;
}

/* A signal handler that locks, at most once per execution. */
static void may_be_interrupted(void)
{
	if (!NOTES->interrupts || !CHECK_DO("signal", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0))
		return;
	NOTES->interrupts = false;
	count_one();
}

/* The caller ends, and the kernel may give its id to a later thread. */
static void end(void)
{
	stats_check_fork();
	if (stats_self.own)
		w_store_relaxed(&stats_self.own->end_ns, 2);
	forget_table();
	(void)w_exchange_release(&M->ended[NOTES->tid[SELF]], 1);
}

static void live(void)
{
	count_one();
	/* A step at which other threads may run. */
	(void)w_load_relaxed(&M->file.used);
	count_one();
	check_assert(!stats_self.refused);
	end();
}

#define PROCESS 1u /* its threads have the ids 1, 2, ... */

static void live_once(uint32_t self)
{
	become(PROCESS + self, PROCESS);
	(void)w_exchange_acquire(&M->ended[PROCESS + self], 0);
	live();
}

/* Two threads in turn; the second may have the first one's id. */
static void live_twice(uint32_t self)
{
	live_once(self);
	live_once(self == 1 ? 3 : self);
}

/* Of two threads in turn, the second gets the table of the first, or one of its own. */
static void live_twice_or_once(uint32_t self)
{
	live_once(self);
	if (!self)
		live_once(self);
}

/* Threads in turn, of which each needs the table of the one before. */
static void live_in_turn(uint32_t self)
{
	live_twice(self);
	live_once(2);
}

/* A vfork child of thread 0, whose thread-local storage it shares, locks first. */
static void live_with_guest(uint32_t self)
{
	if (self) {
		live_once(self);
		return;
	}
	become(7, 7);
	count_one();
	(void)w_exchange_release(&M->ended[7], 1);
	live_once(self);
}

#define CHILD 5u

/* Thread 0 forks while thread 1 may be anywhere; threads 2 and 3 are the child's. */
static void fork_and_live(uint32_t self)
{
	if (self > 1)
		check_wait_to_be_created();
	become(self > 1 ? self : PROCESS + self, self > 1 ? CHILD : PROCESS);
	count_one();
	if (!self) {
		check_fork();
		become(CHILD, CHILD);
		NOTES->process = CHILD;
		check_create_threads();
		count_one();
	}
	end();
}

/* ---- Starts and ends ---- */

static void prepare(void)
{
	NOTES->most = MOST_TABLES;
	NOTES->process = PROCESS;
}

/* Ended threads are looked for before the second table is made. */
static void prepare_scan(void)
{
	prepare();
	w_store_relaxed(&scan_at, 1);
}

static void prepare_full(void)
{
	prepare();
	NOTES->most = 1;
}

static void prepare_signal(void)
{
	prepare();
	NOTES->interrupts = true;
}

/* No count is lost, and no search for ended threads is left over. */
static void finish(void)
{
	uint64_t sum = w_load_relaxed(&M->file.merged);
	uint32_t unused = 0;

	for (uint32_t i = 0; i < MOST_TABLES; i++) {
		struct stats_thread *table = &M->file.tables[i];

		sum += table->rows[0].counts[STATS_acquisitions];
		unused += w_load_relaxed(&table->serial) && !w_load_relaxed(&table->tid);
	}
	check_assert(sum == NOTES->counted);
	check_assert(unused == w_load_relaxed(&free_tables));
	check_assert(!w_load_relaxed(&scanning));
}

#define FORKS .flags = CHECK_CLIENT_FORKS

const struct check_client check_clients[] = {
	ENTRY("full/1", live_in_turn, 1, NULL, NULL, prepare_full, finish),
	ENTRY("2x1", live_once, 2, NULL, NULL, prepare, finish),
	ENTRY("reused/2", live_twice_or_once, 2, NULL, NULL, prepare_scan, finish),
	ENTRY("2x2", live_twice, 2, NULL, NULL, prepare_scan, finish, .bound = 3),
	ENTRY("3x1", live_once, 3, NULL, NULL, prepare_scan, finish, .bound = 2),
	ENTRY("guest/2", live_with_guest, 2, NULL, NULL, prepare_scan, finish),
	ENTRY("fork/3", fork_and_live, 3, NULL, NULL, prepare_scan, finish, FORKS),
	ENTRY("fork/4", fork_and_live, 4, NULL, NULL, prepare_scan, finish, FORKS, .bound = 2),
	ENTRY("fork/signal/3", fork_and_live, 3, NULL, NULL, prepare_signal, finish, FORKS),
	{.name = NULL},
};
