// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The virtual CPUs of QEMU's machines come first, before all other tasks: those whose name is "CPU
 * N/KVM", as libvirt has them named.
 */
#include "pound_policy.bpf.h"

#define LENGTH 16

struct task_struct {
	char comm[LENGTH];
} KERNELS;

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	struct task_struct *task = bpf_get_current_task_btf();
	int i;

	if (task->comm[0] != 'C' || task->comm[1] != 'P' || task->comm[2] != 'U' ||
	    task->comm[3] != ' ')
		return 1;
#pragma unroll
	for (i = 4; i < LENGTH - 3; i++)
		if (task->comm[i] == '/')
			return task->comm[i + 1] != 'K' || task->comm[i + 2] != 'V' ||
			       task->comm[i + 3] != 'M';
	return 1;
}

POLICY(vcpu_first);
