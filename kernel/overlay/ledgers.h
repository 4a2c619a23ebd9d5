/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CFL's data about locks that have no room for it (core/cfl/order.h): one of LEDGERS ledgers of
 * the including file, by the lock's address. Locks that share a ledger share its times.
 */
#ifndef POUNDLOCK_KERNEL_LEDGERS_H
#define POUNDLOCK_KERNEL_LEDGERS_H

#include <linux/cache.h>
#include <linux/hash.h>

#include "cfl/order.h"

#define LEDGER_BITS 8
#define LEDGERS (1u << LEDGER_BITS)

static struct {
	struct cfl_ledger ledger;
} ____cacheline_aligned ledgers[LEDGERS];

/* The ledger of @lock. */
static inline u32 ledger_of(const struct cfl *lock)
{
	return hash_ptr(lock, LEDGER_BITS);
}

static inline struct cfl_ledger *cfl_ledger(struct cfl *lock)
{
	return &ledgers[ledger_of(lock)].ledger;
}

#endif
