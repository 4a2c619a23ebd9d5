// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Stopped by the kernel: each call takes longer than it admits. */
#include "pound_policy.bpf.h"

#define ROUNDS 20000

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	volatile __u32 count = 0;
	__u32 i;

	for (i = 0; i < ROUNDS; i++)
		count++;
	return count;
}

POLICY(slow, .limit_us = 1);
