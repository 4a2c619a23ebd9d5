/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CST: cohort scheduling. Two levels of queues, as in HMCS; but within a domain the lock goes to an
 * awake waiter, past those that sleep, so that a hand-over does not wait for a wake-up.
 *
 * From: Kashyap, Min and Kim, "Scalable NUMA-aware blocking synchronization primitives", USENIX
 * ATC'17: its mutex.
 *
 * Order: awake waiters of a domain first, in bounded batches; FIFO between domains.
 *
 * Promise: mutual exclusion; within a domain, first come, first served among awake waiters. After
 * each `batch` hand-overs past sleepers, the one that has slept longest is served, and the sleepers
 * are then before all others again. Domains as in hmcs.h. Waiters sleep under wait=park; otherwise
 * this is HMCS. Bytes and atomic read-modify-writes: as hmcs.h, under wait=park also within a
 * batch.
 *
 *   root    tail ──▶ ...                          as hmcs.h
 *   leaf    tail ──────────────────────────┐
 *                                          ▼
 *           [holder] ─next─▶ ... ─next─▶ [waiter]
 *           asleep ─first─▶ [sleeper] ─ ... ─next─▶ [sleeper] ─next─▶ NULL   arrived earlier
 *                                                       ▲─last─ asleep
 *
 *   tail of leaf   holder's next   asleep.first   release
 *   h              NULL            NULL           nobody waits: the leaf becomes free
 *   h              NULL            s              the sleepers become the queue, in their order
 *   n              m               any            m, or the first awake waiter behind it, is next;
 *                                                 those before it join the sleepers
 *   n              m               s, left == 0   the sleepers return before m; their first is next
 *
 * `asleep` belongs to the first of the leaf's queue, as do owns and passed.
 *
 * Departures from the paper:
 *  - The tree, trylock and the order of a release are those of hmcs.h, which this lock shares.
 *  - The paper allocates a domain's structure when the domain first meets the lock. Here all of
 *    them are in the lock's box, zeroed: a lock path allocates nothing.
 *  - The paper's waiters join the parking list on their own when their time slice ends, and queue
 *    again when they are woken. Here a sleeper stays where it is, and the holder moves those that
 *    it bypasses from the queue to the domain's list of sleepers. So nobody else accesses that
 *    list, and a sleeper keeps its place among the sleepers.
 *  - A waiter sleeps after a bounded spin, because only the kernel knows its time slice. Sleepers
 *    are woken one by one, each with the lock: at the latest after `batch` hand-overs past them.
 *    The paper wakes several ahead of their turn.
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
	uint32_t batch; /* consecutive hand-overs within one domain, and past its sleepers */
};

#define cst_settings(S) S(cst, batch, 128, 1, UINT32_MAX)
#define cst_bytes hmcs_bytes

/* Two levels: the leaves and the root. */
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

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 */
static inline bool cst_acquire(struct cst *lock, struct cst_node *node, struct cst_policy policy,
			       const struct w_deadline *deadline)
{
	return hmcs_acquire(&lock->tree, &node->tree,
			    (struct hmcs_policy){policy.wait, policy.batch, 2}, deadline);
}

/* Moves @waiter, the first of the queue, to the end of @leaf's sleepers. */
static inline void cst_set_aside(struct hmcs_place *leaf, struct mcs_node *waiter, uint32_t batch)
{
	w_event(set_aside);
	/*
	 * relaxed, both: only the first of the queue walks these links, and the grant or [CST-1]
	 * orders them
	 */
	w_store_relaxed(&waiter->next, NULL);
	if (leaf->asleep.first)
		w_store_relaxed(&leaf->asleep.last->next, waiter);
	else
		leaf->asleep.first = waiter;
	leaf->asleep.last = waiter;
	if (leaf->asleep.first == waiter)
		leaf->asleep.left = batch;
}

/* Puts @leaf's sleepers before @next, the first of the queue. Returns the new first. */
static inline struct mcs_node *cst_put_back(struct hmcs_place *leaf, struct mcs_node *next)
{
	struct mcs_node *first = leaf->asleep.first;

	if (!first)
		return next;
	/* relaxed: as in cst_set_aside() */
	w_store_relaxed(&leaf->asleep.last->next, next);
	leaf->asleep.first = NULL;
	return first;
}

/*
 * Makes the sleepers @leaf's queue if nobody is behind @node there. Returns their first, or NULL.
 */
static inline struct mcs_node *cst_replace(struct hmcs_place *leaf, struct mcs_node *node)
{
	struct mcs_node *last = node, *first = leaf->asleep.first;

	/*
	 * [CST-1] release: pairs with [MCS_QUEUE-3]; the last sleeper's link, which the next
	 * arrival overwrites
	 */
	if (!w_compare_exchange_release(&leaf->queue.tail, &last, leaf->asleep.last))
		return NULL;
	leaf->asleep.first = NULL;
	return first;
}

/*
 * Grants @leaf's queue to the first awake waiter from @next on, past the sleepers, and returns
 * NULL. If there is none, returns the first of the queue, with the sleepers put back.
 */
static inline struct mcs_node *cst_find_awake(struct hmcs_place *leaf, struct mcs_node *next,
					      uint32_t batch)
{
	struct mcs_node *after;

	while (!leaf->asleep.first || leaf->asleep.left) {
		/* Once the grant succeeds, the leaf belongs to another thread. */
		leaf->asleep.left--;
		if (node_grant_awake(&next->status))
			return NULL;
		leaf->asleep.left++;
		after = mcs_queue_next(next);
		if (!after)
			break;
		cst_set_aside(leaf, next, batch);
		next = after;
	}
	return cst_put_back(leaf, next);
}

/* Grants @leaf's queue, whose first has @node, to another waiter. */
static W_SLOW void cst_hand_over(struct hmcs_place *leaf, struct mcs_node *node, uint32_t batch)
{
	struct mcs_node *first = NULL, *next;

	/* relaxed: only whether there is a successor; mcs_queue_await_next() reads which */
	if (!w_load_relaxed(&node->next))
		first = cst_replace(leaf, node);
	if (!first) {
		next = mcs_queue_await_next(node, WAIT_PARK);
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

/*
 * In a forked child, discards all waiters of @lock, which is held with @node: their threads exist
 * only in the parent.
 */
static inline void cst_drop_waiters(struct cst *lock, struct cst_node *node)
{
	hmcs_drop_waiters(&lock->tree, &node->tree);
}

#endif
