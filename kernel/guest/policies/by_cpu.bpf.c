// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Waiters of lower CPUs come first. */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	return waiter->cpu;
}

POLICY(by_cpu);
