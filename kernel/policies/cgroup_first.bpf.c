// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Tasks of cgroups with a greater cpu.weight come first.
 */
#include "pound_policy.bpf.h"

struct task_group {
	unsigned long shares;
} KERNELS;

struct task_struct {
	struct task_group *sched_task_group;
} KERNELS;

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	struct task_struct *task = bpf_get_current_task_btf();
	/* In the unit of weights; the kernel's has 10 more bits. */
	unsigned long weight = task->sched_task_group->shares >> 10;

	return weight < LAST ? LAST - weight : 0;
}

POLICY(cgroup_first);
