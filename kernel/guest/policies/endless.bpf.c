// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Refused: a loop that nothing ends. */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	volatile __u32 zero = 0;

	while (!zero)
		;
	return zero;
}

POLICY(endless);
