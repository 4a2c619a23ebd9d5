/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * All that depends on the kernel's version; the rest of the kernel's side is the same for all. Supported: 6.1 and later, on
 * 64-bit machines whose cmpxchg has a try form of each order.
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

/* The weight of @task's nice value, 1,024 for 0; that of 0 for a task of another class than the fair one. */
static inline u32 w_task_weight(const struct task_struct *task)
{
	u32 weight = (u32)(READ_ONCE(task->se.load.weight) >> SCHED_FIXEDPOINT_SHIFT);

	return weight ? weight : 1u << SCHED_FIXEDPOINT_SHIFT;
}

#endif
