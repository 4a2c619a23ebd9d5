/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * First come, first served: each arrival belongs right behind the one before.
 */
#ifndef POUNDLOCK_POLICY_FIFO_H
#define POUNDLOCK_POLICY_FIFO_H

#include <stdint.h>

static inline uint32_t policy_fifo_note(void)
{
	return 0;
}

static inline uint32_t policy_fifo_rank(uint32_t shuffler, uint32_t waiter)
{
	(void)shuffler, (void)waiter;
	return 0;
}

#endif
