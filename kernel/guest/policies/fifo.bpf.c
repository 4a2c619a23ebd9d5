// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Refused: the name of one of the kernel's policies. */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	return 0;
}

POLICY(fifo);
