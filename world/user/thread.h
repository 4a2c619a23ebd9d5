/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A thread's state between its lock operations, and the process's state: records, waiters' nodes,
 * fork generations, unique and random numbers, events. Implemented by thread.c.
 */
#ifndef POUNDLOCK_WORLD_THREAD_H
#define POUNDLOCK_WORLD_THREAD_H

#include <pthread.h>

#ifdef __aarch64__
#define W_SPIN_ROW (1u << 10) /* pauses that may each last until the kernel's next event */
#endif
#include "../sizes.h"
#include "../spin.h"
#include "../streak.h"
#include "atomic.h"
#include "hint.h"

/* ---- The thread's record ---- */

enum w_event {
#define EVENT(name, meaning) W_EVENT_##name,
#include "events.def"
#undef EVENT
	W_EVENTS
};

/* A waiter's node: one cache line, so that waiters spin on different lines. Status 0: free. */
struct w_node {
	_Alignas(64) W_ATOMIC(uint32_t) status;
	char rest[56];
	/*
	 * 1 from w_node_choose() to w_node_settle(). Accessed by the node's thread and its signal
	 * handlers only.
	 */
	W_ATOMIC(uint32_t) chosen;
};

/* A thread's use of a lock. Only that thread accesses it. */
struct w_account {
	const void *lock; /* NULL: unused */
	uint64_t held;    /* virtual hold time (core/part/hold.h) */
	uint64_t until;   /* when it last released the lock while others waited; 0: never */
	uint64_t since;   /* start of the current hold; 0: unknown */
	uint32_t recent;  /* average of the recent hold times */
	uint32_t used;    /* time stamp of the last use */
};

/*
 * A thread's state between lock operations. Records are never unmapped, because a node may still be
 * queued when its thread ends. The record of an ended thread is reused by a later one (thread.c).
 */
struct w_self {
	struct w_node nodes[W_NODES];
	W_ATOMIC(uint64_t) owner;   /* a thread of some fork generation (thread.c); 0: free */
	uint32_t id;                /* at least 1 */
	struct w_self *next;        /* in the list of all records */
	pthread_mutex_t life;       /* held by the owner until it ends (thread.c) */
	W_ATOMIC(uint64_t) held_by; /* the owner that holds it */
	W_ATOMIC(struct w_more_nodes *) more;
	W_ATOMIC(struct w_block *) block;
	/* Of w_has_own_cpu(). Atomic, since the record's next thread reads what this one leaves. */
	W_ATOMIC(struct w_seat *) seat;   /* the last one taken, or NULL */
	W_ATOMIC(uint64_t) sharing_until; /* when it may have its CPU to itself; 0: now */
	W_ATOMIC(uint64_t) events[W_EVENTS];
	/* Of w_streak_is_over() and w_race_end(). Atomic as `seat` is. */
	W_ATOMIC(uint64_t) streak_since;
	W_ATOMIC(uint64_t) pace_since; /* since when it is measured; 0: it is not */
	W_ATOMIC(uint64_t) pace;
	W_ATOMIC(uint32_t) waits; /* of which one in STREAK_MEASURED measures it */
	/* The thread's hints (hint.h), if w_own.hints. Atomic as `seat` is. */
	W_ATOMIC(const void *) hint_locks[W_HINTS];
	W_ATOMIC(uint32_t) hint_notes[W_HINTS];
};

/*
 * State that few threads need, and that is too large for thread-local storage: libraries that are
 * loaded late find little static storage left. Other threads do not access it while this one lives.
 */
struct w_block {
	struct w_account accounts[W_ACCOUNTS];
	uint32_t account_uses;
	_Alignas(16) char info[192];    /* for lib/info.c */
	_Alignas(16) char preload[192]; /* for the preload library */
};

/* State that ends with the thread. */
struct w_own {
	struct w_block *block; /* NULL: not needed yet */
	uint32_t random;       /* 0: no seed yet */
	uint32_t weight;       /* 0: not read yet */
	uint16_t group;        /* its number + 1; 0: not read yet */
	uint16_t streak_left;  /* releases until the next look of w_streak_is_over() */
	uint32_t checks;       /* for lib/checks */
	uint64_t unique;       /* the next unique number; see w_unique() */
	struct w_spin_history spin_history[W_SPIN_HISTORIES];
	uint8_t spin_histories : W_SPIN_HISTORIES; /* bit k: that of kind k is set */
	uint8_t hints : 3;                         /* how many hints of the record are of a lock */
	uint8_t long_turns : 1;                    /* whether it waits where turns are long */
	uint8_t refusals;                          /* refused entries into a bounded spin */
};

extern W_HIDDEN __thread struct w_own w_own __attribute__((tls_model("initial-exec")));

extern W_HIDDEN __thread struct w_self *w_self_or_null __attribute__((tls_model("initial-exec")));
W_HIDDEN struct w_self *w_self_attach(void);

static inline struct w_self *w_self(void)
{
	struct w_self *self = w_self_or_null;

	return w_likely(self) ? self : w_self_attach();
}

W_HIDDEN struct w_block *w_block_make(void);

/* The calling thread's block, initially zeroed. */
static inline struct w_block *w_block(void)
{
	return w_likely(w_own.block) ? w_own.block : w_block_make();
}

/* For most threads, which remember nothing, one test of a byte says so. */
#define w_remembers(name) (w_own.hints && w_hint_lock(name) == (const void *)(name))

/* The lock of which the thread has the hint that w_remember(@lock) would replace; NULL: none. */
static inline const void *w_hint_lock(const void *lock)
{
	if (!w_own.hints)
		return NULL;
	return atomic_load_explicit(&w_self_or_null->hint_locks[w_hint_index(lock)],
				    memory_order_relaxed);
}

static inline uint32_t w_note(const void *lock)
{
	return atomic_load_explicit(&w_self_or_null->hint_notes[w_hint_index(lock)],
				    memory_order_relaxed);
}

/* Sets the lock of the hint of @lock to @to. */
static inline void w_hint_set(const void *lock, const void *to)
{
	atomic_store_explicit(&w_self_or_null->hint_locks[w_hint_index(lock)], to,
			      memory_order_relaxed);
}

/* Changes the note of @lock, which the thread remembers. */
static inline void w_note_set(const void *lock, uint32_t note)
{
	atomic_store_explicit(&w_self_or_null->hint_notes[w_hint_index(lock)], note,
			      memory_order_relaxed);
}

/* Returns false for a guest, which has no record of its own, and remembers nothing. */
static inline bool w_remember(const void *lock, uint32_t note)
{
	if (w_unlikely(!w_self_or_null))
		return false;
	/* The record's former thread may have left some. */
	for (uintptr_t i = 0; !w_own.hints && i < W_HINTS; i++)
		w_hint_set((const void *)(W_HINT_LINE * i), NULL);
	if (!w_hint_lock(lock))
		w_own.hints++;
	w_hint_set(lock, lock);
	w_note_set(lock, note);
	return true;
}

static inline void w_forget(const void *lock)
{
	if (!w_remembers(lock))
		return;
	w_hint_set(lock, NULL);
	w_own.hints--;
}

static inline uint32_t w_self_id(void)
{
	return w_self()->id;
}

/* ---- The process ---- */

/* The largest page size of the architecture, so that the kernel's wiping affects no other data. */
#if defined(__x86_64__) || defined(__i386__)
#define W_PAGE 4096
#else
#define W_PAGE 65536
#endif

/*
 * State of this process alone. The kernel zeroes it in a new process, however that was forked
 * (MADV_WIPEONFORK): the first thread that needs the generation finds none and begins the process.
 * So neither _Fork() nor a clone system call needs to be intercepted. A vfork child shares its
 * parent's memory, and counts as part of the parent here. If it is the first to need the generation
 * of a process that has no number yet, which fork()'s handler sets if there are records, the number
 * is the vfork child's: the process's own threads then count as guests (records.h).
 */
struct w_this_process {
	/* Generation + 1; 0: the process has not begun. */
	_Alignas(W_PAGE) W_ATOMIC(uint32_t) generation;
	W_ATOMIC(uint32_t) number;        /* process id */
	W_ATOMIC(struct w_self *) forker; /* written by fork()'s handler (thread.c) */
	/* A thread begins the process; another may sleep until it has. */
	W_ATOMIC(uint32_t) beginning;
	/* 1: records of other generations are free, since their threads do not exist here. */
	W_ATOMIC(uint32_t) orphaned;
	/*
	 * Mutex of the search for dead threads, so that a record found dead is the dead thread's.
	 */
	_Alignas(64) W_ATOMIC(uint32_t) scanning;
	/* Threads in a bounded spin; see w_spin_enter(). */
	_Alignas(64) W_ATOMIC(uint32_t) spinners;
	struct w_node queue_nodes[W_QUEUE_NODES];
};

extern W_HIDDEN struct w_this_process w_this_process;

/*
 * Requests that new processes are recognised, by the kernel and by pthread_atfork(). Called once,
 * early. Kernels before 4.14 cannot wipe: there, children of _Fork() and of clone system calls
 * continue as if they were their parents.
 */
W_HIDDEN void w_process_watch(void);

/*
 * Registers @told, to be called in each new process before a thread other than the one that forked
 * gets a record. It is not called in a child of _Fork() or of a clone system call in which such a
 * thread is the first to need the generation.
 */
typedef void w_told(void);
W_HIDDEN void w_process_tell(w_told *told);

/* Begins the process unless another thread has. Returns the generation. */
W_HIDDEN uint32_t w_process_begin(void);
W_HIDDEN uint32_t w_process_read(void);

/* w_fork_generation() + 1; 0 until a thread of the process has asked for it. */
static inline uint32_t w_fork_generation_begun(void)
{
	/* relaxed: written once. w_self_attach() orders what was done before it, for new threads */
	return atomic_load_explicit(&w_this_process.generation, memory_order_relaxed);
}

static inline uint32_t w_fork_generation(void)
{
	uint32_t begun = w_fork_generation_begun();

	return w_likely(begun) ? begun - 1 : w_process_begin();
}

static inline uint32_t w_process(void)
{
	/* relaxed: written once */
	uint32_t number = atomic_load_explicit(&w_this_process.number, memory_order_relaxed);

	return w_likely(number) ? number : w_process_read();
}

#define w_queue_node(i) (&w_this_process.queue_nodes[i])

/* An entry of BRAVO's table of readers. */
struct w_visible {
	W_ATOMIC(uint64_t) bias;
	W_ATOMIC(uint32_t) reader;
	uint32_t depth;
};

extern W_HIDDEN struct w_visible w_visible_readers[W_VISIBLE];
#define w_visible(i) (&w_visible_readers[i])

/* Maps @size bytes of zeroed memory, to be unmapped by munmap(), or returns NULL. Keeps errno. */
W_HIDDEN void *w_map(size_t size);
/*
 * As w_map(), for memory that is never freed. If memory runs out, 1 MiB is reserved for all
 * callers.
 */
W_HIDDEN void *w_keep(size_t size);

W_HIDDEN struct w_node *w_node_choose_slow(struct w_self *self);

/*
 * Chooses @node if it is free. A signal handler of the thread that runs before the mark is written
 * may choose the same node: then the thread sees whether the handler has kept it. Later handlers
 * skip the node. A plain store suffices, since a handler returns with the mark as it found it.
 */
static inline bool w_node_try_choose(struct w_node *node)
{
	/* relaxed, all: accessed by one thread */
	if (w_unlikely(atomic_load_explicit(&node->chosen, memory_order_relaxed)))
		return false;
	atomic_store_explicit(&node->chosen, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	/* acquire: pairs with the release that freed the node; its previous user's accesses */
	if (w_likely(!atomic_load_explicit(&node->status, memory_order_acquire)))
		return true;
	atomic_store_explicit(&node->chosen, 0, memory_order_relaxed);
	return false;
}

/* A free node that no signal handler of the thread gets until w_node_settle(). */
static inline void *w_node_choose(void)
{
	struct w_self *self = w_self();

	return w_likely(w_node_try_choose(&self->nodes[0])) ? &self->nodes[0]
							    : w_node_choose_slow(self);
}

/* Ends the choice of @node: from now on its status alone says whether it is free. */
static inline void w_node_settle(void *node)
{
	atomic_signal_fence(memory_order_seq_cst);
	/* relaxed: as in w_node_try_choose() */
	atomic_store_explicit(&((struct w_node *)node)->chosen, 0, memory_order_relaxed);
}

/* Status of a node that is taken but not in a queue yet. */
#define W_NODE_TAKEN UINT32_MAX

static inline void *w_node_get(void)
{
	struct w_node *node = w_node_choose();

	/* relaxed: a free node is the thread's own; a node of the reserve is taken already */
	atomic_store_explicit(&node->status, W_NODE_TAKEN, memory_order_relaxed);
	w_node_settle(node);
	return node;
}

/*
 * Never @on_stack: a signal handler may jump out of any wait, or end the thread, and leave the node
 * in the queue.
 */
#define w_waiter_node(on_stack, may_leave) ((void)(on_stack), (void)(may_leave), w_node_get())

extern W_HIDDEN W_ATOMIC(void *) w_common_block; /* NULL: not needed yet */
W_HIDDEN void *w_common_make(size_t bytes);

static inline void *w_common(size_t bytes)
{
	/* acquire: pairs with the release that published it, zeroed */
	void *block = atomic_load_explicit(&w_common_block, memory_order_acquire);

	return w_likely(block) ? block : w_common_make(bytes);
}

extern W_HIDDEN W_ATOMIC(void *) w_gates_block; /* NULL: not needed yet */
W_HIDDEN void *w_gates_make(size_t bytes);

static inline void *w_gates(size_t bytes)
{
	/* acquire: as in w_common() */
	void *block = atomic_load_explicit(&w_gates_block, memory_order_acquire);

	return w_likely(block || !bytes) ? block : w_gates_make(bytes);
}

/* A number with this bit is of the thread's block. 0 has no block, nor has a block's end. */
#define W_UNIQUE_BLOCK (UINT64_C(1) << 14)

W_HIDDEN uint64_t w_unique_in_block(void);

/* Increments @own, a variable of the calling thread, in one step for its signal handlers. */
static inline uint64_t w_own_increment(uint64_t *own)
{
#ifdef __x86_64__
	uint64_t was = 1;

	__asm__ __volatile__("xaddq %0, %1" : "+r"(was), "+m"(*own) : : "cc");
	return was;
#else
	return __atomic_fetch_add(own, 1, __ATOMIC_RELAXED);
#endif
}

static inline uint64_t w_unique(void)
{
	uint64_t number = w_own_increment(&w_own.unique);

	return w_likely(number & W_UNIQUE_BLOCK) ? number : w_unique_in_block();
}

extern W_HIDDEN W_ATOMIC(uint32_t) w_slots[W_SLOTS];

/* Hashed, so that consecutive numbers select different cache lines. */
static inline W_ATOMIC(uint32_t) *w_slot(uint64_t number)
{
	return &w_slots[w_slot_index(number)];
}

/* A nonzero seed for the thread's random numbers. */
W_HIDDEN uint32_t w_random_seed(void);

static inline uint32_t w_random(void)
{
	uint32_t x = w_likely(w_own.random) ? w_own.random : w_random_seed();

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return w_own.random = x;
}

extern W_HIDDEN bool w_listening;
/* Called with each event by its thread while w_listening, unless NULL. Set before w_listening. */
extern W_HIDDEN void (*w_listener)(enum w_event event);
W_HIDDEN void w_count(enum w_event event);
/* The count of @event, over all threads ever, since w_listening was set. */
W_HIDDEN uint64_t w_counted(enum w_event event);

#define w_event(name)                            \
	do {                                     \
		if (w_unlikely(w_listening))     \
			w_count(W_EVENT_##name); \
	} while (0)

#endif
