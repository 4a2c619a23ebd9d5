// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Tasks whose recent holds of the mutex were shorter come first, to within 16 us; those of which no
 * hold is known before all others. Other locks do not measure their holds: their waiters keep the
 * order in which they came.
 */
#include "pound_policy.bpf.h"

SEC("struct_ops/rank")
__u32 BPF_PROG(rank, struct pound_waiter *waiter)
{
	return waiter->held >> 14;
}

POLICY(short_first, .measures = 1);
