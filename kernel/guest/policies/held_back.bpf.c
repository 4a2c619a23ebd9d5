// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Stopped by the kernel: the waiters of CPU 6 come last, for longer than it admits. */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	return waiter->cpu == 6 ? LAST : 0;
}

POLICY(held_back, .timeout_ms = 500);
