// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Stopped by the kernel: waiters wait for longer than it admits. */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	return waiter->cpu;
}

POLICY(late, .timeout_ms = 1);
