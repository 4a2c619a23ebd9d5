/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Malthusian lock (MCSCR): MCS that restricts the number of threads that circulate over the lock.
 * Waiters beyond those that keep it busy are set aside, where they cost no CPU, cache or hand-over.
 *
 * From: Dice, "Malthusian locks", EuroSys'17, section 5 (MCSCR).
 *
 * Order: few waiters circulate, the others are set aside; the eldest of those returns periodically.
 *
 * Promise: mutual exclusion; no order in the short run. A waiter set aside when p others were is
 * bypassed by at most (p + 1) * (`patience` + 1) hand-overs, since the eldest gets the lock after
 * each `patience` of them; a waiter in the main queue is overtaken by at most one of the passive
 * set per `patience`. The lock is never free while a thread waits. Waiters sleep under wait=park. 8
 * bytes per lock; one node per waiter and per holder. Atomic read-modify-writes: as MCS.
 *
 *   tail ─────────────────────────────────────┐
 *                                             ▼
 *   [holder] ─next─▶ [waiter] ─ ... ─next─▶ [waiter]                  circulating
 *      │ │
 *      │ └─passive─▶ [youngest] ─next─▶ ... ─next─▶ [eldest]          set aside; `younger` of each
 *      └───eldest────────────────────────────────────▲                points to the one before it
 *
 *   tail   holder's next   passive   release
 *   NULL   -               -         (free)
 *   n      NULL            NULL      the lock becomes free
 *   n      NULL            p         p, the youngest, returns and gets the lock: no other waiter
 *   n      m, not the last any       m is set aside; the waiter behind it gets the lock
 *   n      m, the last     any       m gets the lock
 *   n      any             p, left 0 the eldest returns and gets the lock
 *
 * Only the holder accesses passive, eldest and left, in its own node and in its successor's, and
 * the links of nodes that are set aside. The grant transfers this right.
 *
 * Departures from the paper: the paper's passive set is in the lock; here it travels from holder to
 * holder, like CNA's secondary queue (cna.h), so that the lock is one word and costs no more than
 * MCS when idle. The paper gives the lock to the eldest at random, once in 1,000 times; here
 * hand-overs are counted, so that the bound is exact. A waiter may yield, sleep on its node, or
 * leave at a deadline (part/wait.h).
 */
#ifndef POUNDLOCK_MALTHUSIAN_H
#define POUNDLOCK_MALTHUSIAN_H

#include "part/mcs_queue.h"

struct malthusian_node {
	/* `left` is the number of hand-overs until the eldest of the passive set gets the lock */
	struct mcs_node mcs;
	struct malthusian_node *younger; /* in the passive set: the node whose next we are */
	struct malthusian_node *passive; /* the youngest of the passive set */
	struct malthusian_node *eldest;
};

struct malthusian {
	mcs_tail tail;
};

struct malthusian_policy {
	enum wait wait;
	uint32_t patience; /* hand-overs between two returns of the eldest waiter set aside */
};

#define malthusian_settings(S) S(malthusian, patience, 1000, 1, UINT32_MAX - 1)
#define malthusian_bytes \
	sizeof(struct malthusian), sizeof(struct malthusian_node), sizeof(struct malthusian_node)

static inline struct malthusian_node *malthusian_node_of(struct mcs_node *mcs)
{
	return (struct malthusian_node *)mcs;
}

static inline void malthusian_node_init(struct mcs_node *mcs)
{
	struct malthusian_node *node = malthusian_node_of(mcs);

	mcs->left = 0;
	node->passive = NULL;
	node->eldest = NULL;
	mcs_node_init(mcs);
}

/* Takes @lock if it is free. */
static inline bool malthusian_try_acquire(struct malthusian *lock, struct malthusian_node *node)
{
	return mcs_queue_try_enter(&lock->tail, &node->mcs, malthusian_node_init);
}

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 */
static inline bool malthusian_acquire(struct malthusian *lock, struct malthusian_node *node,
				      struct malthusian_policy policy,
				      const struct w_deadline *deadline)
{
	struct mcs_node *previous;

	if (wait_polls(policy.wait, deadline))
		return mcs_queue_poll(&lock->tail, &node->mcs, malthusian_node_init, deadline);
	malthusian_node_init(&node->mcs);
	previous = mcs_queue_enter(&lock->tail, &node->mcs);
	if (!previous)
		return true;
	mcs_queue_link(previous, &node->mcs);
	return node_wait(&node->mcs.status, policy.wait, deadline);
}

/* ---- The passive set; holder only ---- */

/* Adds @waiter, which is out of the main queue, to @node's passive set. */
static inline void malthusian_cull(struct malthusian_node *node, struct malthusian_node *waiter,
				   uint32_t patience)
{
	w_event(cull);
	/* relaxed: only holders walk these links, and the grant or [MALTHUSIAN-1] orders them */
	w_store_relaxed(&waiter->mcs.next, node->passive ? &node->passive->mcs : NULL);
	waiter->younger = NULL;
	if (node->passive) {
		node->passive->younger = waiter;
	} else {
		node->eldest = waiter;
		node->mcs.left = patience;
	}
	node->passive = waiter;
}

/* Removes and returns the youngest of @node's passive set. */
static inline struct malthusian_node *malthusian_take_youngest(struct malthusian_node *node)
{
	struct malthusian_node *youngest = node->passive;

	w_event(revive);
	node->mcs.left--;
	/* relaxed: as in malthusian_cull() */
	node->passive = malthusian_node_of(w_load_relaxed(&youngest->mcs.next));
	if (node->passive)
		node->passive->younger = NULL;
	else
		node->eldest = NULL;
	return youngest;
}

/* Removes and returns the eldest of @node's passive set. */
static inline struct malthusian_node *malthusian_take_eldest(struct malthusian_node *node,
							     uint32_t patience)
{
	struct malthusian_node *eldest = node->eldest;

	w_event(revive_eldest);
	node->mcs.left = patience;
	node->eldest = eldest->younger;
	if (node->eldest)
		/* relaxed: as in malthusian_cull() */
		w_store_relaxed(&node->eldest->mcs.next, NULL);
	else
		node->passive = NULL;
	return eldest;
}

/* ---- Release ---- */

/*
 * Inserts @waiter, of the passive set, behind @node. @next: @node's next in the queue, as last
 * read.
 */
static inline void malthusian_graft(struct malthusian *lock, struct malthusian_node *node,
				    struct malthusian_node *waiter, struct mcs_node *next,
				    enum wait wait)
{
	struct mcs_node *last = &node->mcs;

	/*
	 * relaxed: published by [MALTHUSIAN-1] to the arrival that overwrites it, or by the grant
	 * to its waiter
	 */
	w_store_relaxed(&waiter->mcs.next, next);
	/*
	 * [MALTHUSIAN-1] release: pairs with [MCS_QUEUE-3]; the queue's last link, which the next
	 * arrival overwrites
	 */
	if (next || w_compare_exchange_release(&lock->tail, &last, &waiter->mcs))
		return;
	/* relaxed: as above */
	w_store_relaxed(&waiter->mcs.next, mcs_queue_await_next(&node->mcs, wait));
}

/*
 * Returns @node's successor, which is then right behind it, or NULL: nobody waits, and @lock is
 * free.
 */
static inline struct malthusian_node *malthusian_choose(struct malthusian *lock,
							struct malthusian_node *node,
							struct malthusian_policy policy)
{
	struct mcs_node *next = mcs_queue_next(&node->mcs), *second;
	struct malthusian_node *back;

	if (node->passive && (!next || !node->mcs.left)) {
		back = node->mcs.left ? malthusian_take_youngest(node)
				      : malthusian_take_eldest(node, policy.patience);
		malthusian_graft(lock, node, back, next, policy.wait);
		return back;
	}
	if (!next) {
		if (mcs_queue_leave(&lock->tail, &node->mcs))
			return NULL;
		next = mcs_queue_await_next(&node->mcs, policy.wait);
	}
	if (node->passive)
		node->mcs.left--;
	second = mcs_queue_next(next);
	if (!second)
		return malthusian_node_of(next);
	malthusian_cull(node, malthusian_node_of(next), policy.patience);
	return malthusian_node_of(second);
}

/* Grants @lock to a waiter that has not left, if there is one. */
static W_SLOW void malthusian_hand_over(struct malthusian *lock, struct malthusian_node *node,
					struct malthusian_policy policy)
{
	struct malthusian_node *successor;
	bool granted;

	do {
		successor = malthusian_choose(lock, node, policy);
		if (!successor)
			return;
		successor->passive = node->passive;
		successor->eldest = node->eldest;
		successor->mcs.left = node->mcs.left;
		granted = node_grant(&successor->mcs.status, policy.wait);
		node_free(&node->mcs.status);
		node = successor;
	} while (!granted);
}

/* Releases @lock, held with @node. */
static inline void malthusian_release(struct malthusian *lock, struct malthusian_node *node,
				      struct malthusian_policy policy)
{
	/* relaxed: malthusian_hand_over() reads it again */
	if (w_unlikely(node->passive || w_load_relaxed(&node->mcs.next) ||
		       !mcs_queue_leave(&lock->tail, &node->mcs)))
		malthusian_hand_over(lock, node, policy);
}

/* In a forked child, discards all waiters of @node, which holds @lock. */
static inline void malthusian_drop_waiters(struct malthusian *lock, struct malthusian_node *node)
{
	node->passive = NULL;
	node->eldest = NULL;
	mcs_queue_drop_waiters(&lock->tail, &node->mcs);
}

#endif
