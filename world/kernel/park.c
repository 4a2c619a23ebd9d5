// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Sleeping, for locks of tasks: the parts that only the kernel has. sleepers.h has the others.
 */
#include <linux/cred.h>
#include <linux/gfp.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/sched/debug.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

/* ---- Users of `current`, which the world undefines ---- */

static void prepare_to_sleep(unsigned int state)
{
	set_current_state(state);
}

#ifndef MODULE
/* Namespaces of users have numbers from here on. */
#define NAMESPACE_USERS (1ull << 32)

/*
 * The user whose nodes the current task's waits use. Not the user whose rights it has for a moment,
 * as in a file system. In a user namespace that is the owner of the outermost one, whatever numbers
 * its tasks have; or the namespace itself, if its owner is root.
 */
static u64 node_user(void)
{
	const struct cred *cred = current_real_cred();
	const struct user_namespace *users = cred->user_ns;

	if (users == &init_user_ns)
		return __kuid_val(cred->uid);
	while (users->parent != &init_user_ns)
		users = users->parent;
	return uid_eq(users->owner, GLOBAL_ROOT_UID) ? NAMESPACE_USERS + users->ns.inum
						     : __kuid_val(users->owner);
}
#endif

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

/* ---- Nodes of waiters that may leave: nodes.h ---- */

#ifdef MODULE
static void nodes_start(void)
{
}
#else
/* A chunk is 4 KiB. A user has at most 567 nodes. */
#define CHUNK_NODES 63u
#define MOST_CHUNKS 9u

#include "nodes.h"

static_assert(sizeof(struct node_chunk) <= PAGE_SIZE);

/* Root has a list of its own, and all of its chunks from the start. */
#define LIST_BITS 4
#define LISTS (1 + (1u << LIST_BITS))

static struct node_list node_lists[LISTS];
static struct node_chunk first_chunks[MOST_CHUNKS - 1 + LISTS];

static struct node_list *node_list_of(u64 user)
{
	return &node_lists[user ? 1 + hash_64(user, LIST_BITS) : 0];
}

/*
 * Not from the reserves of tasks that free memory. The allocator takes no lock whose waiters sleep
 * unless it may sleep itself.
 */
static struct node_chunk *new_chunk(void)
{
	return (void *)__get_free_page(GFP_ATOMIC | __GFP_ZERO | __GFP_NOWARN | __GFP_NOMEMALLOC);
}

/* May be called again, while there is only one task. */
static void nodes_start(void)
{
	u32 i;

	for (i = 0; i < LISTS; i++) {
		spin_lock_init(&node_lists[i].lock);
		node_lists[i].first = NULL;
		node_lists[i].chunks = 0;
	}
	for (i = 0; i < ARRAY_SIZE(first_chunks); i++) {
		u32 list = i < MOST_CHUNKS ? 0 : i - MOST_CHUNKS + 1;

		chunk_add(&node_lists[list], &first_chunks[i], list ? NOBODY : 0);
	}
}
#endif

#include "sleepers.h"
