// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Accounts of tasks, for locks whose waiters sleep: what a task knows of its use of locks goes with it from CPU to CPU. The
 * kernel's task has no room for that, so it is in a table, by the task's pid: a task has a block of accounts, which is its own
 * until it ends, and which only it reads and writes. A block's owner is referred to, so that no other has its address.
 *
 * Where a task can have no block, since those it could have are all in use, it begins anew each time.
 */
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define W_SLEEPS
#include "accounts.h"
#include "world.h"

#define SET_BITS 8
#define WAYS 8

struct block {
	struct pid *owner; /* NULL: nobody's */
	u32 uses;
	struct w_account accounts[W_ACCOUNTS];
};

static struct block (*table)[WAYS]; /* a set for each hash of an owner. NULL: there is no memory for it, or not yet */
static DEFINE_RAW_SPINLOCK(claiming);
static DEFINE_PER_CPU(struct w_account, blank);

void w_accounts_start(void)
{
	struct block(*made)[WAYS] = kvcalloc(1u << SET_BITS, sizeof(*made), GFP_KERNEL);

	if (!made)
		pr_err("poundlock: no memory for accounts of tasks\n");
	/* release: pairs with the dependency of w_account(); that they are all zero */
	smp_store_release(&table, made);
}

void w_accounts_end(void)
{
	kvfree(table);
}

/* Whether @block is nobody's, or of a task that has ended. */
static bool is_free(const struct block *block)
{
	return !block->owner || hlist_empty(&block->owner->tasks[PIDTYPE_PID]);
}

/* Makes a block of @set that is free @me's: NULL if none is. */
static struct block *claim(struct block *set, struct pid *me)
{
	struct block *found = NULL;
	struct pid *before = NULL;
	unsigned long flags;
	u32 i;

	raw_spin_lock_irqsave(&claiming, flags);
	for (i = 0; i < WAYS && !found; i++)
		if (is_free(&set[i]))
			found = &set[i];
	if (found) {
		before = found->owner;
		memset(found->accounts, 0, sizeof(found->accounts));
		WRITE_ONCE(found->owner, get_pid(me));
	}
	raw_spin_unlock_irqrestore(&claiming, flags);
	put_pid(before);
	return found;
}

/* The block of @me in @set, NULL if it can have none. Nobody else makes it another's. */
static struct block *block_of(struct block *set, struct pid *me)
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
	/* None is that of a task that has all but ended. */
	struct pid *me = task_pid(get_current());
	struct w_account *account;

	if (likely(all && me))
		block = block_of(all[hash_ptr(me, SET_BITS)], me);
	if (likely(block))
		return w_account_among(block->accounts, lock, ++block->uses);
	account = this_cpu_ptr(&blank);
	*account = (struct w_account){};
	return account;
}
