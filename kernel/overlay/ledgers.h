/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CFL's data about locks that have no room for it (core/cfl/order.h): one of LEDGERS ledgers of
 * the including file, by the lock's address. Locks that share a ledger share its times.
 */
#ifndef POUNDLOCK_KERNEL_LEDGERS_H
#define POUNDLOCK_KERNEL_LEDGERS_H

#include "cfl/order.h"

#define LEDGER_BITS 8
#define LEDGERS (1u << LEDGER_BITS)

/*
 * An object for each ledger, and that of @lock's. The model checker's client, which has one ledger
 * in its own memory, defines both itself.
 */
#ifndef DEFINE_PER_LEDGER
#define DEFINE_PER_LEDGER(type, name) type name[LEDGERS]
#define per_ledger(name, lock) (&(name)[ledger_of(lock)])
#endif

struct cfl_ledger_lines {
	struct cfl_ledger ledger;
} ____cacheline_aligned;

static DEFINE_PER_LEDGER(struct cfl_ledger_lines, ledgers);

/* The ledger of @lock. */
static inline u32 ledger_of(const struct cfl *lock)
{
	return hash_ptr(lock, LEDGER_BITS);
}

static inline struct cfl_ledger *cfl_ledger(struct cfl *lock)
{
	return &per_ledger(ledgers, lock)->ledger;
}

#endif
