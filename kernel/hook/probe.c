// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * How the module finds stock's nodes. The kernel's table of symbols has them, and the function that
 * reads the table is found by a kprobe, as other modules do it. Then a lock is prepared so that a
 * waiter must queue, and a function call on another CPU waits for it: the lock's word must name
 * a node of that CPU, and the node's count must be the number of nodes in use.
 */
#include <linux/bottom_half.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "probe.h"

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

/* Microseconds in which a waiter should have entered the queue: many times what it takes. */
#define PATIENCE 1000000

/* ---- Symbols ---- */

typedef unsigned long (*lookup)(const char *name);

/* kallsyms_lookup_name(), which is not exported; NULL if it cannot be called. */
static lookup find_lookup(void)
{
	struct kprobe probe = {.symbol_name = "kallsyms_lookup_name"};

	/* Under IBT an indirect call of a function that the kernel never calls so is a fault. */
	if (IS_ENABLED(CONFIG_X86_KERNEL_IBT) || register_kprobe(&probe))
		return NULL;
	unregister_kprobe(&probe);
	return (lookup)probe.addr;
}

void __percpu *probe_nodes(void)
{
	const lookup look_up = find_lookup();
	void __percpu *nodes;

	if (!look_up) {
		pr_err("this kernel's symbols cannot be looked up\n");
		return NULL;
	}
	nodes = (void __percpu *)look_up("qnodes");
	if (!nodes) {
		pr_err("this kernel's queue of spin locks has another name\n");
		return NULL;
	}
	return probe_waits(nodes) ? nodes : NULL;
}

/* ---- A waiter of another CPU ---- */

struct trial {
	arch_spinlock_t lock;
	bool arrived; /* the waiter */
};

/* Waits for the lock of the trial @data on another CPU, in an interrupt. */
static void wait_for(void *data)
{
	struct trial *trial = data;

	WRITE_ONCE(trial->arrived, true);
	arch_spin_lock(&trial->lock);
	arch_spin_unlock(&trial->lock);
}

/* Whether the tail of @word names the node of @cpu among @nodes that is in use last. */
static bool names_node(u32 word, unsigned int cpu, const void __percpu *nodes)
{
	const u32 index = (word & _Q_TAIL_IDX_MASK) >> _Q_TAIL_IDX_OFFSET;
	const int *count =
		(const int *)((const char *)per_cpu_ptr(nodes, cpu) + PROBE_COUNT_OFFSET);

	return word >> _Q_TAIL_CPU_OFFSET == cpu + 1 && READ_ONCE(*count) == (int)index + 1;
}

/* The word of @trial's lock once it has a tail, or when the waiter has had the time to enter. */
static u32 await_tail(struct trial *trial)
{
	u32 word, waited = 0;

	while (!((word = (u32)atomic_read(&trial->lock.val)) >> _Q_TAIL_OFFSET) &&
	       waited < PATIENCE) {
		udelay(1);
		waited += READ_ONCE(trial->arrived);
	}
	return word;
}

static void do_nothing(void *unused)
{
}

/* As probe_waits(), for a waiter on @cpu. */
static bool waits_on(unsigned int cpu, const void __percpu *nodes)
{
	/* Held, with a pending waiter: so the next one must queue. */
	struct trial trial = {.lock.val = ATOMIC_INIT(_Q_LOCKED_VAL | _Q_PENDING_VAL)};
	bool named;

	if (smp_call_function_single(cpu, wait_for, &trial, false))
		return false;
	named = names_node(await_tail(&trial), cpu, nodes);
	smp_store_release(&trial.lock.locked_pending, 0);
	/* Calls are made in order: so this returns when the waiter has left our code and @trial. */
	return !smp_call_function_single(cpu, do_nothing, NULL, true) && named;
}

bool probe_waits(const void __percpu *nodes)
{
	unsigned int cpu;
	bool waits = false;

	cpus_read_lock();
	/*
	 * The waiter may have interrupted the holder of a lock. Nothing that could wait for that
	 * lock may run on this CPU before the waiter has left: no other task, and no softirq.
	 */
	local_bh_disable();
	cpu = cpumask_any_but(cpu_online_mask, smp_processor_id());
	if (cpu >= nr_cpu_ids)
		pr_err("a machine with one CPU has no order of waiters\n");
	else
		waits = waits_on(cpu, nodes);
	local_bh_enable();
	cpus_read_unlock();
	if (cpu < nr_cpu_ids && !waits)
		pr_err("waiters do not queue as in the native spin lock of Linux 6.1\n");
	return waits;
}
