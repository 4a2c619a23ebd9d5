/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CST: cohort scheduling. Two levels of queues as HMCS; but within a domain the lock goes to a waiter that is awake, past
 * those that sleep, so that a hand-over need not wait for a wake-up.
 *
 * From: Kashyap, Min and Kim, "Scalable NUMA-aware blocking synchronization primitives", USENIX ATC'17: its mutex.
 * Changed, and why:
 *  - The tree, trylock and the order of a release: as hmcs.h, which this lock shares.
 *  - The paper makes a domain's structure when the domain first meets the lock. Here all of them are in the lock's box,
 *    zeroed: a lock path allocates nothing.
 *  - The paper's waiters enter the parking list by themselves when their time slice is over, and queue again when they are
 *    woken. Here a sleeper stays where it is, and the holder takes those that it passes out of the queue, into the domain's
 *    list of sleepers: nobody else has to touch that list, and a sleeper keeps its place among the sleepers.
 *  - A waiter sleeps after a bounded spin, for want of the kernel's knowledge of its time slice. Sleepers are woken one
 *    by one, each with the lock: at the latest after `batch` hand-overs past them.
 *
 * Promises: mutual exclusion; within a domain first come, first served among those awake. Every `batch` hand-overs past
 * sleepers the one that sleeps longest is served, and then the sleepers are before all others again. Domains as in hmcs.h.
 * Blocking under wait=park; under other ways nobody sleeps, and this is HMCS. Bytes and atomic read-modify-writes: as
 * hmcs.h, under wait=park also in a batch.
 *
 *   root    tail ──▶ ...                          as hmcs.h
 *   leaf    tail ──────────────────────────┐
 *                                          ▼
 *           [holder] ─next─▶ ... ─next─▶ [waiter]
 *           asleep ─first─▶ [sleeper] ─ ... ─next─▶ [sleeper] ─next─▶ NULL     came before all in the queue
 *                                                       ▲─last─ asleep
 *
 *   tail of leaf   holder's next   asleep.first   means, on release
 *   h              NULL            NULL           nobody waits: the leaf becomes free
 *   h              NULL            s              the sleepers become the queue, the first of them its first
 *   n              m               any            m, or the first behind it that is awake; those before it go to the list
 *   n              m               s, left == 0   the sleepers come before m, the first of them is next
 *
 * asleep belongs to the first of the leaf's queue, as owns and passed.
 */
#ifndef POUNDLOCK_CST_H
#define POUNDLOCK_CST_H

#include "hmcs.h"

struct cst {
	struct hmcs tree;
};

struct cst_node {
	struct hmcs_node tree;
};

struct cst_policy {
	enum wait wait;
	uint32_t batch; /* how often in a row a domain passes the lock on within itself; and past its sleepers */
};

#define cst_settings(S) S(cst, batch, 128, 1, UINT32_MAX)
#define cst_bytes hmcs_bytes

/* Of two levels: leaves, and the root. */
static inline size_t cst_size(void)
{
	return sizeof(struct cst) + w_domain_count() * sizeof(struct hmcs_place);
}

static inline void cst_init(struct cst *lock, size_t size)
{
	hmcs_init(&lock->tree, size);
}

/* Takes @lock if it is free. */
static inline bool cst_try_acquire(struct cst *lock, struct cst_node *node)
{
	return hmcs_try_acquire(&lock->tree, &node->tree);
}

/* Takes @lock. False, with @node left to its pool, if @deadline (NULL: never) passed first. */
static inline bool cst_acquire(struct cst *lock, struct cst_node *node, struct cst_policy policy,
			       const struct w_deadline *deadline)
{
	return hmcs_acquire(&lock->tree, &node->tree, (struct hmcs_policy){policy.wait, policy.batch, 2}, deadline);
}

/* Takes @waiter out of the queue, whose first it is, to the end of @leaf's sleepers. */
static inline void cst_set_aside(struct hmcs_place *leaf, struct mcs_node *waiter, uint32_t batch)
{
	w_event(set_aside);
	/* relaxed, both: only the first of the queue walks these links, and the grant or [CST-1]
	 * orders them */
	w_store_relaxed(&waiter->next, NULL);
	if (leaf->asleep.first)
		w_store_relaxed(&leaf->asleep.last->next, waiter);
	else
		leaf->asleep.first = waiter;
	leaf->asleep.last = waiter;
	if (leaf->asleep.first == waiter)
		leaf->asleep.left = batch;
}

/* Puts @leaf's sleepers before @next, the first of the queue; who is first then. */
static inline struct mcs_node *cst_put_back(struct hmcs_place *leaf, struct mcs_node *next)
{
	struct mcs_node *first = leaf->asleep.first;

	if (!first)
		return next;
	/* relaxed: as in cst_set_aside */
	w_store_relaxed(&leaf->asleep.last->next, next);
	leaf->asleep.first = NULL;
	return first;
}

/* Makes the sleepers @leaf's queue, if nobody is behind @node there: the first of them, or NULL. */
static inline struct mcs_node *cst_replace(struct hmcs_place *leaf, struct mcs_node *node)
{
	struct mcs_node *last = node, *first = leaf->asleep.first;

	/* [CST-1] release: pairs with [MCS-3]; the last sleeper's link, which the next arrival
	 * overwrites */
	if (!w_compare_exchange_release(&leaf->queue.tail, &last, leaf->asleep.last))
		return NULL;
	leaf->asleep.first = NULL;
	return first;
}

/* Gives @leaf's queue to the first from @next on that is awake, past the sleepers: NULL; else who is first of it now. */
static inline struct mcs_node *cst_find_awake(struct hmcs_place *leaf, struct mcs_node *next, uint32_t batch)
{
	struct mcs_node *after;

	while (!leaf->asleep.first || leaf->asleep.left) {
		/* Once the grant has succeeded the leaf is another's. */
		leaf->asleep.left--;
		if (node_grant_awake(&next->status))
			return NULL;
		leaf->asleep.left++;
		/* [CST-2] acquire: pairs with [MCS-4]; the node there */
		after = w_load_acquire(&next->next);
		if (!after)
			break;
		cst_set_aside(leaf, next, batch);
		next = after;
	}
	return cst_put_back(leaf, next);
}

/* Gives @leaf's queue, whose first has @node, to another waiter. */
static W_SLOW void cst_hand_over(struct hmcs_place *leaf, struct mcs_node *node, uint32_t batch)
{
	struct mcs_node *first = NULL, *next;

	/* relaxed: only whether there is a successor; [CST-3] reads who it is */
	if (!w_load_relaxed(&node->next))
		first = cst_replace(leaf, node);
	if (!first) {
		/* [CST-3] acquire: pairs with [MCS-4]; the successor's node */
		next = w_wait_acquire(&node->next, VAL != NULL, W_YIELD, NULL);
		first = cst_find_awake(leaf, next, batch);
	}
	if (first)
		(void)node_grant(&first->status, WAIT_PARK);
	node_free(&node->status);
}

/* Releases @lock, held with @node. */
static inline void cst_release(struct cst *lock, struct cst_node *node, struct cst_policy policy)
{
	const struct mcs_policy mcs = {policy.wait};
	struct hmcs_place *leaf = node->tree.leaf;
	struct mcs_node *mine = &node->tree.mcs, *up = mine;
	bool behind;

	if (leaf) {
		/* relaxed: a hint, which may miss a newcomer */
		behind = leaf->asleep.first || w_load_relaxed(&mine->next);
		up = hmcs_end_turn(leaf, behind, policy.batch);
		if (!up)
			w_event(handover_local);
		if (policy.wait == WAIT_PARK && behind)
			cst_hand_over(leaf, mine, policy.batch);
		else
			mcs_release(&leaf->queue, mine, mcs);
	}
	if (up)
		mcs_release(&lock->tree.root, up, mcs);
}

/* In a forked child: drops all waiters of @lock, which is held with @node; their threads do not exist here. */
static inline void cst_drop_waiters(struct cst *lock, struct cst_node *node)
{
	hmcs_drop_waiters(&lock->tree, &node->tree);
}

#endif
