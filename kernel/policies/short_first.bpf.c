// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Tasks whose recent holds of the mutex were shorter come first, by powers of two; those of which
 * no hold is known before all others. Other locks do not measure their holds: their waiters keep
 * the order in which they came.
 */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	__u32 held = waiter->held, bits;

	for (bits = 0; bits < 32 && held; bits++)
		held >>= 1;
	return bits;
}

POLICY(short_first, .measures = 1);
