/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of the list of threads' records (world/user/records.h). Each thread must get a record and
 * an id that no other live thread has: from its own chunk, from another thread's new chunk, or from
 * a thread that has ended.
 */
#include "check.h"

#define MOST_THREADS 3
#define AT_A_TIME 3 /* records per chunk: one may be found free while the next is being added */
#define MOST_RECORDS (AT_A_TIME * MOST_THREADS)

struct w_self {
	W_ATOMIC(uint64_t) owner;
	uint32_t id;
	uint32_t user; /* written only by the owner */
	struct w_self *next;
};

struct memory {
	W_ATOMIC(struct w_self *) records;
	W_ATOMIC(struct w_self *) cursor;
	W_ATOMIC(uint32_t) record_count;
	W_ATOMIC(uint32_t) free_count;
	W_ATOMIC(uint32_t) scan_at;
	struct {
		W_ATOMIC(uint32_t) scanning;
	} process;
	W_ATOMIC(uint32_t) ended[MOST_THREADS];
	uint32_t at_a_time; /* records per chunk */
	struct w_self made[MOST_THREADS][AT_A_TIME];
};

/* By id: how many threads have the record now, and whether a thread had it before. */
struct notes {
	uint32_t users[MOST_RECORDS + 1];
	uint32_t past[MOST_RECORDS + 1];
	uint32_t reused;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

/*
 * The environment that records.h requires. Its operations are sequentially consistent; these only
 * acquire and release, so the clients check more than is needed.
 */
#define records M->records
#define cursor M->cursor
#define record_count M->record_count
#define free_count M->free_count
#define scan_at M->scan_at
#define w_this_process M->process
#define CHUNK (M->at_a_time * sizeof(struct w_self))
#define w_keep(size) ((void)(size), (void *)M->made[check_engine->self()])

#define atomic_load(p) w_load_acquire(p)
#define atomic_store(p, v) w_store_release(p, v)
#define atomic_exchange(p, v) w_exchange_acq_rel(p, v)
#define atomic_fetch_add(p, v) ((void)w_fetch_add_acq_rel(p, v))
#define atomic_fetch_sub(p, v) ((void)w_fetch_add_acq_rel(p, -(v)))
#define atomic_compare_exchange_strong(p, seen, v) w_compare_exchange_acq_rel(p, seen, v)

static bool is_vacant(uint64_t owner)
{
	return !owner;
}

/* Stands for the question to the kernel. */
static bool is_dead(struct w_self *self, uint64_t owner, uint64_t caller)
{
	(void)self;
	return owner == caller || w_load_acquire(&M->ended[owner - 1]);
}

#include "../../world/user/records.h"

/* Gets a record, uses it alone, and ends. */
static void live(uint32_t self)
{
	struct w_self *own = get_record(self + 1);
	uint32_t id = own->id;

	check_assert(w_load_relaxed(&own->owner) == self + 1);
	check_assert(id && id <= MOST_RECORDS);
	own->user = self;
	check_assert(check_add(&NOTES->users[id], 1) == 1);
	NOTES->reused += NOTES->past[id];
	(void)w_load_relaxed(&scan_at); /* a step at which other threads may run */
	check_assert(own->user == self && own->id == id);
	NOTES->past[id] = 1;
	(void)check_add(&NOTES->users[id], -1);
	w_store_release(&M->ended[self], 1);
}

/* Threads find records that others have added. */
static void prepare(void)
{
	M->at_a_time = AT_A_TIME;
	scan_at = MOST_RECORDS + 1;
}

/* Threads must scan for those that have ended. */
static void prepare_scan(void)
{
	M->at_a_time = 1;
	scan_at = 1;
}

static void finish(void)
{
	check_outcome(0, NOTES->reused);
}

#define ENTRY(title, count, before, allows, ...)                                               \
	{                                                                                      \
		.name = title, .shared = sizeof(struct memory), .ghost = sizeof(struct notes), \
		.threads = count, .thread = live, .setup = before, .finish = finish,           \
		.allowed = allows, __VA_ARGS__                                                 \
	}

const struct check_client check_clients[] = {
	ENTRY("added/2", 2, prepare, "0"),
	ENTRY("added/3", 3, prepare, "0", .bound = 2),
	ENTRY("dead/2", 2, prepare_scan, "0 1"),
	ENTRY("dead/3", 3, prepare_scan, NULL, .walks = 20000),
	{.name = NULL},
};
