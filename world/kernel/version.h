/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Everything that depends on the kernel's version. Supported: 6.1 and later, on 64-bit machines
 * whose cmpxchg has a try form for each order.
 */
#ifndef POUNDLOCK_WORLD_KERNEL_VERSION_H
#define POUNDLOCK_WORLD_KERNEL_VERSION_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "Poundlock supports Linux 6.1 and later"
#endif

#ifndef CONFIG_64BIT
#error "Poundlock supports 64-bit kernels"
#endif

#include <linux/sched.h>

#define W_NICE_0 1024u

/*
 * A file whose locks share time defines W_SHARES, and gets tasks' groups, which modules cannot
 * read. They are the cgroups of the cpu controller (cpu.weight), and the kernel's autogroups of
 * sessions, which have no number.
 */
#if defined(W_SHARES) && defined(CONFIG_FAIR_GROUP_SCHED)
#include <linux/mmu_context.h> /* which sched.h of 6.12 uses, and does not include */
#include <linux/sched/cputime.h>
#include <../kernel/sched/sched.h>

/*
 * The number of @task's group, small and reused; 0: none. Nothing else of the group is kept, since
 * it may vanish at once. As below, preemption is off, which protects RCU's readers here: the
 * functions of RCU may themselves need a spin lock.
 */
static inline u32 w_task_group(const struct task_struct *task)
{
	int number = READ_ONCE(task->sched_task_group)->css.id;

	return number > 0 ? (u32)number : 0;
}

/* The weight of @task's group among groups; 1,024 for a cpu.weight of 100. */
static inline u32 w_task_group_weight(const struct task_struct *task)
{
	u32 weight = (u32)scale_load_down(READ_ONCE(READ_ONCE(task->sched_task_group)->shares));

	return weight ? weight : W_NICE_0;
}
#else
#define w_task_group(task) ((void)(task), 0u)
#define w_task_group_weight(task) ((void)(task), W_NICE_0)
#endif

/*
 * The weight of @task's nice value; 1,024 for 0, and for tasks of other classes than the fair one.
 */
static inline u32 w_task_weight(const struct task_struct *task)
{
	u32 weight = (u32)(READ_ONCE(task->se.load.weight) >> SCHED_FIXEDPOINT_SHIFT);

	return weight ? weight : 1u << SCHED_FIXEDPOINT_SHIFT;
}

#endif
