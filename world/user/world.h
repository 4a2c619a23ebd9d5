/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The world of Linux user space: C11 atomics, pause, futex; rseq or the vDSO for the current CPU;
 * sysfs for domains and, if there is no file, for the route. world/README.md is the contract of
 * each operation; the comments here describe the implementation.
 *
 * Nothing here calls malloc, takes a lock, is a cancellation point or changes errno.
 */
#ifndef POUNDLOCK_WORLD_USER_H
#define POUNDLOCK_WORLD_USER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "../sanitizer.h"

/* Stress tests define this to give up the CPU at random before an operation. */
#ifndef W_STEP
#define W_STEP() ((void)0)
#endif
/* Counting tests define this to count read-modify-writes. */
#ifndef W_UPDATE
#define W_UPDATE() W_STEP()
#endif

#define w_likely(x) __builtin_expect(!!(x), 1)
#define w_unlikely(x) __builtin_expect(!!(x), 0)
#define W_HIDDEN __attribute__((visibility("hidden")))
/* A path that uncontended operations do not take: out of line, so that the others stay small. */
#define W_SLOW __attribute__((noinline, cold, unused))

/* ---- Objects ---- */

#define W_ATOMIC(T) _Atomic(T)
#define W_TAIL(T) W_ATOMIC(T *)
#define W_SHORT uint32_t

/* glibc's, since 2.32. */
extern char __libc_single_threaded __attribute__((weak));

/*
 * Returns whether the calling thread is the only one of the process, and so the only user of its
 * objects. A file whose objects other processes may use defines W_BETWEEN_PROCESSES.
 */
static inline bool w_alone(void)
{
#ifdef W_BETWEEN_PROCESSES
	return false;
#else
	return &__libc_single_threaded && __libc_single_threaded;
#endif
}

#define W_AFTER(step, operation) \
	({                       \
		step();          \
		operation;       \
	})
#define W_DO(operation) W_AFTER(W_STEP, operation)

#define w_init(p, v) atomic_init(p, v)
#define w_load_relaxed(p) W_DO(atomic_load_explicit(p, memory_order_relaxed))
#define w_load_acquire(p) W_DO(atomic_load_explicit(p, memory_order_acquire))
#define w_store_relaxed(p, v) W_DO(atomic_store_explicit(p, v, memory_order_relaxed))
#define w_store_release(p, v) W_DO(atomic_store_explicit(p, v, memory_order_release))
/*
 * In a process with one thread, nothing has to be atomic: as in glibc, a read and a write suffice,
 * at a third of the cost. The creation of the next thread orders them.
 */
#define W_READ(p) atomic_load_explicit(p, memory_order_relaxed)
#define W_WRITE(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define W_ALONE_BECOMES(p, value)                               \
	({                                                      \
		__auto_type w_p_ = (p);                         \
		__typeof__(W_READ(w_p_)) w_was_ = W_READ(w_p_); \
		W_WRITE(w_p_, value);                           \
		w_was_;                                         \
	})
#define W_ALONE_CAS(p, old, new)                                \
	({                                                      \
		__auto_type w_p_ = (p);                         \
		__auto_type w_old_ = (old);                     \
		__typeof__(W_READ(w_p_)) w_was_ = W_READ(w_p_); \
		bool w_same_ = w_was_ == *w_old_;               \
		if (w_same_)                                    \
			W_WRITE(w_p_, new);                     \
		else                                            \
			*w_old_ = w_was_;                       \
		w_same_;                                        \
	})
#define W_EITHER(alone, atomic) W_AFTER(W_UPDATE, w_alone() ? (alone) : (atomic))

#define W_EXCHANGE(p, v, order) W_EITHER(W_ALONE_BECOMES(p, v), atomic_exchange_explicit(p, v, order))
#define W_FETCH_ADD(p, v, order) W_EITHER(W_ALONE_BECOMES(p, w_was_ + (v)), atomic_fetch_add_explicit(p, v, order))
#define W_FETCH_OR(p, v, order) W_EITHER(W_ALONE_BECOMES(p, w_was_ | (v)), atomic_fetch_or_explicit(p, v, order))
#define W_FETCH_AND(p, v, order) W_EITHER(W_ALONE_BECOMES(p, w_was_ &(v)), atomic_fetch_and_explicit(p, v, order))
#define W_CAS(p, old, new, order)          \
	W_EITHER(W_ALONE_CAS(p, old, new), \
		 atomic_compare_exchange_strong_explicit(p, old, new, order, memory_order_relaxed))
#define w_exchange_relaxed(p, v) W_EXCHANGE(p, v, memory_order_relaxed)
#define w_exchange_acquire(p, v) W_EXCHANGE(p, v, memory_order_acquire)
#define w_exchange_release(p, v) W_EXCHANGE(p, v, memory_order_release)
#define w_exchange_acq_rel(p, v) W_EXCHANGE(p, v, memory_order_acq_rel)
#define w_compare_exchange_relaxed(p, old, new) W_CAS(p, old, new, memory_order_relaxed)
#define w_compare_exchange_acquire(p, old, new) W_CAS(p, old, new, memory_order_acquire)
#define w_compare_exchange_release(p, old, new) W_CAS(p, old, new, memory_order_release)
#define w_compare_exchange_acq_rel(p, old, new) W_CAS(p, old, new, memory_order_acq_rel)
#define w_fetch_add_relaxed(p, v) W_FETCH_ADD(p, v, memory_order_relaxed)
#define w_fetch_add_acquire(p, v) W_FETCH_ADD(p, v, memory_order_acquire)
#define w_fetch_add_release(p, v) W_FETCH_ADD(p, v, memory_order_release)
#define w_fetch_add_acq_rel(p, v) W_FETCH_ADD(p, v, memory_order_acq_rel)
#define w_fetch_or_relaxed(p, v) W_FETCH_OR(p, v, memory_order_relaxed)
#define w_fetch_or_acquire(p, v) W_FETCH_OR(p, v, memory_order_acquire)
#define w_fetch_or_release(p, v) W_FETCH_OR(p, v, memory_order_release)
#define w_fetch_or_acq_rel(p, v) W_FETCH_OR(p, v, memory_order_acq_rel)
#define w_fetch_and_relaxed(p, v) W_FETCH_AND(p, v, memory_order_relaxed)
#define w_fetch_and_acquire(p, v) W_FETCH_AND(p, v, memory_order_acquire)
#define w_fetch_and_release(p, v) W_FETCH_AND(p, v, memory_order_release)
#define w_fetch_and_acq_rel(p, v) W_FETCH_AND(p, v, memory_order_acq_rel)
#ifdef W_THREAD_SANITIZER
/* ThreadSanitizer does not support fences; an object that all fences modify orders as much. */
extern W_HIDDEN W_ATOMIC(uint32_t) w_fence_word;
#define w_fence_seq_cst() ((void)atomic_fetch_add(&w_fence_word, 1))
#else
#define w_fence_seq_cst() atomic_thread_fence(memory_order_seq_cst)
#endif

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
	char rest[60];
};

#define W_NODES 8

/* A thread's use of a lock. Only that thread accesses it. */
struct w_account {
	const void *lock; /* NULL: unused */
	uint64_t held;    /* virtual hold time (core/part/hold.h) */
	uint64_t until;   /* when it last released the lock while others waited; 0: never */
	uint64_t since;   /* start of the current hold; 0: unknown */
	uint32_t recent;  /* average of the recent hold times */
	uint32_t used;    /* time stamp of the last use */
};

#define W_ACCOUNTS 8

/*
 * A thread's state between lock operations. Records are never unmapped, because a node may still be
 * queued when its thread ends. The record of an ended thread is reused by a later one (thread.c).
 */
struct w_self {
	struct w_node nodes[W_NODES];
	W_ATOMIC(uint64_t) owner; /* a thread of some fork generation (thread.c); 0: free */
	uint32_t id;              /* at least 1 */
	struct w_self *next;      /* in the list of all records */
	W_ATOMIC(struct w_more_nodes *) more;
	W_ATOMIC(struct w_block *) block;
	W_ATOMIC(uint64_t) events[W_EVENTS];
};

/*
 * The history of a thread's bounded spins of one kind; see w_spin_pauses_now(). Each failed spin
 * adds 1/16 to the reduction of the next ones; a success halves it.
 */
struct w_spin_history {
	uint8_t parts_lost;
	uint8_t spins;
};
#define W_SPIN_KINDS 2 /* of W_POLITE and of W_QUEUED */

/*
 * State that few threads need, and that is too large for thread-local storage: libraries that are
 * loaded late find little static storage left. Other threads do not access it while this one lives.
 */
struct w_block {
	struct w_account accounts[W_ACCOUNTS];
	uint32_t account_uses;
	_Alignas(16) char info[192];     /* for lib/info.c */
	_Alignas(16) char embedder[192]; /* for the preload library */
};

/* State that ends with the thread. */
struct w_own {
	struct w_block *block; /* NULL: not needed yet */
	uint32_t random;       /* 0: no seed yet */
	uint32_t weight;       /* 0: not read yet */
	uint32_t group;        /* its number + 1; 0: not read yet */
	/* Next number of its block of unique numbers; if it is a block's first: it has no block. */
	uint64_t unique;
	bool has_spin_history[W_SPIN_KINDS];
	struct w_spin_history spin_history[W_SPIN_KINDS];
	uint8_t refusals; /* refused entries into a bounded spin */
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

static inline uint32_t w_self_id(void)
{
	return w_self()->id;
}

/* ---- The process ---- */

#define W_QUEUE_NODES 64u

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
 * parent's memory, and counts as part of the parent here.
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

static inline uint32_t w_fork_generation(void)
{
	/* relaxed: written once. w_self_attach() orders what was done before it, for new threads */
	uint32_t begun = atomic_load_explicit(&w_this_process.generation, memory_order_relaxed);

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

#define W_VISIBLE 4096u
extern W_HIDDEN struct w_visible w_visible_readers[W_VISIBLE];
#define w_visible(i) (&w_visible_readers[i])

/* Maps @size bytes of zeroed memory, to be unmapped by munmap(), or returns NULL. Keeps errno. */
W_HIDDEN void *w_map(size_t size);
/*
 * As w_map(), for memory that is never freed. If memory runs out, 1 MiB is reserved for all
 * callers.
 */
W_HIDDEN void *w_keep(size_t size);

W_HIDDEN void *w_node_get_slow(struct w_self *self);

static inline void *w_node_get(void)
{
	struct w_self *self = w_self();

	/* acquire: pairs with the release that freed the node; its previous user's accesses */
	if (w_likely(!atomic_load_explicit(&self->nodes[0].status, memory_order_acquire)))
		return &self->nodes[0];
	return w_node_get_slow(self);
}

/* Status of a node that is taken but not in a queue yet. */
#define W_NODE_TAKEN UINT32_MAX

/*
 * Takes a free node with status @status. A single instruction to the thread's own signal handlers;
 * no other thread takes it.
 */
static inline bool w_node_mark(W_ATOMIC(uint32_t) *status)
{
#if defined(__x86_64__)
	uint32_t seen = 0;

	__asm__ __volatile__("cmpxchgl %2, %1" : "+a"(seen), "+m"(*status) : "r"(W_NODE_TAKEN) : "memory", "cc");
	return !seen;
#else
	uint32_t none = 0;

	return atomic_compare_exchange_strong_explicit(status, &none, W_NODE_TAKEN, memory_order_acquire,
						       memory_order_relaxed);
#endif
}

/* A pool node that no signal handler of the thread can take as well. The caller must use it. */
static inline void *w_node_take(void)
{
	struct w_node *node;

	/* relaxed: nodes of the reserve are taken by compare-exchange when they are chosen */
	do
		node = w_node_get();
	while (!w_node_mark(&node->status) &&
	       atomic_load_explicit(&node->status, memory_order_relaxed) != W_NODE_TAKEN);
	return node;
}

/*
 * Never @on_stack: a signal handler may jump out of any wait, or end the thread, and leave the node
 * in the queue.
 */
#define w_waiter_node(on_stack, may_leave) ((void)(on_stack), (may_leave) ? w_node_get() : w_node_take())

extern W_HIDDEN W_ATOMIC(void *) w_common_block; /* NULL: not needed yet */
W_HIDDEN void *w_common_make(size_t bytes);

static inline void *w_common(size_t bytes)
{
	/* acquire: pairs with the release that published it, zeroed */
	void *block = atomic_load_explicit(&w_common_block, memory_order_acquire);

	return w_likely(block) ? block : w_common_make(bytes);
}

#define W_UNIQUE_BLOCK 65536

W_HIDDEN uint64_t w_unique_block(void);

static inline uint64_t w_unique(void)
{
	if (w_unlikely(!(w_own.unique % W_UNIQUE_BLOCK)))
		w_own.unique = w_unique_block();
	return w_own.unique++;
}

#define W_SLOTS 4096

extern W_HIDDEN W_ATOMIC(uint32_t) w_slots[W_SLOTS];

/* Hashed, so that consecutive numbers select different cache lines. */
static inline W_ATOMIC(uint32_t) *w_slot(uint64_t number)
{
	return &w_slots[number * UINT64_C(0x9e3779b97f4a7c15) / (UINT64_MAX / W_SLOTS + 1)];
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

/* ---- Shares (shares.c) ---- */

W_HIDDEN struct w_account *w_account_open(const void *lock);

static inline struct w_account *w_account(const void *lock)
{
	struct w_block *block = w_block();

	for (int i = 0; i < W_ACCOUNTS; i++) {
		if (block->accounts[i].lock == lock) {
			block->accounts[i].used = ++block->account_uses;
			return &block->accounts[i];
		}
	}
	return w_account_open(lock);
}

W_HIDDEN uint32_t w_weight_read(void);
W_HIDDEN uint32_t w_group_read(void);

static inline uint32_t w_weight(void)
{
	return w_likely(w_own.weight) ? w_own.weight : w_weight_read();
}

static inline uint32_t w_group(void)
{
	return w_likely(w_own.group) ? w_own.group - 1 : w_group_read();
}

#define W_GROUPS 64

/* By group; set before a thread belongs to the group. */
extern W_HIDDEN W_ATOMIC(uint32_t) w_group_weights[W_GROUPS];

static inline uint32_t w_group_weight(uint32_t group)
{
	/* relaxed: set before any thread belongs to the group, and may be set again */
	return atomic_load_explicit(&w_group_weights[group], memory_order_relaxed);
}

/* Sets the thread's weight; 0: reads that of its nice value again. */
W_HIDDEN void w_weight_set(uint32_t weight);
/*
 * Sets the thread's group to tenant @id with @weight. Returns false if there are too many groups.
 * w_tenant_clear() returns it to its cgroup.
 */
W_HIDDEN bool w_tenant_set(uint64_t id, uint32_t weight);
W_HIDDEN void w_tenant_clear(void);

/* A policy of the program, as those in core/policy/policy.h. */
struct w_own_policy {
	uint32_t (*note)(void *context, const void *lock);
	uint32_t (*rank)(void *context, uint32_t shuffler, uint32_t waiter);
	void *context;
};

/* NULL: none. Set at most once. */
extern W_HIDDEN W_ATOMIC(const struct w_own_policy *) w_own_policy;

static inline uint32_t w_own_policy_note(const void *lock)
{
	const struct w_own_policy *own = atomic_load_explicit(&w_own_policy, memory_order_acquire);

	return own->note(own->context, lock);
}

static inline uint32_t w_own_policy_rank(uint32_t shuffler, uint32_t waiter)
{
	const struct w_own_policy *own = atomic_load_explicit(&w_own_policy, memory_order_acquire);

	return own->rank(own->context, shuffler, waiter);
}

/* ---- Place and time ---- */

/* The base of glibc's published offsets into the calling thread's data, such as __rseq_offset. */
static inline const char *w_thread_pointer(void)
{
#if defined(__x86_64__)
	const char *pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
#else
	return __builtin_thread_pointer();
#endif
}

#define W_CPUS 4096

W_HIDDEN unsigned w_cpu(void);
extern W_HIDDEN W_ATOMIC(const uint16_t *) w_domains; /* by CPU; NULL: not needed yet */
W_HIDDEN const uint16_t *w_domains_load(void);

static inline int32_t w_domain(void)
{
	const uint16_t *domains = atomic_load_explicit(&w_domains, memory_order_acquire);
	unsigned cpu = w_cpu();

	if (w_unlikely(!domains))
		domains = w_domains_load();
	return cpu < W_CPUS ? domains[cpu] : 0;
}

#define W_CONTEXTS 1u

extern W_HIDDEN W_ATOMIC(uint32_t) w_cpus_usable;   /* 0: not needed yet */
extern W_HIDDEN W_ATOMIC(const uint16_t *) w_route; /* position by CPU; NULL: not needed yet */
W_HIDDEN uint32_t w_cpu_count_slow(void);
W_HIDDEN const uint16_t *w_route_load(void);

static inline uint32_t w_cpu_count(void)
{
	/* relaxed: written once */
	uint32_t count = atomic_load_explicit(&w_cpus_usable, memory_order_relaxed);

	return w_likely(count) ? count : w_cpu_count_slow();
}

static inline uint32_t w_route_position(void)
{
	const uint16_t *positions = atomic_load_explicit(&w_route, memory_order_acquire);
	unsigned cpu = w_cpu();

	if (w_unlikely(!positions))
		positions = w_route_load();
	return cpu < W_CPUS ? positions[cpu] : 0;
}

/* 1 until a thread that needs it has read the number. */
extern W_HIDDEN W_ATOMIC(uint32_t) w_domains_known;

static inline uint32_t w_domain_count(void)
{
	if (w_unlikely(!atomic_load_explicit(&w_domains, memory_order_acquire)))
		w_domains_load();
	return atomic_load_explicit(&w_domains_known, memory_order_relaxed);
}

#define W_LEVELS 3

/*
 * For each level above the domains: the part that a domain is in, and the number of parts. Written
 * before w_domains.
 */
extern W_HIDDEN uint16_t w_parents[W_LEVELS][W_CPUS];
extern W_HIDDEN uint32_t w_parent_counts[W_LEVELS];

static inline uint32_t w_domain_parents(uint32_t level)
{
	return atomic_load_explicit(&w_domains, memory_order_acquire) ? w_parent_counts[level] : 0;
}

static inline uint32_t w_domain_parent(uint32_t level, int32_t domain)
{
	return atomic_load_explicit(&w_domains, memory_order_acquire) ? w_parents[level][domain] : 0;
}

static inline uint64_t w_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- Waiting ---- */

/* An absolute time on CLOCK_REALTIME or CLOCK_MONOTONIC. */
struct w_deadline {
	clockid_t clock;
	struct timespec at;
};

static inline struct w_deadline w_deadline_at(uint64_t time)
{
	return (struct w_deadline){.clock = CLOCK_MONOTONIC,
				   .at = {.tv_sec = (time_t)(time / 1000000000), .tv_nsec = (long)(time % 1000000000)}};
}

enum w_how { W_SPIN, W_YIELD, W_TURN, W_BRIEF, W_POLITE, W_QUEUED };

/*
 * The number of pauses in a bounded spin, and the number of threads that may be in one at a time:
 * one less than the process has CPUs. Further threads would only keep holders from running, so they
 * do not spin.
 */
extern W_HIDDEN uint32_t w_spin_pauses;
extern W_HIDDEN uint32_t w_spinners_most;
/* The history that the thread which finished a spin last has, by kind. */
extern W_HIDDEN W_ATOMIC(struct w_spin_history) w_last_spin_history[W_SPIN_KINDS];
/* Sets both, by the number of CPUs of the process and the duration of a pause. */
W_HIDDEN void w_spin_calibrate(void);

W_HIDDEN bool w_expired_slow(const struct w_deadline *deadline);
/* Sleeps briefly, so that any other thread may run, whatever its priority. */
W_HIDDEN void w_yield(void);
/* Lets other runnable threads of the same priority run. */
W_HIDDEN void w_sched_yield(void);
W_HIDDEN void w_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline);
W_HIDDEN void w_unpark(W_ATOMIC(uint32_t) *p);
W_HIDDEN void w_unpark_all(W_ATOMIC(uint32_t) *p);

static inline bool w_expired(const struct w_deadline *deadline)
{
	return deadline && w_expired_slow(deadline);
}

static inline void w_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#endif
}

#define W_OWN_LINE _Alignas(64)
#define w_prefetch(p) __builtin_prefetch((const void *)(p))

static inline void w_pause_for(uint32_t pauses)
{
	while (pauses--)
		w_pause();
}

/*
 * A pause while *@p, of @size bytes, is probably still @seen. On arm64, WFE sleeps until the line
 * moves, which clears the exclusive monitor that LDXR has set, or until the kernel's event stream
 * wakes it, after at most 0.1 ms.
 */
static inline void w_pause_on(const volatile void *p, size_t size, uint64_t seen)
{
#if defined(__aarch64__)
	uint64_t now;

	if (size == 8)
		__asm__ __volatile__("ldxr %0, [%1]" : "=r"(now) : "r"(p) : "memory");
	else
		__asm__ __volatile__("ldxr %w0, [%1]" : "=r"(now) : "r"(p) : "memory");
	if (now == seen)
		__asm__ __volatile__("wfe" ::: "memory");
#else
	(void)p, (void)size, (void)seen;
	w_pause();
#endif
}

/*
 * The length of the next bounded spin of kind @how, in pauses.
 *
 * A failed spin costs as much time as sleeping at once, and keeps a CPU from threads that have work
 * to do. So each failed polite spin, or spin in a queue, shortens the thread's next ones of its
 * kind by 1/16; a success restores half of the loss, so that spins which succeed occasionally stay
 * long. One in W_SPINS_WHOLE has full length whatever the history, since a short spin cannot tell
 * what a long one would have seen; the spins after it confirm or lose what it restores. It is rare
 * because it costs most where it never succeeds: where holders give up the CPU, as in stress-ng's
 * mutex stressor. A thread starts with the history of another one, because many threads do not live
 * long enough to learn: those of stress-ng's pthread stressor spin once or twice. Spins of other
 * kinds always have full length; their locks depend on it.
 */
#define W_SPIN_PARTS 16
#define W_SPINS_WHOLE 256

static inline bool w_learns(enum w_how how)
{
	return how >= W_POLITE;
}

static inline uint32_t w_spin_pauses_now(enum w_how how)
{
	uint32_t kind = how - W_POLITE, lost;
	struct w_spin_history *history = &w_own.spin_history[kind];

	/* relaxed, here and below: a stale value costs a little time */
	if (w_unlikely(!w_own.has_spin_history[kind]))
		*history = atomic_load_explicit(&w_last_spin_history[kind], memory_order_relaxed);
	w_own.has_spin_history[kind] = true;
	lost = ++history->spins % W_SPINS_WHOLE ? history->parts_lost : 0;
	return w_spin_pauses * (W_SPIN_PARTS - lost) / W_SPIN_PARTS + 1;
}

static inline void w_spin_note(enum w_how how, bool failed)
{
	uint32_t kind = how - W_POLITE;
	struct w_spin_history *history = &w_own.spin_history[kind];

	if (!failed)
		history->parts_lost /= 2;
	else if (history->parts_lost < W_SPIN_PARTS)
		history->parts_lost++;
	atomic_store_explicit(&w_last_spin_history[kind], *history, memory_order_relaxed);
}

/*
 * A wait in progress: its remaining pauses, the length of the next one, whether it is counted among
 * the spinners, and the number of reads after its bounded spin.
 */
struct w_spin {
	enum w_how how;
	uint32_t left;
	uint32_t next;
	bool counted;
	uint32_t term;
	uint32_t turns;
};

/*
 * The count of spinners, in the bits below the number of a term. A thread that leaves a spin
 * without reaching its end (its signal handler jumps, or it is cancelled) remains counted. So if
 * there is no room, a new term occasionally begins with a count of 0, and a spin of an earlier term
 * ends without changing the count.
 */
#define W_TERM_SHIFT 16
#define W_SPINNERS ((1u << W_TERM_SHIFT) - 1)
#define W_REFUSALS 64 /* refusals per check of the time */

/* Begins a new term, after that of @spinners, if that began long ago. */
W_HIDDEN void w_spin_new_term(uint32_t spinners);

/* Counts the caller among the spinners of *@term. Returns false if there are enough. */
static inline bool w_spin_enter(uint32_t *term)
{
	/* relaxed, all here and below: a slightly wrong count costs a little time */
	uint32_t seen = atomic_load_explicit(&w_this_process.spinners, memory_order_relaxed);

	if ((seen & W_SPINNERS) < w_spinners_most) {
		seen = atomic_fetch_add_explicit(&w_this_process.spinners, 1, memory_order_relaxed);
		*term = seen >> W_TERM_SHIFT;
		return true;
	}
	if (w_unlikely(++w_own.refusals % W_REFUSALS == 0))
		w_spin_new_term(seen);
	return false;
}

static inline void w_spin_leave(uint32_t term)
{
	uint32_t seen = atomic_load_explicit(&w_this_process.spinners, memory_order_relaxed);

	while (seen >> W_TERM_SHIFT == term &&
	       !atomic_compare_exchange_weak_explicit(&w_this_process.spinners, &seen, seen - 1, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

static inline struct w_spin w_spin_begin(enum w_how how)
{
	struct w_spin spin = {.how = how, .left = 0, .next = 1};

	if (how == W_SPIN || !w_spin_enter(&spin.term))
		return spin;
	spin.left = w_learns(how) ? w_spin_pauses_now(how) : w_spin_pauses;
	spin.counted = true;
	return spin;
}

static inline void w_spin_end(struct w_spin *spin, bool failed)
{
	if (spin->counted) {
		w_spin_leave(spin->term);
		if (w_learns(spin->how))
			w_spin_note(spin->how, failed);
	}
	spin->counted = false;
	spin->left = 0;
}

/*
 * A real-time thread that spins, or calls sched_yield(), keeps its CPU from all threads of lower
 * priority. If it waits for such a thread, which was preempted on that CPU, it waits indefinitely.
 * So each wait sleeps from time to time: a spinning one after W_SPIN_ROW pauses, which take
 * milliseconds; a yielding one after W_YIELD_ROW yields, and then each time.
 */
#ifdef __aarch64__
#define W_SPIN_ROW (1u << 10) /* pauses that may each last until the kernel's next event */
#else
#define W_SPIN_ROW (1u << 16)
#endif
#define W_YIELD_ROW (1u << 10)

static inline void w_go_on(struct w_spin *spin, enum w_how how, const volatile void *p, size_t size, uint64_t seen)
{
	spin->turns++;
	if (how == W_SPIN && spin->turns % W_SPIN_ROW)
		w_pause_on(p, size, seen);
	else if (how == W_TURN && spin->turns < W_YIELD_ROW)
		w_sched_yield();
	else
		w_yield();
}

/* After a read of *@p returned @seen, which did not end the wait: returns whether to read again. */
static inline bool w_read_again(struct w_spin *spin, enum w_how how, const struct w_deadline *deadline,
				const volatile void *p, size_t size, uint64_t seen)
{
	if (spin->left) {
		w_pause_for(spin->next);
		spin->left -= spin->next < spin->left ? spin->next : spin->left;
		if (how == W_POLITE)
			spin->next += spin->next / 2 + 1;
		return true;
	}
	w_spin_end(spin, true);
	if (how >= W_BRIEF)
		return false;
	w_go_on(spin, how, p, size, seen);
	return !w_expired(deadline);
}

#define w_wait_acquire(p, COND, how, deadline)                                                                \
	({                                                                                                    \
		__auto_type w_p_ = (p);                                                                       \
		__typeof__(atomic_load_explicit(w_p_, memory_order_relaxed)) VAL = w_load_acquire(w_p_);      \
		if (!(COND)) {                                                                                \
			struct w_spin w_spin_ = w_spin_begin(how);                                            \
			while (w_read_again(&w_spin_, (how), (deadline), w_p_, sizeof(VAL), (uint64_t)VAL)) { \
				VAL = w_load_acquire(w_p_);                                                   \
				if (COND)                                                                     \
					break;                                                                \
			}                                                                                     \
			w_spin_end(&w_spin_, false);                                                          \
		}                                                                                             \
		VAL;                                                                                          \
	})

#define w_await_acquire(p, COND) w_wait_acquire(p, COND, W_SPIN, NULL)

#endif
