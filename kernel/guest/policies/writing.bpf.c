// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Refused: a change of the kernel's memory. */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	waiter->cpu = 1;
	return 0;
}

POLICY(writing);
