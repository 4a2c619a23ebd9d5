// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Refused: a helper that takes the lock of a hash map's bucket. */
#include "pound_policy.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u32);
} map SEC(".maps");

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	__u32 cpu = waiter->cpu;

	bpf_map_update_elem(&map, &cpu, &cpu, BPF_ANY);
	return 0;
}

POLICY(locking);
