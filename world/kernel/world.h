/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The world of the Linux kernel: the kernel's atomics, per-CPU nodes, the scheduler.
 * world/README.md is the contract of each operation; the comments here describe the implementation.
 *
 * It serves spin locks: preemption is off from the beginning of an acquisition to the end of the
 * release, and a waiter only pauses, whatever `how` is. Interrupt handlers may use other locks in
 * between: to them an operation is a single instruction, or they restore what they find. There are
 * no deadlines and no forks.
 *
 * In a file that defines W_SLEEPS it serves locks of tasks, which sleep (park.c), and whose
 * deadlines are signals. Of the per-CPU state they may only use what takes a single instruction:
 * the pool's nodes are not available to them, and their accounts are the task's (accounts.c), which
 * requires preemption to be off.
 */
#ifndef POUNDLOCK_WORLD_KERNEL_H
#define POUNDLOCK_WORLD_KERNEL_H

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/compiler.h>
#include <linux/irqflags.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/prefetch.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/rt.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "hint.h"
#include "how.h"
#include "objects.h"
#include "stdint.h"
#include "version.h"

/*
 * The kernel's macro is the name of a waiter in core/. Files include this header after the
 * kernel's, and use get_current().
 */
#undef current

#define w_likely(x) likely(x)
#define w_unlikely(x) unlikely(x)
#define W_SLOW noinline __maybe_unused

/* ---- State of the world (world.c) ---- */

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

/*
 * A task's use of a lock. Under a spin lock it belongs to the CPU: a task that migrates starts
 * again.
 */
struct w_account {
	const void *lock; /* NULL: unused */
	const void *task;
	u64 held;   /* virtual hold time (core/part/hold.h) */
	u64 until;  /* when it last released the lock while others waited; 0: never */
	u64 since;  /* start of the current hold; 0: unknown */
	u32 recent; /* average of the recent hold times */
	u32 used;   /* time stamp of the last use */
	/*
	 * Charges by other threads for a spin lock whose release cannot charge, and the time of the
	 * last one.
	 */
	W_ATOMIC(u64) billed, billed_at;
};

#define W_ACCOUNTS 8u

/* A CPU's contexts: task, softirq, hard interrupt, NMI. Each has its own nodes. */
#define W_CONTEXTS 4
/* Locks with a holder's node that a context may hold and wait for at once. */
#define W_NODES 16u

/* Per-CPU state. */
struct w_self {
	struct w_node nodes[W_CONTEXTS][W_NODES];
	struct w_account accounts[W_CONTEXTS][W_ACCOUNTS];
	u32 account_uses;
	u64 events[W_EVENTS];
	u64 unique;
	u32 random;
	u32 position; /* on the route */
	u32 domain;
};

DECLARE_PER_CPU_ALIGNED(struct w_self, w_selves);

/*
 * w_start() precedes the first use of a lock, and returns false if there is no memory. w_end()
 * follows the last use.
 */
bool w_start(void);
void w_end(void);

/* ---- Nodes and numbers ---- */

static inline void *w_node_get(void)
{
	struct w_node *nodes = this_cpu_ptr(w_selves.nodes)[interrupt_context_level()];
	u32 i;

	for (i = 0; i < W_NODES; i++)
		/*
		 * acquire: pairs with the release that freed the node; its previous user's accesses
		 */
		if (likely(!smp_load_acquire(&nodes[i].status)))
			return &nodes[i];
	panic("poundlock: CPU %u is in more than %u locks at once\n", raw_smp_processor_id(),
	      W_NODES);
}

#define w_node_choose() w_node_get()
#define w_node_settle(node) ((void)(node))
#define w_waiter_node(on_stack, may_leave) ((may_leave) ? w_node_get() : (void *)(on_stack))

#define W_QUEUE_NODES 64u
extern struct w_node w_queue_nodes[W_QUEUE_NODES];
#define w_queue_node(i) (&w_queue_nodes[i])

/* An entry of BRAVO's table of readers. */
struct w_visible {
	W_ATOMIC(uint64_t) bias;
	W_ATOMIC(uint32_t) reader;
	uint32_t depth;
};

#define W_VISIBLE 4096u
extern struct w_visible w_visible_readers[W_VISIBLE];
#define w_visible(i) (&w_visible_readers[i])

#define W_SLOTS 4096
extern W_ATOMIC(uint32_t) w_slots[W_SLOTS];

/* Hashed, so that consecutive numbers select different cache lines. */
static inline W_ATOMIC(uint32_t) *w_slot(uint64_t number)
{
	return &w_slots[number * 0x9e3779b97f4a7c15ull / (U64_MAX / W_SLOTS + 1)];
}

/* 2^48 consecutive numbers per CPU. */
static inline uint64_t w_unique(void)
{
	return this_cpu_inc_return(w_selves.unique);
}

void *w_common(size_t bytes);
/*
 * No gates: nobody would come there (kernel/spin.c). So no place has a domain, and there is nothing
 * to remember.
 */
#define w_gates(bytes) ((void)(bytes), (void *)NULL)
#define w_domain_at(position) ((void)(position), 0)
#define w_remembers(lock) ((void)(lock), false)
#define w_hint_lock(lock) ((void)(lock), (const void *)NULL)
#define w_note(lock) ((void)(lock), 0u)
#define w_note_set(lock, its_note) ((void)(lock), (void)(its_note))
#define w_remember(lock, its_note) ((void)(lock), (void)(its_note), false)
#define w_forget(lock) ((void)(lock))
#define w_streak_end(long_turns) ((void)(long_turns))
#define w_streak_begin() ((void)0)
#define w_streak_counts() false
#define w_streak_is_over(others_wait, long_turns) ((void)(others_wait), (void)(long_turns), false)
#define w_streak_yield() ((void)0)
#define w_race_end() UINT64_C(0)
#define w_turns_shorten() ((void)0)
#define w_turns_are_long() false

#define w_fork_generation() 0u
#define w_process() 1u

static inline uint32_t w_random(void)
{
	/* A number that an interrupt handler draws in between is drawn again. */
	uint32_t x = this_cpu_read(w_selves.random);

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	this_cpu_write(w_selves.random, x);
	return x;
}

DECLARE_STATIC_KEY_FALSE(w_listening);
/* The count of @event, over all CPUs, while w_listening was set. */
u64 w_counted(enum w_event event);

/* A file whose events have a trace point defines it before. */
#ifndef w_trace
#define w_trace(name) ((void)0)
#endif

/* A file that counts by itself defines it before. */
#ifndef w_event
#define w_event(name)                                                  \
	do {                                                           \
		if (static_branch_unlikely(&w_listening))              \
			this_cpu_inc(w_selves.events[W_EVENT_##name]); \
		w_trace(name);                                         \
	} while (0)
#endif

/* ---- Shares ---- */

struct w_account *w_account_open(struct w_account *accounts, const void *lock);

/*
 * The account of @lock and this task among W_ACCOUNTS; @use is the time stamp of this use. Replaces
 * another account if there is none yet.
 */
static inline struct w_account *w_account_among(struct w_account *accounts, const void *lock,
						u32 use)
{
	struct w_account *account;
	u32 i;

	for (i = 0;
	     i < W_ACCOUNTS && (accounts[i].lock != lock || accounts[i].task != get_current()); i++)
		;
	account = i < W_ACCOUNTS ? &accounts[i] : w_account_open(accounts, lock);
	account->used = use;
	return account;
}

#ifdef W_SLEEPS
struct w_account *w_account(const void *lock);
#else
static inline struct w_account *w_account(const void *lock)
{
	return w_account_among(this_cpu_ptr(w_selves.accounts)[interrupt_context_level()], lock,
			       this_cpu_inc_return(w_selves.account_uses));
}
#endif

/* An interrupt handler has no group, and the weight of nice 0, whichever task it interrupts. */
#define W_OF_TASK(otherwise, what) (interrupt_context_level() ? (otherwise) : what(get_current()))
#define w_weight() W_OF_TASK(W_NICE_0, w_task_weight)
#define w_self_id() ((uint32_t)get_current()->pid + 1)

/* Group numbers are ints. Only the weight of the thread's own group is used. */
#define W_GROUPS (1u << 31)
#define w_group() W_OF_TASK(0u, w_task_group)
#define w_group_weight(group) ((void)(group), W_OF_TASK(W_NICE_0, w_task_group_weight))

/* ---- Place and time ---- */

#define w_cpu() ((uint32_t)raw_smp_processor_id())
#define w_cpu_count() ((uint32_t)nr_cpu_ids)
#define w_route_position() this_cpu_read(w_selves.position)
/* NUMA nodes from w_start() on, until the kernel's own locks are told others. */
#ifndef w_domain
extern u32 w_domains;
#define w_domain() ((int32_t)this_cpu_read(w_selves.domain))
#define w_domain_count() READ_ONCE(w_domains)
#endif
/* Between a domain and the whole machine, the kernel knows no level that matters to a lock. */
#define W_LEVELS 2
#define w_domain_parents(level) ((void)(level), 0u)
#define w_domain_parent(level, domain) ((void)(level), (void)(domain), 0u)
#define w_now() local_clock()

/*
 * As in CNA's patch of Linux: a waiter in an interrupt or with interrupts off delays others, and
 * real-time tasks (and deadline tasks, and those boosted to their priority) have a latency to keep.
 */
#define W_URGENCY 1
extern bool w_heeds_urgency;

static inline bool w_urgent(void)
{
	return READ_ONCE(w_heeds_urgency) &&
	       (irqs_disabled() || interrupt_context_level() || get_current()->prio < MAX_RT_PRIO);
}

/*
 * The time for which waiters may be bypassed: in milliseconds by default and at most, which is far
 * from where the clock wraps; and in the unit of W_THRESHOLD.
 */
#define W_THRESHOLD_MS 10u
#define W_THRESHOLD_MOST 100000u
#define W_THRESHOLD_TIME(milliseconds) (u32)((u64)(milliseconds)*NSEC_PER_MSEC >> 10)

/* A file whose locks defer waiters for a time defines it before; by default they count. */
#ifndef W_THRESHOLD
#define W_THRESHOLD 0u
#endif

/* A policy of the program: a file whose locks have them defines these before. */
#ifndef w_own_policy_note
#define w_own_policy_note(number, lock) ((void)(number), (void)(lock), 0u)
#define w_own_policy_rank(number, shuffler, waiter) \
	((void)(number), (void)(shuffler), (void)(waiter), UINT32_MAX)
#endif

/* ---- Waiting ---- */

/*
 * A time; or, for locks of tasks, a pending signal that the task would handle in @state:
 * TASK_INTERRUPTIBLE or TASK_KILLABLE.
 */
struct w_deadline {
	u64 at;
	unsigned int state;
};

/* Number of pauses in a bounded spin. */
#define W_SPIN_PAUSES 1000u

#define w_deadline_at(time) ((struct w_deadline){.at = (time)})

#define W_OWN_LINE _Alignas(64)
#define w_prefetch(p) prefetch((const void *)(p))
#define W_SPIN_ROW (1u << 16)

static inline void w_pause_for(uint32_t pauses)
{
	while (pauses--)
		cpu_relax();
}

/*
 * Lets the task run that the calling task waits for. That task may have a lower priority than a
 * real-time caller and be bound to its CPU, so that a real-time caller sleeps. A waiter with
 * preemption off waits for a task with preemption off, on another CPU.
 */
static inline void w_yield_task(void)
{
	if (preempt_count())
		return;
	if (rt_task(get_current()))
		schedule_timeout_uninterruptible(1);
	else
		cond_resched();
}

#ifdef W_SLEEPS

/*
 * Remains true until the task handles its signals. One may arrive concurrently, and the kernel's
 * function reads plainly.
 */
static inline bool w_expired(const struct w_deadline *deadline)
{
	return deadline && data_race(signal_pending_state(deadline->state, get_current()));
}

#define w_yield() w_yield_task()
void w_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline);
void w_unpark(W_ATOMIC(uint32_t) *p);
void w_unpark_all(W_ATOMIC(uint32_t) *p);

/* Whether to read again after @reads. A bounded spin also ends when the CPU is needed. */
static inline bool w_read_again(u32 reads, enum w_how how, const struct w_deadline *deadline)
{
	cpu_relax();
	if (how >= W_BRIEF) {
		if (how == W_ONCE || reads >= W_SPIN_PAUSES || need_resched())
			return false;
	} else if (need_resched() || reads % W_SPIN_PAUSES == W_SPIN_PAUSES - 1) {
		w_yield();
	}
	return !w_expired(deadline);
}

#else

static inline bool w_expired(const struct w_deadline *deadline)
{
	return deadline && local_clock() >= deadline->at;
}

#define w_yield() cpu_relax()

/* No lock here sleeps. If one is asked to, it only reads again. */
static inline void w_park(W_ATOMIC(uint32_t) *p, uint32_t expected,
			  const struct w_deadline *deadline)
{
	WARN_ONCE(1, "poundlock: a spin lock wants to sleep\n");
	cpu_relax();
}

static inline void w_unpark(W_ATOMIC(uint32_t) *p)
{
}

static inline void w_unpark_all(W_ATOMIC(uint32_t) *p)
{
}

/* Returns whether to read again after @reads. */
static inline bool w_read_again(u32 reads, enum w_how how, const struct w_deadline *deadline)
{
	cpu_relax();
	return (how < W_BRIEF || (how != W_ONCE && reads < W_SPIN_PAUSES)) && !w_expired(deadline);
}

#endif

#define w_await_acquire(p, COND) smp_cond_load_acquire(p, COND)

/*
 * Unknown. single_task_running() is about runnable tasks only: it is also true on a CPU whose
 * waiters all sleep, and a waiter that is woken there competes with the holder.
 */
#define w_has_own_cpu() false

#define w_wait_acquire(p, COND, how, deadline)                                               \
	({                                                                                   \
		__auto_type w_p_ = (p);                                                      \
		__auto_type VAL = smp_load_acquire(w_p_);                                    \
		for (u32 w_reads_ = 0; !(COND) && w_read_again(w_reads_, (how), (deadline)); \
		     w_reads_++)                                                             \
			VAL = smp_load_acquire(w_p_);                                        \
		VAL;                                                                         \
	})

#endif
