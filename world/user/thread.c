/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Threads' records: found without a lock or malloc, reused after their thread has ended, and never unmapped.
 *
 * A thread gets its record at its first wait (or first acquisition of a lock whose holders keep a node) and never gives
 * it back: there is no moment at a thread's end after which it takes no lock any more. Instead, when there are twice as
 * many records as there were living threads last time, the records of threads that the kernel no longer knows are freed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "world.h"

struct w_more_nodes {
	struct w_more_nodes *next;
	struct w_node nodes[];
};

#define CHUNK 4096 /* of few: threads that begin together may each find none free, and make one */
#define MORE_BYTES 4096
#define MORE_NODES ((MORE_BYTES - sizeof(struct w_more_nodes)) / sizeof(struct w_node))
#define RESERVE 64
#define SPARE ((size_t)1 << 20)

__thread struct w_self *w_self_or_null __attribute__((tls_model("initial-exec")));
__thread struct w_own w_own __attribute__((tls_model("initial-exec")));
uint32_t w_generation;
bool w_listening;
void (*w_listener)(enum w_event event);
struct w_node w_queue_nodes[W_QUEUE_NODES];
struct w_visible w_visible_readers[W_VISIBLE] __attribute__((aligned(64)));
#ifdef __SANITIZE_THREAD__
W_ATOMIC(uint32_t) w_fence_word;
#endif

static W_ATOMIC(struct w_self *) records;
static W_ATOMIC(struct w_self *) cursor; /* where the search for a free record goes on */
static W_ATOMIC(uint32_t) record_count;
static W_ATOMIC(uint32_t) free_count;
static W_ATOMIC(uint32_t) scan_at = 32; /* how many records there may be before the dead ones are looked for */
static W_ATOMIC(uint32_t) scanning;     /* one at a time, so that a record found dead is still the dead thread's */
static struct w_node reserve[RESERVE];  /* for when there is no memory */

/* Not getpid(): a vfork child shares our memory, not our threads. */
W_ATOMIC(uint32_t) w_process_number;

uint32_t w_process_read(void)
{
	uint32_t none = 0;

	atomic_compare_exchange_strong(&w_process_number, &none, (uint32_t)getpid());
	return atomic_load(&w_process_number);
}

static uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

void *w_map(size_t size)
{
	int saved = errno;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return memory == MAP_FAILED ? NULL : memory;
}

/* A part of what is there in any case, and costs nothing until it is touched. NULL if it does not suffice. */
static void *take_spare(size_t size)
{
	static char spare[SPARE] __attribute__((aligned(4096)));
	static W_ATOMIC(size_t) used;
	size_t from = atomic_load(&used), length = (size + 63) / 64 * 64;

	do
		if (length > SPARE - from)
			return NULL;
	while (!atomic_compare_exchange_weak(&used, &from, from + length));
	return spare + from;
}

void *w_keep(size_t size)
{
	void *memory = w_map(size);

	return memory ? memory : take_spare(size);
}

/* ---- The process's common block ---- */

W_ATOMIC(void *) w_common_block;

void *w_common_make(size_t bytes)
{
	void *made, *seen = NULL;

	while (!(made = w_keep(bytes)))
		w_yield();
	/* release: pairs with the acquires in w_common() and below */
	if (atomic_compare_exchange_strong_explicit(&w_common_block, &seen, made, memory_order_release,
						    memory_order_relaxed))
		return made;
	/* Another thread was faster, and what is kept is kept. */
	return atomic_load_explicit(&w_common_block, memory_order_acquire);
}

/* ---- Records ---- */

static bool claim(struct w_self *self, uint32_t from, uint32_t tid)
{
	return atomic_compare_exchange_strong(&self->tid, &from, tid);
}

/* A record that was freed, or NULL. */
static struct w_self *find_free(uint32_t tid)
{
	struct w_self *start = atomic_load(&cursor), *self;
	uint32_t steps = atomic_load(&record_count);

	if (!atomic_load(&free_count))
		return NULL;
	for (self = start; steps--; self = self->next ? self->next : atomic_load(&records)) {
		if (!self)
			self = atomic_load(&records);
		if (!atomic_load(&self->tid) && claim(self, 0, tid)) {
			atomic_fetch_sub(&free_count, 1);
			atomic_store(&cursor, self->next);
			return self;
		}
	}
	return NULL;
}

static bool thread_is_dead(uint32_t tid, uint32_t caller)
{
	int saved = errno;
	bool dead = tid == caller || (syscall(SYS_tgkill, w_process(), tid, 0) < 0 && errno == ESRCH);

	errno = saved;
	return dead;
}

/* Frees the records of threads that have ended. @caller has no record: one that carries its id is a dead thread's. */
static void free_dead(uint32_t caller)
{
	uint32_t alive = 0, tid;

	if (atomic_exchange(&scanning, 1))
		return;
	for (struct w_self *self = atomic_load(&records); self; self = self->next) {
		tid = atomic_load(&self->tid);
		if (!tid)
			continue;
		if (!thread_is_dead(tid, caller))
			alive++;
		else if (claim(self, tid, 0))
			atomic_fetch_add(&free_count, 1);
	}
	atomic_store(&scan_at, 2 * alive + 32);
	atomic_store(&scanning, 0);
}

/* Adds the record @self to the list. */
static void add(struct w_self *self)
{
	struct w_self *first = atomic_load(&records);

	do
		self->next = first;
	while (!atomic_compare_exchange_weak(&records, &first, self));
	self->id = atomic_fetch_add(&record_count, 1) + 1;
}

/* A new record out of a chunk of fresh memory, whose others become free ones; NULL if there is no memory. */
static struct w_self *new_record(uint32_t tid)
{
	struct w_self *chunk = w_keep(CHUNK);

	if (!chunk)
		return NULL;
	atomic_store(&chunk[0].tid, tid);
	add(&chunk[0]);
	for (size_t i = 1; i < CHUNK / sizeof(*chunk); i++) {
		add(&chunk[i]);
		atomic_fetch_add(&free_count, 1);
	}
	return chunk;
}

/* Without memory for a record, a thread's end may free one. */
static void wait_for_memory(uint32_t tid)
{
	free_dead(tid);
	w_yield();
}

struct w_self *w_self_attach(void)
{
	uint32_t tid = thread_id();
	struct w_self *self;

	while (!(self = find_free(tid))) {
		if (atomic_load(&record_count) >= atomic_load(&scan_at))
			free_dead(tid);
		else if ((self = new_record(tid)))
			break;
		else
			wait_for_memory(tid);
	}
	w_self_or_null = self;
	return self;
}

uint32_t w_random_seed(void)
{
	uint32_t seed = (uint32_t)w_now() * 2654435761u ^ thread_id();

	return seed ? seed : 1;
}

/* ---- Nodes ---- */

static bool is_free(struct w_node *node)
{
	return !atomic_load_explicit(&node->status, memory_order_acquire);
}

static struct w_node *find_node(struct w_node *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_free(&nodes[i]))
			return &nodes[i];
	return NULL;
}

static struct w_node *reserve_node(void)
{
	uint32_t expected;

	for (;;) {
		for (size_t i = 0; i < RESERVE; i++) {
			expected = 0;
			if (atomic_compare_exchange_strong(&reserve[i].status, &expected, UINT32_MAX))
				return &reserve[i];
		}
		w_yield();
	}
}

void *w_node_get_slow(struct w_self *self)
{
	struct w_node *node = find_node(self->nodes, W_NODES);
	struct w_more_nodes *first = atomic_load_explicit(&self->more, memory_order_relaxed), *more;

	for (more = first; !node && more; more = more->next)
		node = find_node(more->nodes, MORE_NODES);
	if (node)
		return node;
	more = w_keep(MORE_BYTES);
	if (!more)
		return reserve_node();
	more->next = first;
	atomic_store_explicit(&self->more, more, memory_order_relaxed);
	return &more->nodes[0];
}

static void visit_in_use(struct w_node *nodes, size_t count, void (*visit)(void *node))
{
	for (size_t i = 0; i < count; i++)
		if (!is_free(&nodes[i]))
			visit(&nodes[i]);
}

void w_nodes_in_use(void (*visit)(void *node))
{
	struct w_self *self = w_self_or_null;

	if (!self)
		return;
	visit_in_use(self->nodes, W_NODES, visit);
	for (struct w_more_nodes *more = atomic_load(&self->more); more; more = more->next)
		visit_in_use(more->nodes, MORE_NODES, visit);
}

/* ---- Unique numbers ---- */

W_ATOMIC(uint32_t) w_slots[W_SLOTS] __attribute__((aligned(64)));

/* The first number of the next block; that of the first block is not 0. */
uint64_t w_unique_block(void)
{
	static W_ATOMIC(uint64_t) blocks;

	return (atomic_fetch_add(&blocks, 1) + 1) * W_UNIQUE_BLOCK;
}

/* ---- Fork ---- */

/* Nodes in use of threads that do not exist in the child stay in use: a lock that such a thread held still has them. */
void w_after_fork_in_child(void)
{
	w_generation++;
	atomic_store(&w_process_number, (uint32_t)getpid());
	memset(w_queue_nodes, 0, sizeof(w_queue_nodes));
	atomic_store(&scanning, 0);
	atomic_store(&w_spinners, 0);
	for (struct w_self *self = atomic_load(&records); self; self = self->next) {
		if (self == w_self_or_null)
			atomic_store(&self->tid, thread_id());
		else if (atomic_exchange(&self->tid, 0))
			atomic_fetch_add(&free_count, 1);
	}
}

/* ---- Events ---- */

void w_count(enum w_event event)
{
	W_ATOMIC(uint64_t) *count = &w_self()->events[event];

	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
	if (w_listener)
		w_listener(event);
}

uint64_t w_counted(enum w_event event)
{
	uint64_t sum = 0;

	for (struct w_self *self = atomic_load(&records); self; self = self->next)
		sum += atomic_load_explicit(&self->events[event], memory_order_relaxed);
	return sum;
}
