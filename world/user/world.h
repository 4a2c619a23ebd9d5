/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The world of Linux user space: C11 atomics, pause, futex, rseq or the vDSO for the CPU, sysfs for the domain
 * and, where no file has one, for the route.
 * world/README.md says what each operation promises; what is said here is only how it is kept.
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

/* A stress test's world defines this to give the CPU up at random before an operation. */
#ifndef W_STEP
#define W_STEP() ((void)0)
#endif
/* One that counts defines this for what it does before a read-modify-write. */
#ifndef W_UPDATE
#define W_UPDATE() W_STEP()
#endif

#define w_likely(x) __builtin_expect(!!(x), 1)
#define w_unlikely(x) __builtin_expect(!!(x), 0)
#define W_HIDDEN __attribute__((visibility("hidden")))
/* A path that an uncontended operation does not take: kept out of line, so that the others stay small. */
#define W_SLOW __attribute__((noinline, cold, unused))

/* ---- Objects ---- */

#define W_ATOMIC(T) _Atomic(T)
#define W_TAIL(T) W_ATOMIC(T *)
#define W_SHORT uint32_t

/* glibc's, from 2.32 on. */
extern char __libc_single_threaded __attribute__((weak));

/*
 * Whether this is the process's one thread, and so the only one that uses its objects: not in a file that defines this,
 * whose objects other processes may use, too.
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
 * With one thread in the process nothing has to be atomic: as in glibc, a read and a write do, at a third of the cost.
 * The next thread's creation orders them.
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
/* The sanitizer knows no fences; an object that all fences modify orders as much. */
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

/* A waiter's node: one cache line, so that waiters spin apart. A status of 0 says that it is free. */
struct w_node {
	_Alignas(64) W_ATOMIC(uint32_t) status;
	char rest[60];
};

#define W_NODES 8

/* What a thread knows of its use of a lock. Its own: no other thread reads or writes it. */
struct w_account {
	const void *lock; /* NULL: none */
	uint64_t held;    /* for how long, by weight (core/part/hold.h) */
	uint64_t until;   /* when it last was released after somebody had waited; 0: never */
	uint64_t since;   /* when it was taken, while it is held; 0: not known */
	uint32_t recent;  /* the mean of the hold times lately */
	uint32_t used;    /* the later, the larger */
};

#define W_ACCOUNTS 8

/*
 * What a thread keeps between its lock operations. Records are never unmapped: a node may still be queued when its
 * thread ends. A thread that ended leaves its record to the next one that looks for one (thread.c).
 */
struct w_self {
	struct w_node nodes[W_NODES];
	W_ATOMIC(uint64_t) owner; /* a thread of some fork generation (thread.c); 0: free */
	uint32_t id;              /* from 1 on */
	struct w_self *next;      /* in the list of all records */
	W_ATOMIC(struct w_more_nodes *) more;
	W_ATOMIC(struct w_block *) block;
	W_ATOMIC(uint64_t) events[W_EVENTS];
};

/* How bounded spins went, see w_spin_pauses_now(). */
struct w_luck {
	uint8_t parts_lost;
	uint8_t spins;
};
#define W_LUCKS 2 /* of W_POLITE, and of W_QUEUED */

/*
 * What few threads use, and what is too large for storage that every thread has (of the static kind, of which libraries
 * that are loaded late find little left). No other thread sees it while this one lives.
 */
struct w_block {
	struct w_account accounts[W_ACCOUNTS];
	uint32_t account_uses;
	_Alignas(16) char info[192];     /* lib/info.c's */
	_Alignas(16) char embedder[192]; /* the preload library's */
};

/* What is over when the thread is. */
struct w_own {
	struct w_block *block; /* NULL: not needed yet */
	uint32_t random;       /* 0: not begun */
	uint32_t weight;       /* 0: not known yet */
	uint32_t group;        /* one more than its number; 0: not known yet */
	uint64_t unique;       /* the next of its block of unique numbers; a block's first: it has none */
	bool knows_luck[W_LUCKS];
	struct w_luck luck[W_LUCKS];
	uint8_t refusals; /* of a place among the spinners */
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

/* The calling thread's, zeroed at first. */
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

/* The largest page of the architecture, which has the kernel wipe no neighbour. */
#if defined(__x86_64__) || defined(__i386__)
#define W_PAGE 4096
#else
#define W_PAGE 65536
#endif

/*
 * What holds for this process alone. In a new one, however it was forked, the kernel has zeros here (MADV_WIPEONFORK):
 * the first thread that needs the generation finds none, and begins the process. So neither _Fork() nor a clone system
 * call has to be noticed. A vfork child shares the memory of its parent, and so is no process of its own here.
 */
struct w_this_process {
	_Alignas(W_PAGE) W_ATOMIC(uint32_t) generation; /* one more than it is; 0: not begun */
	W_ATOMIC(uint32_t) number;                      /* its id */
	W_ATOMIC(struct w_self *) forker;               /* as fork()'s handler has noted it (thread.c) */
	W_ATOMIC(uint32_t) beginning;                   /* whether a thread does, and another sleeps until it has */
	W_ATOMIC(uint32_t) orphaned; /* whether the records of other generations are free: none is a thread's here */
	_Alignas(64) W_ATOMIC(uint32_t) scanning; /* one at a time, so that a record found dead is the dead thread's */
	_Alignas(64) W_ATOMIC(uint32_t) spinners; /* threads in a bounded spin: w_spin_enter() */
	struct w_node queue_nodes[W_QUEUE_NODES];
};

extern W_HIDDEN struct w_this_process w_this_process;

/*
 * Has the kernel and pthread_atfork() tell new processes from their parents. Once, early. A kernel before 4.14 does not
 * wipe: there the children of _Fork() and of clone system calls go on as if they were their parents.
 */
W_HIDDEN void w_process_watch(void);

/*
 * Has @told called in each new process from now on, before a thread there that has not forked gets a record. Not in a
 * child of _Fork() or of a clone system call in which such a thread is the first to need the generation.
 */
typedef void w_told(void);
W_HIDDEN void w_process_tell(w_told *told);

/* Begins the process, if no other thread has. The generation. */
W_HIDDEN uint32_t w_process_begin(void);
W_HIDDEN uint32_t w_process_read(void);

static inline uint32_t w_fork_generation(void)
{
	/* relaxed: a number that never changes again. What was done before it is ordered for new threads by w_self_attach() */
	uint32_t begun = atomic_load_explicit(&w_this_process.generation, memory_order_relaxed);

	return w_likely(begun) ? begun - 1 : w_process_begin();
}

static inline uint32_t w_process(void)
{
	/* relaxed: a number that never changes again */
	uint32_t number = atomic_load_explicit(&w_this_process.number, memory_order_relaxed);

	return w_likely(number) ? number : w_process_read();
}

#define w_queue_node(i) (&w_this_process.queue_nodes[i])

/* Readers that are visible by themselves. */
struct w_visible {
	W_ATOMIC(uint64_t) bias;
	W_ATOMIC(uint32_t) reader;
	uint32_t depth;
};

#define W_VISIBLE 4096u
extern W_HIDDEN struct w_visible w_visible_readers[W_VISIBLE];
#define w_visible(i) (&w_visible_readers[i])

/* @size bytes of zeroed memory, which munmap() gives back; NULL if there is none. Changes no errno. */
W_HIDDEN void *w_map(size_t size);
/* The same, never to be given back. Where there is no memory it has 1 MiB of its own left for all who ask. */
W_HIDDEN void *w_keep(size_t size);

W_HIDDEN void *w_node_get_slow(struct w_self *self);

static inline void *w_node_get(void)
{
	struct w_self *self = w_self();

	/* acquire: pairs with the release that gave the node back, so that its last user is done with it */
	if (w_likely(!atomic_load_explicit(&self->nodes[0].status, memory_order_acquire)))
		return &self->nodes[0];
	return w_node_get_slow(self);
}

/* The status of a node that is taken and not yet in a queue. */
#define W_NODE_TAKEN UINT32_MAX

/* Takes a free node of status @status. One instruction to the thread's own signal handlers; no other thread takes it. */
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

/* A node of the pool, which no signal handler of the thread can take as well. For a caller that is sure to use it. */
static inline void *w_node_take(void)
{
	struct w_node *node;

	/* relaxed: the reserve's nodes are taken by compare-exchange when they are chosen */
	do
		node = w_node_get();
	while (!w_node_mark(&node->status) &&
	       atomic_load_explicit(&node->status, memory_order_relaxed) != W_NODE_TAKEN);
	return node;
}

/* Never @on_stack: a signal handler may jump out of any wait, or end the thread, and leave the node in the queue. */
#define w_waiter_node(on_stack, may_leave) ((void)(on_stack), (may_leave) ? w_node_get() : w_node_take())

extern W_HIDDEN W_ATOMIC(void *) w_common_block; /* NULL until first needed */
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

/* Spread, so that numbers that follow one another lie on different cache lines. */
static inline W_ATOMIC(uint32_t) *w_slot(uint64_t number)
{
	return &w_slots[number * UINT64_C(0x9e3779b97f4a7c15) / (UINT64_MAX / W_SLOTS + 1)];
}

/* Where the thread's random numbers begin: not 0. */
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
/* Who else is told of each event, by its thread, while w_listening; NULL: nobody. Set before that. */
extern W_HIDDEN void (*w_listener)(enum w_event event);
W_HIDDEN void w_count(enum w_event event);
/* How often, by all threads there have been, since w_listening was set. */
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

/* By group, once that is known to some thread. */
extern W_HIDDEN W_ATOMIC(uint32_t) w_group_weights[W_GROUPS];

static inline uint32_t w_group_weight(uint32_t group)
{
	/* relaxed: a number that is set before any thread is of the group, and may be set anew */
	return atomic_load_explicit(&w_group_weights[group], memory_order_relaxed);
}

/* The thread's weight from now on; 0: that of its nice value, read again. */
W_HIDDEN void w_weight_set(uint32_t weight);
/* The thread's group from now on: the tenant @id, of @weight, or its cgroup again. False if there are too many. */
W_HIDDEN bool w_tenant_set(uint64_t id, uint32_t weight);
W_HIDDEN void w_tenant_clear(void);

/* A policy that the program brings: as those of core/policy/policy.h. */
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

/* ---- Where and when ---- */

/* What glibc's published offsets into the calling thread's data, such as __rseq_offset, count from. */
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
extern W_HIDDEN W_ATOMIC(const uint16_t *) w_domains; /* by CPU; NULL until first needed */
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

extern W_HIDDEN W_ATOMIC(uint32_t) w_cpus_usable;   /* 0 until first needed */
extern W_HIDDEN W_ATOMIC(const uint16_t *) w_route; /* by CPU, its position; NULL until first needed */
W_HIDDEN uint32_t w_cpu_count_slow(void);
W_HIDDEN const uint16_t *w_route_load(void);

static inline uint32_t w_cpu_count(void)
{
	/* relaxed: a number that never changes again */
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

/* 1 until a thread that looks has read how many there are. */
extern W_HIDDEN W_ATOMIC(uint32_t) w_domains_known;

static inline uint32_t w_domain_count(void)
{
	if (w_unlikely(!atomic_load_explicit(&w_domains, memory_order_acquire)))
		w_domains_load();
	return atomic_load_explicit(&w_domains_known, memory_order_relaxed);
}

#define W_LEVELS 3

/* Of each level above the domains: by domain, what it is in; and how many of that there are. Written before w_domains. */
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
 * How many pauses a bounded spin makes at most; and how many threads of the process may be in one at a time: one less than it
 * has CPUs. More would only keep holders from running: they give up at once.
 */
extern W_HIDDEN uint32_t w_spin_pauses;
extern W_HIDDEN uint32_t w_spinners_most;
/* How those of the process went, as the thread knows it that ended one last. */
extern W_HIDDEN W_ATOMIC(struct w_luck) w_last_luck[W_LUCKS];
/* Sets it, by the CPUs that the process may use and the time that a pause takes. */
W_HIDDEN void w_spin_calibrate(void);

W_HIDDEN bool w_expired_slow(const struct w_deadline *deadline);
/* Sleeps for a moment: any other thread may run, whatever its priority. */
W_HIDDEN void w_yield(void);
/* Lets other threads of the same priority run, if there are any that are ready to. */
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
 * A pause while *@p, of @size bytes, most likely still is @seen. On arm64 WFE sleeps until the line moves (the exclusive
 * monitor that LDXR armed is cleared), or until the kernel's event stream wakes it after 0.1 ms at most.
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
 * To spin in vain, for a lock whose holder does not run, takes as long as to sleep at once, and keeps a CPU from those who
 * have something to do. So of its polite spins, and of those in a queue, each for themselves, a thread loses a part for each that was in vain, and regains half of what it
 * lost for each that was not: those that pay now and then stay long. One in so many is whole whatever came before, since a
 * short one cannot tell what a long one would have seen; what such a one regains, the next ones confirm or lose again. It is
 * rare, since it costs most where it never pays: where holders give the CPU up, as in stress-ng's stressor of mutexes. A
 * thread begins with what another one knows, since many do not live for so long that they could learn: those of stress-ng's
 * stressor of threads spin once or twice. The length of other spins matters to their locks.
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
	struct w_luck *luck = &w_own.luck[kind];

	/* relaxed, here and below: it costs a little time if it is old */
	if (w_unlikely(!w_own.knows_luck[kind]))
		*luck = atomic_load_explicit(&w_last_luck[kind], memory_order_relaxed);
	w_own.knows_luck[kind] = true;
	lost = ++luck->spins % W_SPINS_WHOLE ? luck->parts_lost : 0;
	return w_spin_pauses * (W_SPIN_PARTS - lost) / W_SPIN_PARTS + 1;
}

static inline void w_spin_note(enum w_how how, bool in_vain)
{
	uint32_t kind = how - W_POLITE;
	struct w_luck *luck = &w_own.luck[kind];

	if (!in_vain)
		luck->parts_lost /= 2;
	else if (luck->parts_lost < W_SPIN_PARTS)
		luck->parts_lost++;
	atomic_store_explicit(&w_last_luck[kind], *luck, memory_order_relaxed);
}

/*
 * A wait so far: how many pauses it may still make, the next one's length, whether it counts among the spinners, and how
 * often it went on after its bounded spin.
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
 * The count of spinners, below the number of a term. A thread that leaves a spin in another way than by its end (its signal
 * handler jumps, or it is cancelled) stays counted. So where there is no room a new term begins now and then, with a count
 * of none, and a spin of a former one ends without a change.
 */
#define W_TERM_SHIFT 16
#define W_SPINNERS ((1u << W_TERM_SHIFT) - 1)
#define W_REFUSALS 64 /* of which a thread looks once at the time */

/* Begins a new term after @spinners, if the last one began long ago. */
W_HIDDEN void w_spin_new_term(uint32_t spinners);

/* Counts the caller among the spinners, in *@term. False if there are enough. */
static inline bool w_spin_enter(uint32_t *term)
{
	/* relaxed, all here and below: a count that is a little off costs a little time */
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

static inline void w_spin_end(struct w_spin *spin, bool in_vain)
{
	if (spin->counted) {
		w_spin_leave(spin->term);
		if (w_learns(spin->how))
			w_spin_note(spin->how, in_vain);
	}
	spin->counted = false;
	spin->left = 0;
}

/*
 * A thread of a real-time class that spins, or calls sched_yield(), keeps its CPU from every thread of a lower priority; if
 * the one it waits for is such a thread, and was preempted on that CPU, it waits for ever. So each wait sleeps now and then:
 * one that spins after W_SPIN_ROW pauses, which is milliseconds; one that yields after W_YIELD_ROW yields, and then each time.
 */
#ifdef __aarch64__
#define W_SPIN_ROW (1u << 10) /* of pauses that may each be a sleep to the kernel's next event */
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

/* Whether to read again after a read of *@p, which gave @seen, did not end the waiting. */
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
