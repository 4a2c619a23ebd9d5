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

#include "part/wait.h"

struct malthusian_node {
	W_ATOMIC(uint32_t) status;
	uint32_t left; /* hand-overs until the eldest of the passive set gets the lock */
	W_ATOMIC(struct malthusian_node *) next;
	struct malthusian_node *younger; /* in the passive set: the node whose next we are */
	struct malthusian_node *passive; /* the youngest of the passive set */
	struct malthusian_node *eldest;
};

struct malthusian {
	W_ATOMIC(struct malthusian_node *) tail;
};

struct malthusian_policy {
	enum wait wait;
	uint32_t patience; /* hand-overs between two returns of the eldest waiter set aside */
};

#define malthusian_settings(S) S(malthusian, patience, 1000, 1, UINT32_MAX - 1)
#define malthusian_bytes \
	sizeof(struct malthusian), sizeof(struct malthusian_node), sizeof(struct malthusian_node)

static inline void malthusian_node_init(struct malthusian_node *node)
{
	node->left = 0;
	node->passive = NULL;
	node->eldest = NULL;
	/* relaxed, both: [MALTHUSIAN-1] or [MALTHUSIAN-3] publishes them */
	w_store_relaxed(&node->status, NODE_WAITING);
	w_store_relaxed(&node->next, NULL);
}

/* NULL -> @node. */
static inline bool malthusian_try_acquire(struct malthusian *lock, struct malthusian_node *node)
{
	struct malthusian_node *seen = NULL;

	/* relaxed: a hint that avoids taking the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->tail))
		return false;
	malthusian_node_init(node);
	/*
	 * [MALTHUSIAN-1] acq_rel: acquire pairs with [MALTHUSIAN-5]; the previous critical section.
	 * Release pairs with [MALTHUSIAN-3]: our node
	 */
	if (w_compare_exchange_acq_rel(&lock->tail, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Polls @lock until the deadline. */
static W_SLOW bool malthusian_poll(struct malthusian *lock, struct malthusian_node *node,
				   const struct w_deadline *deadline)
{
	do {
		if (malthusian_try_acquire(lock, node))
			return true;
		/*
		 * [MALTHUSIAN-2] acquire: pairs with nothing; malthusian_try_acquire() reads the
		 * word again
		 */
		(void)w_wait_acquire(&lock->tail, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 */
static inline bool malthusian_acquire(struct malthusian *lock, struct malthusian_node *node,
				      struct malthusian_policy policy,
				      const struct w_deadline *deadline)
{
	struct malthusian_node *previous;

	if (policy.wait == WAIT_SPIN && deadline)
		return malthusian_poll(lock, node, deadline);
	malthusian_node_init(node);
	/*
	 * [MALTHUSIAN-3] acq_rel: acquire pairs with [MALTHUSIAN-1], [MALTHUSIAN-3]: the
	 * predecessor's node, which we write; and with [MALTHUSIAN-5], [MALTHUSIAN-6]: the previous
	 * critical section, and the end of the queue that it made. Release pairs with
	 * [MALTHUSIAN-3]: our node
	 */
	previous = w_exchange_acq_rel(&lock->tail, node);
	if (!previous)
		return true;
	/*
	 * [MALTHUSIAN-4] release: pairs with [MALTHUSIAN-8], [MALTHUSIAN-10], [MALTHUSIAN-7],
	 * [MALTHUSIAN-9]; our node's fields
	 */
	w_store_release(&previous->next, node);
	return node_wait(&node->status, policy.wait, deadline);
}

/* ---- The passive set; holder only ---- */

/* Adds @waiter, which is out of the main queue, to @node's passive set. */
static inline void malthusian_cull(struct malthusian_node *node, struct malthusian_node *waiter,
				   uint32_t patience)
{
	w_event(cull);
	/* relaxed: only holders walk these links, and the grant or [MALTHUSIAN-6] orders them */
	w_store_relaxed(&waiter->next, node->passive);
	waiter->younger = NULL;
	if (node->passive) {
		node->passive->younger = waiter;
	} else {
		node->eldest = waiter;
		node->left = patience;
	}
	node->passive = waiter;
}

/* Removes and returns the youngest of @node's passive set. */
static inline struct malthusian_node *malthusian_take_youngest(struct malthusian_node *node)
{
	struct malthusian_node *youngest = node->passive;

	w_event(revive);
	node->left--;
	/* relaxed: as in malthusian_cull() */
	node->passive = w_load_relaxed(&youngest->next);
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
	node->left = patience;
	node->eldest = eldest->younger;
	if (node->eldest)
		/* relaxed: as in malthusian_cull() */
		w_store_relaxed(&node->eldest->next, NULL);
	else
		node->passive = NULL;
	return eldest;
}

/* ---- Release ---- */

/* @node -> NULL if nobody is behind @node, which holds @lock, and nobody is set aside. */
static inline bool malthusian_leave(struct malthusian *lock, struct malthusian_node *node)
{
	struct malthusian_node *last = node;

	/* [MALTHUSIAN-5] release: pairs with [MALTHUSIAN-1], [MALTHUSIAN-3]; our critical
	 * section */
	if (!w_compare_exchange_release(&lock->tail, &last, NULL))
		return false;
	node_free(&node->status);
	return true;
}

/*
 * Inserts @waiter, of the passive set, behind @node. @next: @node's next in the queue, as last
 * read.
 */
static inline void malthusian_graft(struct malthusian *lock, struct malthusian_node *node,
				    struct malthusian_node *waiter, struct malthusian_node *next,
				    enum wait wait)
{
	struct malthusian_node *last = node;

	/*
	 * relaxed: published by [MALTHUSIAN-6] to the arrival that overwrites it, or by the grant
	 * to its waiter
	 */
	w_store_relaxed(&waiter->next, next);
	/*
	 * [MALTHUSIAN-6] release: pairs with [MALTHUSIAN-3]; the queue's last link, which the next
	 * arrival overwrites
	 */
	if (next || w_compare_exchange_release(&lock->tail, &last, waiter))
		return;
	/* [MALTHUSIAN-7] acquire: pairs with [MALTHUSIAN-4]; the next waiter's node. relaxed: as
	 * above */
	w_store_relaxed(&waiter->next,
			w_wait_acquire(&node->next, VAL != NULL, wait_soon(wait), NULL));
}

/*
 * Returns @node's successor, which is then right behind it, or NULL: nobody waits, and @lock is
 * free.
 */
static inline struct malthusian_node *malthusian_choose(struct malthusian *lock,
							struct malthusian_node *node,
							struct malthusian_policy policy)
{
	/* [MALTHUSIAN-8] acquire: pairs with [MALTHUSIAN-4]; the successor's node */
	struct malthusian_node *next = w_load_acquire(&node->next), *second, *back;

	if (node->passive && (!next || !node->left)) {
		back = node->left ? malthusian_take_youngest(node)
				  : malthusian_take_eldest(node, policy.patience);
		malthusian_graft(lock, node, back, next, policy.wait);
		return back;
	}
	if (!next) {
		if (malthusian_leave(lock, node))
			return NULL;
		/* [MALTHUSIAN-9] acquire: pairs with [MALTHUSIAN-4], as [MALTHUSIAN-8] */
		next = w_wait_acquire(&node->next, VAL != NULL, wait_soon(policy.wait), NULL);
	}
	if (node->passive)
		node->left--;
	/* [MALTHUSIAN-10] acquire: pairs with [MALTHUSIAN-4]; the node there */
	second = w_load_acquire(&next->next);
	if (!second)
		return next;
	malthusian_cull(node, next, policy.patience);
	return second;
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
		successor->left = node->left;
		granted = node_grant(&successor->status, policy.wait);
		node_free(&node->status);
		node = successor;
	} while (!granted);
}

/* Releases @lock, held with @node. */
static inline void malthusian_release(struct malthusian *lock, struct malthusian_node *node,
				      struct malthusian_policy policy)
{
	/* relaxed: malthusian_hand_over() reads it again */
	if (w_unlikely(node->passive || w_load_relaxed(&node->next) ||
		       !malthusian_leave(lock, node)))
		malthusian_hand_over(lock, node, policy);
}

/*
 * In a forked child, discards all waiters of @node, which holds @lock: their threads exist only in
 * the parent.
 */
static inline void malthusian_drop_waiters(struct malthusian *lock, struct malthusian_node *node)
{
	node->passive = NULL;
	node->eldest = NULL;
	/* relaxed, both: one thread repairs; [GENERATION-3] publishes the result */
	w_store_relaxed(&lock->tail, node);
	w_store_relaxed(&node->next, NULL);
}

#endif
