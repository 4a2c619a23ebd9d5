// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The module poundlock_hook: orders the waiters of an unmodified kernel's spin locks by NUMA node.
 * An ftrace hook, as live patches use it, replaces the native slow path by that of queue.h, whose
 * waiters share queues with those of stock's. So the module can be loaded and unloaded while locks
 * are in use.
 *
 * Parameters, which can be changed while it is loaded:
 *
 *	threshold=MS  milliseconds after which no later waiter bypasses one (default: 10)
 *	urgent=0|1    1: no later waiter bypasses one that waits in an interrupt handler, with
 *	              interrupts off or at a real-time priority (default)
 *	events        counts since the module was loaded (core/events.def); read-only
 *
 * Loading fails, with a line in the log, where the nodes of stock's queue are not found, where the
 * spin locks are those of a hypervisor, where a live patch has replaced the slow path, and on a
 * machine with one CPU.
 */
#include <linux/ftrace.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#define w_event(name) this_cpu_inc(counts.of[W_EVENT_##name])
#define w_domain() ((int32_t)numa_node_id())
#include "world.h"

#include "probe.h"

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#error "poundlock_hook is tested with Linux 6.1 alone, and refuses later versions"
#endif
#if !defined(CONFIG_X86_64) || !defined(CONFIG_PARAVIRT_SPINLOCKS) || _Q_PENDING_BITS != 8
#error "poundlock_hook needs x86-64, PARAVIRT_SPINLOCKS, and fewer than 16,384 CPUs"
#endif
#ifndef CONFIG_LIVEPATCH
#error "poundlock_hook needs a kernel that can be patched live (LIVEPATCH)"
#endif

/* ---- The queue ---- */

static u32 threshold_time __read_mostly = W_THRESHOLD_TIME(W_THRESHOLD_MS);
bool w_heeds_urgency __read_mostly = true;

struct counts {
	u64 of[W_EVENTS];
};
static DEFINE_PER_CPU_ALIGNED(struct counts, counts);

#define MAX_NODES PROBE_NODES
#define hook_threshold READ_ONCE(threshold_time)
#include "pending.h"
#include "queue.h"

static struct hook_node __percpu *nodes __ro_after_init;

static inline struct hook_node *hook_nodes_of(u32 cpu)
{
	return per_cpu_ptr(nodes, cpu);
}

static_assert(sizeof(struct hook_node) == PROBE_NODE_BYTES);
static_assert(offsetof(struct hook_node, count) == PROBE_COUNT_OFFSET);

/* In place of native_queued_spin_lock_slowpath(). Preemption is off, as there. */
static noinline notrace void hook_slow_path(struct qspinlock *lock, u32 seen)
{
	hook_take(lock, seen);
}

/* ---- The hook ---- */

/* Called at the first instruction of stock's slow path: continues in ours, with its arguments. */
static notrace void hook_redirect(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
				  struct ftrace_regs *registers)
{
	ftrace_instruction_pointer_set(registers, (unsigned long)hook_slow_path);
}

static struct ftrace_ops hook = {
	.func = hook_redirect,
	.flags = FTRACE_OPS_FL_IPMODIFY,
};

static int hook_register(void)
{
	const unsigned long place = (unsigned long)native_queued_spin_lock_slowpath;
	int error = ftrace_set_filter_ip(&hook, place, 0, 0);

	if (!error)
		error = register_ftrace_function(&hook);
	if (error == -EBUSY)
		pr_err("another live patch has replaced the slow path of spin locks\n");
	else if (error)
		pr_err("the slow path of spin locks cannot be hooked: error %d\n", error);
	return error;
}

/*
 * From here on, waiters enter stock's slow path. Those in ours have preemption off, so they have
 * left it when each CPU has switched to another task.
 */
static void hook_unregister(void)
{
	unregister_ftrace_function(&hook);
	synchronize_rcu_tasks_rude();
}

/* Forgets the domains of earlier waiters: from now on, stock's slow path uses the nodes. */
static void forget_domains(void)
{
	unsigned int cpu, i;

	for_each_possible_cpu(cpu) for (i = 0; i < MAX_NODES; i++)
		WRITE_ONCE(hook_nodes_of(cpu)[i].domain, 0);
}

/* ---- Parameters ---- */

static unsigned int threshold = W_THRESHOLD_MS;

static int threshold_set(const char *text, const struct kernel_param *parameter)
{
	int error = param_set_uint_minmax(text, parameter, 1, W_THRESHOLD_MOST);

	if (!error)
		WRITE_ONCE(threshold_time, W_THRESHOLD_TIME(threshold));
	return error;
}

static const struct kernel_param_ops threshold_ops = {
	.set = threshold_set,
	.get = param_get_uint,
};
module_param_cb(threshold, &threshold_ops, &threshold, 0644);
MODULE_PARM_DESC(threshold, "milliseconds after which no later waiter bypasses one");
module_param_named(urgent, w_heeds_urgency, bool, 0644);
MODULE_PARM_DESC(urgent, "whether no later waiter bypasses an urgent one");

static u64 counted(enum w_event event)
{
	u64 sum = 0;
	unsigned int cpu;

	for_each_possible_cpu(cpu) sum += READ_ONCE(per_cpu_ptr(&counts, cpu)->of[event]);
	return sum;
}

static int events_get(char *text, const struct kernel_param *parameter)
{
	static const char *const names[W_EVENTS] = {
#define EVENT(name, meaning) [W_EVENT_##name] = #name,
#include "events.def"
#undef EVENT
	};
	int length = 0;
	unsigned int i;

	for (i = 0; i < W_EVENTS; i++)
		if (counted(i))
			length += sysfs_emit_at(text, length, "%s=%llu\n", names[i], counted(i));
	return length;
}

static const struct kernel_param_ops events_ops = {
	.get = events_get,
};
module_param_cb(events, &events_ops, NULL, 0444);
MODULE_PARM_DESC(events, "counts since the module was loaded");

/* ---- The module ---- */

static int __init hook_start(void)
{
	int error;

	nodes = (struct hook_node __percpu *)probe_nodes();
	if (!nodes)
		return -ENOENT;
	error = hook_register();
	if (error)
		return error;
	if (!probe_waits(nodes) || !counted(W_EVENT_contended)) {
		pr_err("spin locks do not use the slow path that was hooked\n");
		hook_unregister();
		return -ENXIO;
	}
	return 0;
}

static void __exit hook_stop(void)
{
	hook_unregister();
	forget_domains();
}

module_init(hook_start);
module_exit(hook_stop);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Orders the waiters of an unmodified kernel's spin locks by NUMA node");
