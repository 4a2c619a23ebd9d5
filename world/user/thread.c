/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Threads' records: found without a lock or malloc, reused after their thread has ended, and never
 * unmapped.
 *
 * A thread gets its record at its first wait (or its first acquisition of a lock whose holders keep
 * a node) and never returns it: there is no point at the end of a thread after which it takes no
 * more locks. Instead, when there are twice as many records as there were living threads at the
 * last check, the records of threads that have ended are freed. They are known without a system
 * call: each thread holds a robust mutex in its record until it ends, when the kernel marks it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#define NO_ADVICE INT32_MAX /* which no kernel knows */

struct w_more_nodes {
	struct w_more_nodes *next;
	struct w_node nodes[];
};

#define CHUNK 4096 /* of few: threads that start together may each find none free, and make one */
#define SCAN_SLACK 32
#define MORE_BYTES 4096
#define MORE_NODES ((MORE_BYTES - sizeof(struct w_more_nodes)) / sizeof(struct w_node))
#define RESERVE 64
#define SPARE ((size_t)1 << 20)

__thread struct w_self *w_self_or_null __attribute__((tls_model("initial-exec")));
__thread struct w_own w_own __attribute__((tls_model("initial-exec")));
bool w_listening;
void (*w_listener)(enum w_event event);
struct w_visible w_visible_readers[W_VISIBLE] __attribute__((aligned(64)));
#ifdef W_THREAD_SANITIZER
W_ATOMIC(uint32_t) w_fence_word;
#endif

static W_ATOMIC(struct w_self *) records;
static W_ATOMIC(struct w_self *) cursor; /* where the search for a free record resumes */
static W_ATOMIC(uint32_t) record_count;
static W_ATOMIC(uint32_t) free_count;
/* Number of records at which dead threads' records are next looked for. */
static W_ATOMIC(uint32_t) scan_at = SCAN_SLACK;
static struct w_node reserve[RESERVE]; /* for when there is no memory */

/*
 * Read by a child's handler. Not all zero, so that it is part of the library's initialised data,
 * which the parent has touched: reading it causes no page fault.
 */
static struct {
	W_ATOMIC(bool) kernel_wipes; /* w_this_process */
	W_ATOMIC(bool) has_no_records;
	W_ATOMIC(w_told *) told;
} at_fork = {.has_no_records = true};

static uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static uint32_t process_id(void)
{
	return (uint32_t)getpid();
}

static void set_signal_mask(const uint64_t *mask, uint64_t *old)
{
	(void)w_system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)mask, (long)old, sizeof(*mask),
			    0, 0);
}

/* Blocks the caller's signals. Returns the mask to restore. */
static uint64_t block_signals(void)
{
	uint64_t all = UINT64_MAX, before;

	set_signal_mask(&all, &before);
	return before;
}

void *w_map(size_t size)
{
	int saved = errno;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return memory == MAP_FAILED ? NULL : memory;
}

/*
 * Takes @size bytes of a static reserve, which costs nothing until touched. Returns NULL if it does
 * not suffice.
 */
static void *take_spare(size_t size)
{
	static char spare[SPARE] __attribute__((aligned(64)));
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

/* ---- The process's common blocks ---- */

/* Publishes @made as @block unless another thread was faster. Returns the published one. */
static void *publish_block(W_ATOMIC(void *) *block, void *made)
{
	void *seen = NULL;

	/* release: pairs with the acquires in w_common(), w_gates() and below */
	if (atomic_compare_exchange_strong_explicit(block, &seen, made, memory_order_release,
						    memory_order_relaxed))
		return made;
	/* The block that we made stays allocated. */
	return atomic_load_explicit(block, memory_order_acquire);
}

W_ATOMIC(void *) w_common_block;

void *w_common_make(size_t bytes)
{
	void *made;

	while (!(made = w_keep(bytes)))
		w_yield();
	return publish_block(&w_common_block, made);
}

W_ATOMIC(void *) w_gates_block;

void *w_gates_make(size_t bytes)
{
	void *made = w_map(bytes);

	return made ? publish_block(&w_gates_block, made) : NULL;
}

/* ---- The end of a record's owner ---- */

/* Whether the kernel marks the robust mutexes of threads that end. An emulator may not. */
static bool kernel_marks;
/*
 * The offset of a thread's list of robust mutexes from its thread pointer; the same for all threads
 * in glibc.
 */
static ptrdiff_t robust_list;

/* Of the runtime of ThreadSanitizer; NULL in a program without it. */
extern void __tsan_init(void) __attribute__((weak));

static void find_robust_list(void)
{
#ifndef W_THREAD_SANITIZER
	struct robust_list_head *head = NULL;
	size_t size;

	if (__tsan_init) /* it would report that the mutexes are never unlocked */
		return;
	kernel_marks = !syscall(SYS_get_robust_list, 0, &head, &size) && head;
	robust_list = (const char *)head - w_thread_pointer();
#endif
}

/* Returns whether the caller is a signal handler that has interrupted a change of the list. */
static bool is_list_changing(void)
{
	return ((const volatile struct robust_list_head *)(w_thread_pointer() + robust_list))
		->list_op_pending;
}

/* The mutex's futex is its first word. acquire: pairs with the kernel's compare-exchange */
static uint32_t life_word(struct w_self *self)
{
	return __atomic_load_n((uint32_t *)&self->life, __ATOMIC_ACQUIRE);
}

/*
 * Locks the mutex of @self, whose new owner is the caller. Where that fails (in a signal handler
 * that has interrupted a change of the list, or before the preload library has found glibc's
 * functions) its end goes unnoticed, and the record stays its own.
 */
static bool hold_life(struct w_self *self, uint64_t owner)
{
	pthread_mutexattr_t attr;

	if (!kernel_marks || is_list_changing())
		return false;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	memset(&self->life, 0, sizeof(self->life));
	return !pthread_mutex_init(&self->life, &attr) && !pthread_mutex_lock(&self->life) &&
	       (life_word(self) & FUTEX_TID_MASK) == (uint32_t)owner;
}

/* Returns whether the kernel knows the thread @tid, of this process or a guest. */
static bool is_known(uint32_t tid, bool guest)
{
	return guest ? w_system_call(SYS_tkill, tid, 0, 0, 0, 0, 0) != -ESRCH
		     : w_has_thread(w_process(), tid);
}

static void settle(struct w_node *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		w_node_settle(&nodes[i]);
}

/* The previous thread of a record may have ended between the choice of a node and its use. */
static void settle_nodes(struct w_self *self)
{
	settle(self->nodes, W_NODES);
	for (struct w_more_nodes *more = atomic_load(&self->more); more; more = more->next)
		settle(more->nodes, MORE_NODES);
}

#include "records.h"

/* ---- The caller's record ---- */

/*
 * Blocks signals. Otherwise a handler would get a second record for the thread, whose search might
 * find the first one's owner dead; and the child of a handler that forks would give it to another.
 */
struct w_self *w_self_attach(void)
{
	uint64_t before = block_signals();
	struct w_self *self;

	atomic_store(&at_fork.has_no_records, false);
	self = w_self_or_null ? w_self_or_null : attach(); /* by a handler, just before */
	set_signal_mask(&before, NULL);
	return self;
}

/*
 * Takes the block of @self's last owner. Not under a sanitizer, which would not know that it has
 * ended.
 */
static struct w_block *take_left_behind(struct w_self *self)
{
#ifdef W_THREAD_SANITIZER
	(void)self;
	return NULL;
#else
	return atomic_exchange(&self->block, NULL);
#endif
}

/*
 * A guest's record is not its thread's: the block that it needs first is left to that thread alone.
 * A signal handler of the thread that needs a block meanwhile makes it: then the one made here
 * stays allocated.
 */
struct w_block *w_block_make(void)
{
	struct w_self *self = w_self();
	struct w_block *block = w_self_or_null ? take_left_behind(self) : NULL, *none = NULL;

	while (!block && !(block = w_keep(sizeof(*block))))
		w_yield();
	/* A handler's that was made before the block was taken is put back. */
	if (block != *(struct w_block *volatile *)&w_own.block) {
		memset(block, 0, sizeof(*block));
		/* relaxed: accessed by one thread */
		if (!__atomic_compare_exchange_n(&w_own.block, &none, block, false,
						 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return none;
	}
	if (w_self_or_null)
		atomic_store(&self->block, block);
	return block;
}

uint32_t w_random_seed(void)
{
	uint32_t seed = (uint32_t)w_now() * 2654435761u ^ thread_id();

	return seed ? seed : 1;
}

/* ---- Nodes ---- */

/* Chooses a free one of @nodes; NULL if there is none. */
static struct w_node *choose_node(struct w_node *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (w_node_try_choose(&nodes[i]))
			return &nodes[i];
	return NULL;
}

static struct w_node *reserve_node(void)
{
	uint32_t expected;

	for (;;) {
		for (size_t i = 0; i < RESERVE; i++) {
			expected = 0;
			if (atomic_compare_exchange_strong(&reserve[i].status, &expected,
							   W_NODE_TAKEN))
				return &reserve[i];
		}
		w_yield();
	}
}

struct w_node *w_node_choose_slow(struct w_self *self)
{
	struct w_more_nodes *more = atomic_load_explicit(&self->more, memory_order_relaxed);
	struct w_node *node = choose_node(self->nodes, W_NODES);

	for (; !node && more; more = more->next)
		node = choose_node(more->nodes, MORE_NODES);
	if (node)
		return node;
	more = w_keep(MORE_BYTES);
	if (!more)
		return reserve_node();
	atomic_store_explicit(&more->nodes[0].chosen, 1, memory_order_relaxed);
	/* A signal handler may have added nodes meanwhile. */
	more->next = atomic_load_explicit(&self->more, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&self->more, &more->next, more,
						      memory_order_relaxed, memory_order_relaxed))
		;
	return &more->nodes[0];
}

/* ---- Unique numbers ---- */

W_ATOMIC(uint32_t) w_slots[W_SLOTS] __attribute__((aligned(64)));

/*
 * The first number of a new block, which becomes the thread's. A signal handler that needs one
 * meanwhile gets another block, whose rest is lost.
 */
uint64_t w_unique_in_block(void)
{
	static W_ATOMIC(uint64_t) blocks;
	uint64_t number = atomic_fetch_add(&blocks, 1) * (2 * W_UNIQUE_BLOCK) | W_UNIQUE_BLOCK;

	w_own.unique = number + 1;
	return number;
}

/* ---- Fork ---- */

struct w_this_process w_this_process;

static W_ATOMIC(uint32_t) generations; /* begun by this process and its ancestors */

static void tell(void)
{
	w_told *told = atomic_load(&at_fork.told);

	if (told)
		told();
}

/* Not w_unpark_all(), which counts an event, and counting may need what is begun here. */
static void wake_all(W_ATOMIC(uint32_t) *word)
{
	w_futex_wake(word, INT32_MAX);
}

#include "process.h"

/* Blocks signals, since their handlers may need the generation as well. */
uint32_t w_process_begin(void)
{
	uint32_t begun = atomic_load(&w_this_process.generation);
	uint64_t before;

	if (begun)
		return begun - 1;
	before = block_signals();
	begun = begin_once();
	set_signal_mask(&before, NULL);
	return begun;
}

uint32_t w_process_read(void)
{
	(void)w_process_begin();
	return atomic_load(&w_this_process.number);
}

/*
 * Records the forking thread, which other threads of the child cannot identify, and the process's
 * id: a vfork child that begins the process knows only its own. Most children exec another program
 * or end, and each page touched here costs them a page fault: without records there is nothing to
 * record, and what the kernel has wiped is not read.
 */
static void after_fork_in_child(void)
{
	struct w_self *own = w_self_or_null;

	if (!atomic_load(&at_fork.kernel_wipes))
		memset(&w_this_process, 0, sizeof(w_this_process));
	if (!atomic_load(&at_fork.has_no_records)) {
		atomic_store(&w_this_process.forker, own ? own : NO_RECORD);
		atomic_store(&w_this_process.number, process_id());
	}
	if (atomic_load(&at_fork.told))
		(void)w_process_begin();
}

void w_process_tell(w_told *told)
{
	atomic_store(&at_fork.told, told);
}

void w_process_watch(void)
{
	int saved = errno;

	/* An emulator may accept any advice, and take none. */
	atomic_store(&at_fork.kernel_wipes,
		     !madvise(&w_this_process, sizeof(w_this_process), MADV_WIPEONFORK) &&
			     madvise(&w_this_process, sizeof(w_this_process), NO_ADVICE));
	find_robust_list();
	errno = saved;
	(void)w_fork_generation();
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* ---- Events ---- */

void w_count(enum w_event event)
{
	W_ATOMIC(uint64_t) *count = &w_self()->events[event];

	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
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
