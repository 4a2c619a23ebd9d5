// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Takes the place of Linux's kernel/locking/qspinlock.c: the same four bytes and the same fast paths, and of the slow path
 * the one that the boot parameter names:
 *
 *	poundlock.spin=stock|cna|shfl|ron|cfl
 *
 * stock is the file that this one replaces, as it is. The others are core/'s queues around the kernel's word. A name that is
 * written to debugfs's poundlock/spin is the choice from then on. With poundlock.events, what the locks of this overlay do is
 * counted (core/events.def), in poundlock/events.
 *
 * Of cna and shfl:
 *
 *   bits  31 .. 18    17 16     15 .. 8   7 .. 0
 *         CPU + 1     context    cfl's    locked
 *         ╰────── tail ─────╯
 *
 *   tail    the last in the queue, by the name of its node; 0: nobody waits
 *   locked  legal to set by a newcomer if the whole word is 0, else by the head of the queue; to clear by the holder
 *
 *   0 ──newcomer──▶ locked ──waiter──▶ tail|locked ──release──▶ tail ──head──▶ tail|locked ──head, if the last──▶ locked
 *
 * Of ron the tail is the word of core/ron_shared.h: also 0 if nobody waits, and only then; but not who waits.
 *
 * Promises: mutual exclusion. Nobody passes the queue, but under cfl (cfl_qspinlock.h); in it the order, and its bound, is that of
 * core/cna.h, core/part/shuffle.h, core/cfl/cfl_order.h and core/ron_shared.h, but that under ron who is next is decided one hand-over ahead.
 * Waiters only pause. 4 bytes a lock; nodes, and slots, are the CPU's, one for each context: a fifth that waits in the same CPU
 * polls.
 */
/* The original, under another name. */
#define queued_spin_lock_slowpath stock_spin_lock_slowpath
#include <../kernel/locking/qspinlock.c>
#undef queued_spin_lock_slowpath

#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/static_call.h>
#include <linux/stop_machine.h>
#include <linux/string.h>

#include "choice.h"

#ifdef CONFIG_PARAVIRT_SPINLOCKS
#error "Poundlock's spin locks know nothing of paravirtual ones: build without PARAVIRT_SPINLOCKS"
#endif
#if _Q_TAIL_OFFSET != 16
#error "a tail of 16 bits knows fewer than 16,383 CPUs"
#endif

/* What core/ has as a pointer to the last node is its name here. */
#define W_TAIL(T) u16
#define W_SHORT u16
static inline u16 w_name_of(const void *node);
static inline void *w_named(u16 name);

#define W_SHARES
/* The world's functions, too: this is the one file of it in the kernel. */
#include "world.c"

#include "cfl/cfl_order.h"
#include "cna.h"
#include "ron_shared.h"
#include "part/shuffle.h"

/* ---- Nodes ---- */

/* A waiter's, in a line of its own. */
struct place {
	union {
		struct shfl_node shfl;
		struct cna_node cna;
		struct cfl_node cfl;
	};
	u32 limit; /* cfl's: of thefts, to who becomes the head; of who makes it that */
	u16 name;  /* its waiter writes it before it queues */
} ____cacheline_aligned;

static DEFINE_PER_CPU_ALIGNED(struct place, places[MAX_NODES]);
static DEFINE_PER_CPU(int, waiting); /* how many of them are in use */

static inline u16 w_name_of(const void *node)
{
	return node ? container_of(node, struct place, shfl)->name : 0;
}

static inline void *w_named(u16 name)
{
	u32 tail = (u32)name << _Q_TAIL_OFFSET;

	if (!name)
		return NULL;
	return per_cpu_ptr(&places[(tail & _Q_TAIL_IDX_MASK) >> _Q_TAIL_IDX_OFFSET], (tail >> _Q_TAIL_CPU_OFFSET) - 1);
}

/* Of this CPU's place @index. */
static inline u16 name_of_place(int index)
{
	return (u16)(encode_tail(smp_processor_id(), index) >> _Q_TAIL_OFFSET);
}

/* ---- The word ---- */

/* As the head of the queue, takes @lock when it is free. */
static __always_inline void take_as_head(struct qspinlock *lock)
{
	(void)smp_cond_load_acquire(&lock->locked, !VAL);
	WRITE_ONCE(lock->locked, _Q_LOCKED_VAL);
}

/* Takes @lock by @queued, through the queue. */
static __always_inline void take_queued(struct qspinlock *lock,
					void (*queued)(struct qspinlock *lock, struct place *place))
{
	int index = this_cpu_inc_return(waiting) - 1;
	struct place *place;

	lockevent_inc(lock_slowpath);
	trace_contention_begin(lock, LCB_F_SPIN);
	if (unlikely(index >= MAX_NODES)) {
		lockevent_inc(lock_no_node);
		while (!queued_spin_trylock(lock))
			cpu_relax();
	} else {
		/* The place is ours before it is written: a handler takes the next one. */
		barrier();
		place = this_cpu_ptr(&places[index]);
		place->name = name_of_place(index);
		if (!queued_spin_trylock(lock))
			queued(lock, place);
	}
	trace_contention_end(lock, 0);
	this_cpu_dec(waiting);
}

/* ---- CNA: its queue is a lock of its own, which the head of the queue holds while it waits for the word ---- */

static __always_inline void queue_by_cna(struct qspinlock *lock, struct place *place)
{
#define SET(lock, key, otherwise, ...) .key = (otherwise),
	const struct cna_policy policy = {.wait = WAIT_SPIN, cna_settings(SET)};
	struct cna *queue = (struct cna *)&lock->tail;

	(void)cna_acquire(queue, &place->cna, policy, NULL);
	take_as_head(lock);
	cna_release(queue, &place->cna, policy);
}

static noinline void __lockfunc cna_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	take_queued(lock, queue_by_cna);
}

/* ---- RON: as CNA. The head lets the next on the route be head as it takes the word, so that the release need not look for it ---- */

static_assert(W_CONTEXTS >= MAX_NODES, "who waits at a place of a CPU's has a slot there");

static __always_inline void queue_by_ron(struct qspinlock *lock, struct place *place)
{
	const struct ron_shared_policy policy = {.wait = WAIT_SPIN};
	struct ron_shared *queue = (struct ron_shared *)&lock->tail;

	(void)ron_shared_acquire(queue, policy, NULL);
	take_as_head(lock);
	(void)ron_shared_release(queue, policy);
}

static noinline void __lockfunc ron_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	take_queued(lock, queue_by_ron);
}

/* ---- ShflLock: figure 4 of the paper, around this word ---- */

static __always_inline void queue_by_shfl(struct qspinlock *lock, struct place *place)
{
	const enum policy policy = POLICY_NUMA;
	const struct shfl_order order = shfl_by(&policy, SHFL_MAX_BATCH);
	const struct shfl_stop stop = {(u32 *)&lock->val.counter, _Q_LOCKED_MASK, 0};
	bool slept = false;

	if (!shfl_enter(&lock->tail, &place->shfl, policy_note(policy, lock)))
		(void)shfl_wait_turn(&place->shfl, WAIT_SPIN, NULL, &slept, order);
	if (READ_ONCE(lock->locked) && shfl_head_shuffles(&place->shfl))
		shfl_shuffle(&place->shfl, stop, false, order);
	take_as_head(lock);
	(void)shfl_leave(&lock->tail, &place->shfl, WAIT_SPIN);
}

static noinline void __lockfunc shfl_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	take_queued(lock, queue_by_shfl);
}

/* ---- CFL ---- */

#include "cfl_qspinlock.h"

/* ---- The choice ---- */

DEFINE_STATIC_CALL(spin_slowpath, stock_spin_lock_slowpath);

void __lockfunc queued_spin_lock_slowpath(struct qspinlock *lock, u32 val);

void __lockfunc queued_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	static_call(spin_slowpath)(lock, val);
}
EXPORT_SYMBOL(queued_spin_lock_slowpath);

static const struct {
	const char *name;
	void (*slowpath)(struct qspinlock *lock, u32 val);
} choices[] = {
	{"stock", stock_spin_lock_slowpath}, {"cna", cna_spin_lock_slowpath}, {"shfl", shfl_spin_lock_slowpath},
	{"ron", ron_spin_lock_slowpath},     {"cfl", cfl_spin_lock_slowpath},
};

static unsigned int choice;

static bool has_memory; /* that of the world */

/* Whether there is what a choice needs: of RON's slots there may be more than its word can tell apart. */
static bool can_use(unsigned int wanted)
{
	if (!has_memory)
		return choices[wanted].slowpath == stock_spin_lock_slowpath;
	return choices[wanted].slowpath != ron_spin_lock_slowpath || ron_shared_slots() <= RON_SHARED_MOST;
}

/* The choice of @name; ARRAY_SIZE(choices): there is none. */
static unsigned int find_choice(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(choices) && strcmp(choices[i].name, name); i++)
		;
	return i;
}

static int __init choose(char *name)
{
	unsigned int found = find_choice(name);

	if (found < ARRAY_SIZE(choices))
		choice = found;
	else
		pr_err("poundlock.spin=%s: there is no such spin lock; the stock one is used\n", name);
	return 0;
}
early_param("poundlock.spin", choose);

/* Before the other CPUs come up: nobody waits for any lock. */
static int __init begin(void)
{
	has_memory = w_start();
	if (!can_use(choice)) {
		pr_err("poundlock: no memory, or too many CPUs, for %s; the stock spin lock is used\n",
		       choices[choice].name);
		choice = 0;
	}
	static_call_update(spin_slowpath, choices[choice].slowpath);
	pr_info("poundlock: spin locks by %s\n", choices[choice].name);
	return 0;
}
early_initcall(begin);

/* ---- Another choice, while the machine runs ---- */

static void (*chosen_slowpath)(struct qspinlock *lock, u32 val);

static void chosen_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	READ_ONCE(chosen_slowpath)(lock, val);
}

/*
 * The other CPUs do nothing, with interrupts off: a waiter has preemption off, so that there is none. CFL's nodes say whether they
 * are free, where CNA's have something else.
 */
static int switch_slowpath(void *slowpath)
{
	int cpu;

	for_each_possible_cpu(cpu) memset(per_cpu_ptr(places, cpu), 0, sizeof(places));
	WRITE_ONCE(chosen_slowpath, slowpath);
	return 0;
}

/*
 * A static call cannot be changed while the machine is stopped, since that sleeps, nor under waiters: so it leads to a pointer for
 * as long as it takes, and what all waiters follow is changed at one moment.
 */
static void switch_choice(unsigned int wanted)
{
	chosen_slowpath = choices[choice].slowpath;
	static_call_update(spin_slowpath, chosen_spin_lock_slowpath);
	(void)stop_machine(switch_slowpath, choices[wanted].slowpath, NULL);
	static_call_update(spin_slowpath, choices[wanted].slowpath);
	choice = wanted;
}

/* ---- debugfs: poundlock/spin ---- */

#define LONGEST_NAME 16

static DEFINE_MUTEX(switching);

static ssize_t spin_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char name[LONGEST_NAME];
	ssize_t length = simple_write_to_buffer(name, sizeof(name) - 1, at, from, size);
	unsigned int wanted;

	if (length < 0)
		return length;
	name[length] = '\0';
	wanted = find_choice(strim(name));
	if (wanted == ARRAY_SIZE(choices) || !can_use(wanted))
		return -EINVAL;
	mutex_lock(&switching);
	switch_choice(wanted);
	mutex_unlock(&switching);
	return size;
}

static int spin_show(struct seq_file *file, void *unused)
{
	seq_printf(file, "%s\n", choices[READ_ONCE(choice)].name);
	return 0;
}

static int spin_open(struct inode *inode, struct file *file)
{
	return single_open(file, spin_show, NULL);
}

static const struct file_operations spin_fops = {
	.owner = THIS_MODULE,
	.open = spin_open,
	.read = seq_read,
	.write = spin_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* ---- poundlock.events: what our locks do is counted, and is in debugfs, too ---- */

static int __init count_events(char *unused)
{
	static_branch_enable(&w_listening);
	return 0;
}
early_param("poundlock.events", count_events);

static int events_show(struct seq_file *file, void *unused)
{
	static const char *const names[W_EVENTS] = {
#define EVENT(name, meaning) [W_EVENT_##name] = #name,
#include "events.def"
#undef EVENT
	};
	unsigned int i;

	for (i = 0; i < W_EVENTS; i++)
		seq_printf(file, "%s=%llu\n", names[i], w_counted(i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(events);

static int __init show(void)
{
	choice_show("spin", &spin_fops, 0600);
	choice_show("events", &events_fops, 0400);
	return 0;
}
late_initcall(show);
