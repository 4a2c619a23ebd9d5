/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by the clients of the kernel's spin lock with CFL (kernel/overlay/cfl_qspinlock.h): the
 * tasks' accounts, the objects of the ledger, and the threads. The includer defines IS_STILL as in
 * kernel_ledgers.h.
 */
#ifndef POUNDLOCK_CHECK_KERNEL_CFL_H
#define POUNDLOCK_CHECK_KERNEL_CFL_H

#include "kernel_ledgers.h"
#include "kernel_spin.h"

#include "../../kernel/overlay/spin_queues.h"

#define MOST_THREADS 5

/* The tasks' accounts. Others write the last two fields, which only the kernel's world has. */
struct kernel_account {
	const void *lock;
	u64 held, until, since;
	u32 recent;
	W_ATOMIC(u64) billed, billed_at;
} ____cacheline_aligned;

/* The objects behind the CPUs' nodes, each in lines of its own. */
#define ACCOUNTS (KERNEL_PLACES + MOST_THREADS * sizeof(places))
#define AT_holds (ACCOUNTS + MOST_THREADS * sizeof(struct kernel_account))
#define AT_waiting_groups (AT_holds + 128)
#define AT_ledgers (AT_waiting_groups + 64)
#define SHARED_BYTES (AT_ledgers + sizeof(ledgers))

static struct kernel_account *account_of(uint32_t thread)
{
	return (struct kernel_account *)(void *)(CHECK_MEMORY + ACCOUNTS) + thread;
}

static struct kernel_account *kernel_account(const void *lock)
{
	struct kernel_account *account = account_of(check_self());

	check_assert(account->lock == lock);
	return account;
}

#undef w_account
#define w_account kernel_account

#include "../../kernel/overlay/cfl_qspinlock.h"

_Static_assert(sizeof(holds) <= 128 && sizeof(waiting_groups) <= 64, "they have room");

/* ---- Threads ---- */

static void once(uint32_t self)
{
	int seen = 0;

	(void)self;
	if (!atomic_try_cmpxchg_acquire(&M->lock.val, &seen, (int)_Q_LOCKED_VAL))
		cfl_spin_lock_slowpath(&M->lock, (u32)seen);
	enter();
}

static void twice(uint32_t self)
{
	once(self);
	once(self);
}

static void or_try(uint32_t self)
{
	if (self != 1)
		once(self);
	else if (queued_spin_trylock(&M->lock))
		enter();
}

/* The first thread holds the lock at the start. All come twice: the last holder may steal. */
static void held(uint32_t self)
{
	if (self)
		once(self);
	else
		enter();
	once(self);
}

/* ---- Starts and ends ---- */

static void begin(void)
{
	uint32_t thread;

	prepare();
	for (thread = 0; thread < MOST_THREADS; thread++)
		account_of(thread)->lock = &M->lock;
}

static void begin_held(void)
{
	begin();
	M->lock.val.counter = _Q_LOCKED_VAL;
}

/* No node is in use, and no group waits. */
static void finish_free(void)
{
	uint32_t i;

	finish();
	for (i = 0; i < MOST_THREADS; i++)
		check_assert(w_load_relaxed(&per_cpu_ptr(&places[0], i)->cfl.node.status) ==
			     SHFL_FREE);
	for (i = 0; i < CFL_GROUPS; i++)
		check_assert(!atomic_read(&per_ledger(waiting_groups, &M->lock)->waiters[i]));
}

#endif
