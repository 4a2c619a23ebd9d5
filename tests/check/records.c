/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of threads' records (world/user/records.h) and of the beginning of a process
 * (world/user/process.h). Each thread must get a record and an id that no other live thread has:
 * from its own chunk, from another thread's new chunk, from a thread that has ended, or from a
 * thread of the parent that does not exist in the child.
 */
#include "check.h"

#define MOST_THREADS 4
#define AT_A_TIME 3   /* records per chunk: one may be found free while the next is being added */
#define MOST_CHUNKS 3 /* by each thread */
#define MOST_RECORDS (AT_A_TIME * MOST_CHUNKS * MOST_THREADS)
#define MOST_IDS 8

struct w_self {
	W_ATOMIC(uint64_t) owner;
	uint32_t id;
	uint32_t user; /* written only by the owner */
	struct w_self *next;
	W_ATOMIC(uint32_t) life;
	W_ATOMIC(uint64_t) held_by;
};

struct memory {
	W_ATOMIC(struct w_self *) records;
	W_ATOMIC(struct w_self *) cursor;
	W_ATOMIC(uint32_t) record_count;
	W_ATOMIC(uint32_t) free_count;
	W_ATOMIC(uint32_t) scan_at;
	W_ATOMIC(uint32_t) generations;
	struct {
		W_ATOMIC(uint32_t) generation;
		W_ATOMIC(uint32_t) number;
		W_ATOMIC(struct w_self *) forker;
		W_ATOMIC(uint32_t) beginning;
		W_ATOMIC(uint32_t) orphaned;
		W_ATOMIC(uint32_t) scanning;
	} process;
	W_ATOMIC(uint32_t) ended[MOST_IDS]; /* by the kernel's id of a thread */
	uint32_t at_a_time;                 /* records per chunk */
	bool kernel_marks;
	struct w_self *own[MOST_THREADS]; /* thread-local */
	struct w_self made[MOST_THREADS][MOST_CHUNKS][AT_A_TIME];
};

struct notes {
	/* By the record's id: its present users, and whether it had one before. */
	uint32_t users[MOST_RECORDS + 1];
	uint32_t past[MOST_RECORDS + 1];
	uint32_t reused;
	/* By thread: its id and that of its process, its chunks, and whether it has a record. */
	uint32_t thread[MOST_THREADS], process[MOST_THREADS];
	uint32_t chunks[MOST_THREADS];
	bool attached[MOST_THREADS];
	bool must_reuse;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SELF check_engine->self()

/*
 * The environment that records.h and process.h require. Its operations are sequentially consistent;
 * these only acquire and release, so the clients check more than is needed.
 */
#define records M->records
#define cursor M->cursor
#define record_count M->record_count
#define free_count M->free_count
#define scan_at M->scan_at
#define generations M->generations
#define w_this_process M->process
#define w_self_or_null M->own[SELF]
#define kernel_marks M->kernel_marks
#define CHUNK (M->at_a_time * sizeof(struct w_self))
#define SCAN_SLACK 0
#define FUTEX_OWNER_DIED 0x40000000u
#define w_keep(size) ((void)(size), (void *)M->made[SELF][NOTES->chunks[SELF]++])
#define settle_nodes(self) ((void)(self))
#define tell() ((void)0)
#define wake_all(word) w_unpark_all(word)

#define atomic_load(p) w_load_acquire(p)
#define atomic_store(p, v) w_store_release(p, v)
#define atomic_exchange(p, v) w_exchange_acq_rel(p, v)
#define atomic_fetch_add(p, v) ((void)w_fetch_add_acq_rel(p, v))
#define atomic_fetch_sub(p, v) ((void)w_fetch_add_acq_rel(p, -(v)))
#define atomic_fetch_or(p, v) w_fetch_or_acq_rel(p, v)
#define atomic_compare_exchange_strong(p, seen, v) w_compare_exchange_acq_rel(p, seen, v)

/* ---- The kernel ---- */

static uint32_t thread_id(void)
{
	return NOTES->thread[SELF];
}

static uint32_t process_id(void)
{
	return NOTES->process[SELF];
}

static uint32_t life_word(struct w_self *self)
{
	return w_load_acquire(&self->life);
}

static bool hold_life(struct w_self *self, uint64_t owner)
{
	if (!kernel_marks)
		return false;
	w_store_relaxed(&self->life, 0);
	(void)w_exchange_acquire(&self->life, (uint32_t)owner);
	return true;
}

static bool is_known(uint32_t tid, bool guest)
{
	(void)guest;
	return !w_load_acquire(&M->ended[tid]);
}

/* The caller ends, and the kernel may give its id to a later thread. */
static void end(struct w_self *own)
{
	if (kernel_marks && w_self_or_null == own)
		(void)w_fetch_or_acq_rel(&own->life, FUTEX_OWNER_DIED);
	w_store_release(&M->ended[thread_id()], 1);
	w_self_or_null = NULL;
}

/* ---- As in thread.h and thread.c ---- */

static uint32_t w_process_begin(void);

#undef w_fork_generation
static uint32_t w_fork_generation(void)
{
	uint32_t begun = w_load_relaxed(&w_this_process.generation);

	return begun ? begun - 1 : w_process_begin();
}

#undef w_process
static uint32_t w_process(void)
{
	return w_load_relaxed(&w_this_process.number);
}

#include "../../world/user/process.h"
#include "../../world/user/records.h"

static uint32_t w_process_begin(void)
{
	uint32_t begun = atomic_load(&w_this_process.generation);

	return begun ? begun - 1 : begin_once();
}

/* ---- Threads ---- */

/* The caller becomes a thread with the id @thread of a process. */
static void become(uint32_t thread, uint32_t process)
{
	NOTES->thread[SELF] = thread;
	NOTES->process[SELF] = process;
}

/* Nobody else may use @own as long as the caller has it. */
static void use(struct w_self *own)
{
	uint32_t self = SELF, id = own->id;

	own->user = self;
	(void)w_load_relaxed(&scan_at); /* a step at which other threads may run */
	check_assert(own->user == self && own->id == id);
}

static struct w_self *get(void)
{
	struct w_self *own = attach();
	uint32_t id = own->id;

	check_assert((uint32_t)w_load_relaxed(&own->owner) % OWNER_GUEST == thread_id());
	check_assert(id && id <= MOST_RECORDS);
	check_assert(check_add(&NOTES->users[id], 1) == 1);
	NOTES->reused += NOTES->past[id];
	NOTES->attached[SELF] = true;
	return own;
}

/* Ends with the record @own. */
static void leave(struct w_self *own)
{
	NOTES->past[own->id] = 1;
	(void)check_add(&NOTES->users[own->id], -1);
	end(own);
}

/* Gets a record, uses it alone, and ends. */
static void live(void)
{
	struct w_self *own = get();

	use(own);
	leave(own);
}

#define PROCESS 1u /* its threads have the ids 1, 2, ... */

static void live_in_process(uint32_t self)
{
	become(PROCESS + self, PROCESS);
	live();
}

/*
 * The first thread ends; a thread is created that gets the same id from the kernel. Another has two
 * lives, so that it may look for the dead twice.
 */
static void live_with_equal_ids(uint32_t self)
{
	if (self == 0) {
		live_in_process(0);
		check_create_threads();
	} else if (self == 1) {
		live_in_process(1);
		live_in_process(2);
	} else {
		check_wait_to_be_created();
		live_in_process(0);
	}
}

/* A vfork child, which shares its parent's memory but is no thread of its process. */
static void live_as_guest(void)
{
	struct w_self *own = get();

	use(own);
	check_assert(attach() == own);
	check_assert(!w_self_or_null);
	use(own);
	leave(own);
}

static void guest(uint32_t self)
{
	if (self == 1) {
		become(2, 2);
		live_as_guest();
		return;
	}
	live_in_process(self);
	live_in_process(2);
}

/* ---- Forks ---- */

#define CHILD 5u /* the process id of the child, and the thread id of the thread that forked */

/* Clears what the kernel clears in a child. The other threads of the parent do not exist there. */
static void wipe(struct w_self *own)
{
	w_store_relaxed(&w_this_process.generation, 0);
	w_store_relaxed(&w_this_process.number, 0);
	w_store_relaxed(&w_this_process.forker, NULL);
	w_store_relaxed(&w_this_process.beginning, 0);
	w_store_relaxed(&w_this_process.orphaned, 0);
	w_store_relaxed(&w_this_process.scanning, 0);
	for (uint32_t id = 1; id <= MOST_RECORDS; id++)
		if (NOTES->users[id] && !(own && own->id == id)) {
			NOTES->users[id] = 0;
			NOTES->past[id] = 1;
		}
}

/* @calls_handler: the child of fork(), not of the system call. Only its thread is the forker. */
static void fork_with(struct w_self *own, bool calls_handler)
{
	check_fork();
	wipe(own);
	become(CHILD, CHILD);
	if (calls_handler)
		w_store_relaxed(&w_this_process.forker, own ? own : NO_RECORD);
	NOTES->must_reuse = calls_handler && NOTES->attached[1];
	check_create_threads();
}

/* A thread of the child, which may have the id of a thread of the parent. */
static void live_in_child(uint32_t self)
{
	check_wait_to_be_created();
	become(self, CHILD);
	live();
}

static void others(uint32_t self)
{
	if (self == 1)
		live_in_process(1);
	else
		live_in_child(self);
}

/* The forking thread keeps its record. */
static void fork_with_record(bool calls_handler)
{
	struct w_self *own;

	become(PROCESS, PROCESS);
	own = get();
	fork_with(own, calls_handler);
	use(own);
	(void)w_process_begin();
	use(own);
	check_assert(w_self_or_null == own);
}

/* The forking thread gets a record in the child only. */
static void fork_without_record(bool calls_handler)
{
	become(PROCESS, PROCESS);
	fork_with(NULL, calls_handler);
	live();
}

static void forked(uint32_t self)
{
	if (self == 0)
		fork_with_record(true);
	else
		others(self);
}

static void forked_without(uint32_t self)
{
	if (self == 0)
		fork_without_record(true);
	else
		others(self);
}

static void cloned(uint32_t self)
{
	if (self == 0)
		fork_with_record(false);
	else
		others(self);
}

static void cloned_without(uint32_t self)
{
	if (self == 0)
		fork_without_record(false);
	else
		others(self);
}

/* ---- Starts and ends ---- */

static void prepare(void)
{
	w_store_relaxed(&w_this_process.generation, 1);
	w_store_relaxed(&w_this_process.number, PROCESS);
	w_store_relaxed(&generations, 1);
	kernel_marks = true;
	M->at_a_time = 1;
}

/* Threads find records that others have added. */
static void prepare_added(void)
{
	prepare();
	M->at_a_time = AT_A_TIME;
	scan_at = MOST_RECORDS + 1;
}

/* Threads must scan for those that have ended. */
static void prepare_unmarked(void)
{
	prepare();
	kernel_marks = false;
}

/* A thread of the parent had a record that nobody but the forking thread kept from the child's. */
static void finish(void)
{
	check_assert(!NOTES->must_reuse || NOTES->reused);
	check_outcome(0, NOTES->reused);
}

#define ENTRY(title, count, body, before, allows, ...)                                         \
	{                                                                                      \
		.name = title, .shared = sizeof(struct memory), .ghost = sizeof(struct notes), \
		.threads = count, .thread = body, .setup = before, .finish = finish,           \
		.allowed = allows, __VA_ARGS__                                                 \
	}
#define FORKS .flags = CHECK_CLIENT_FORKS

const struct check_client check_clients[] = {
	ENTRY("added/2", 2, live_in_process, prepare_added, "0"),
	ENTRY("added/3", 3, live_in_process, prepare_added, "0", .bound = 2),
	ENTRY("dead/2", 2, live_in_process, prepare, "0 1"),
	ENTRY("dead/3", 3, live_in_process, prepare, NULL, .walks = 20000),
	ENTRY("dead/unmarked/2", 2, live_in_process, prepare_unmarked, "0 1"),
	ENTRY("dead/equal_ids/3", 3, live_with_equal_ids, prepare, NULL, .bound = 2),
	ENTRY("dead/guest/2", 2, guest, prepare, "0 1 2", .bound = 3),
	ENTRY("fork/3", 3, forked, prepare, "0 1", FORKS),
	ENTRY("fork/4", 4, forked, prepare, "0 1 2", FORKS, .bound = 2),
	ENTRY("fork/without/3", 3, forked_without, prepare, "0 1 2", FORKS),
	ENTRY("clone/3", 3, cloned, prepare, "0 1", FORKS),
	ENTRY("clone/4", 4, cloned, prepare, "0 1 2", FORKS, .bound = 2),
	ENTRY("clone/without/3", 3, cloned_without, prepare, "0 1", FORKS),
	{.name = NULL},
};
