// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Sleeping, for locks of tasks: the parts that only the kernel has. sleepers.h has the others.
 */
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/sched/debug.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>

/* ---- Users of `current`, which the world undefines ---- */

static void prepare_to_sleep(unsigned int state)
{
	set_current_state(state);
}

/* Root's share is the first one. Other users may have one together. */
#define NODE_SHARES 16u
#define SHARE_NODES 512u

/* The share of the current task's user. */
static u32 node_share(void)
{
	kuid_t user = current_uid();

	if (uid_eq(user, GLOBAL_ROOT_UID))
		return 0;
	return 1 + hash_32(__kuid_val(user), 32) % (NODE_SHARES - 1);
}

/* Preemption may be off, but not during the sleep. */
static void __sched sleep_for(long ticks)
{
#ifndef MODULE
	bool off = preempt_count();

	if (off)
		sched_preempt_enable_no_resched();
#endif
	(void)schedule_timeout(ticks);
#ifndef MODULE
	if (off)
		preempt_disable();
#endif
}

#define W_SLEEPS
#include "park.h"
#include "world.h"

#define BUCKET_BITS 8

static struct bucket {
	raw_spinlock_t lock;
	struct list_head sleepers; /* in order of arrival */
} ____cacheline_aligned buckets[1 << BUCKET_BITS];

static struct w_node task_nodes[NODE_SHARES * SHARE_NODES];

#include "sleepers.h"
