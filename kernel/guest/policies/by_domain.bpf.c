// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Waiters of one domain follow one another, as under numa. */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	return waiter->domain;
}

POLICY(by_domain, .together = 1);
