/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What CFL knows of a lock that has no room for it (core/cfl/cfl_order.h): one of LEDGERS ledgers of the file that includes this, by
 * the lock's address. Locks that share one are as one in what has been held, and by whom.
 */
#ifndef POUNDLOCK_KERNEL_LEDGERS_H
#define POUNDLOCK_KERNEL_LEDGERS_H

#include <linux/cache.h>
#include <linux/hash.h>

#include "cfl/cfl_order.h"

#define LEDGER_BITS 8
#define LEDGERS (1u << LEDGER_BITS)

static struct {
	struct cfl_ledger ledger;
} ____cacheline_aligned ledgers[LEDGERS];

/* Which of them is @lock's. */
static inline u32 ledger_of(const struct cfl *lock)
{
	return hash_ptr(lock, LEDGER_BITS);
}

static inline struct cfl_ledger *cfl_ledger(struct cfl *lock)
{
	return &ledgers[ledger_of(lock)].ledger;
}

#endif
