/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sizes that world/README.md leaves to the worlds, as world/user and the simulator (world/sim)
 * choose them.
 */
#ifndef POUNDLOCK_SIZES_H
#define POUNDLOCK_SIZES_H

#include <stdint.h>

/* Waiters' nodes of a thread. */
#define W_NODES 8
/* Accounts of a thread. */
#define W_ACCOUNTS 8
#define W_GROUPS 64
#define W_QUEUE_NODES 64u
#define W_VISIBLE 4096u
#define W_SLOTS 4096

/* Index of w_slot(@number). Spread, so that consecutive numbers lie on different cache lines. */
static inline uint32_t w_slot_index(uint64_t number)
{
	return (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) / (UINT64_MAX / W_SLOTS + 1));
}

#endif
