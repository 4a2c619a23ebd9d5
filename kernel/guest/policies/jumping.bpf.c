// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Refused: may_goto, as clang has none yet, by its bytes. */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	asm volatile(".byte 0xe5, 0, 0, 0, 0, 0, 0, 0");
	return 0;
}

POLICY(jumping);
