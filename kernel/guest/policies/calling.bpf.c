// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Refused: a function of the kernel that is no helper. */
#include "pound_policy.bpf.h"

extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	bpf_rcu_read_lock();
	bpf_rcu_read_unlock();
	return 0;
}

POLICY(calling);
