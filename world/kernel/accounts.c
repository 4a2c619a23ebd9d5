// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Accounts of tasks, for locks whose waiters sleep: a task's use of locks follows it from CPU to
 * CPU. The kernel's task has no room for them, so they are in a table, by the task's pid. A task
 * owns a block of accounts until it ends, and only that task accesses it: no two tasks have the
 * same pid at a time. A task that gets the pid of an owner that has ended owns that block, but not
 * the accounts in it, which are found by the address of their task as well.
 *
 * A task for which there is no free block starts with a new account each time.
 */
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define W_SLEEPS
#include "accounts.h"
#include "world.h"

#define SET_BITS 8
#define WAYS 8

struct block {
	pid_t owner; /* 0: free */
	u32 uses;
	struct w_account accounts[W_ACCOUNTS];
};

/* A set of blocks for each hash of an owner. NULL: no memory for it, or not yet. */
static struct block (*table)[WAYS];
static DEFINE_RAW_SPINLOCK(claiming);
static DEFINE_PER_CPU(struct w_account, blank);

void w_accounts_start(void)
{
	struct block(*made)[WAYS];

	if (READ_ONCE(table))
		return;
	made = kvcalloc(1u << SET_BITS, sizeof(*made), GFP_KERNEL);
	if (!made)
		pr_err("poundlock: no memory for accounts of tasks\n");
	/* release: pairs with the dependency of w_account(); the zeroed table */
	smp_store_release(&table, made);
}

void w_accounts_end(void)
{
	kvfree(table);
}

/* Returns whether @block is free, or of a task that has ended. Called by a reader of RCU. */
static bool is_free(const struct block *block)
{
	return !block->owner || !pid_task(find_pid_ns(block->owner, &init_pid_ns), PIDTYPE_PID);
}

/* Gives a free block of @set to @me. Returns NULL if there is none. */
static struct block *claim(struct block *set, pid_t me)
{
	struct block *found = NULL;
	unsigned long flags;
	u32 i;

	rcu_read_lock();
	raw_spin_lock_irqsave(&claiming, flags);
	for (i = 0; i < WAYS && !found; i++)
		if (is_free(&set[i]))
			found = &set[i];
	if (found) {
		memset(found->accounts, 0, sizeof(found->accounts));
		WRITE_ONCE(found->owner, me);
	}
	raw_spin_unlock_irqrestore(&claiming, flags);
	rcu_read_unlock();
	return found;
}

/* The block of @me in @set, or NULL if there is none for it. No other task takes it away. */
static struct block *block_of(struct block *set, pid_t me)
{
	u32 i;

	for (i = 0; i < WAYS; i++)
		if (READ_ONCE(set[i].owner) == me)
			return &set[i];
	return claim(set, me);
}

struct w_account *w_account(const void *lock)
{
	struct block(*all)[WAYS] = READ_ONCE(table), *block = NULL;
	/* 0 for a task that has almost ended, whose pid others may get. */
	pid_t me = pid_alive(get_current()) ? get_current()->pid : 0;
	struct w_account *account;

	if (likely(all && me))
		block = block_of(all[hash_32((u32)me, SET_BITS)], me);
	if (likely(block))
		return w_account_among(block->accounts, lock, ++block->uses);
	account = this_cpu_ptr(&blank);
	*account = (struct w_account){};
	return account;
}
