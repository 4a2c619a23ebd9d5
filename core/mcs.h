/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * MCS: the queue lock that the others are measured against.
 *
 * From: Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory
 * multiprocessors", TOCS'91.
 *
 * Order: FIFO.
 *
 * Promise: mutual exclusion; first come, first served, except for timed waiters under wait=spin,
 * which poll. Waiters sleep under wait=park. 8 bytes per lock; one node per waiter and per holder.
 * Atomic read-modify-writes: 2 uncontended (exchange, compare-exchange), 2 contended (exchange,
 * grant; 1 under wait=spin).
 *
 *   tail ───────────────────────────────┐
 *                                       ▼
 *   [holder] ─next─▶ [waiter] ─next─▶ [waiter] ─next─▶ NULL
 *
 *   tail   next of tail's node   meaning
 *   NULL   -                     free
 *   n      NULL                  n holds the lock or is the last waiter
 *   n      NULL, not reachable   n has entered but is not linked yet: its predecessor waits
 *
 * Departure from the paper: a waiter may yield, sleep on its node, or leave at a deadline: it marks
 * the node ABANDONED, and the holder that reaches the node passes the lock on in its place
 * (part/wait.h). Under wait=spin the hand-over is the paper's plain store, which could not notice
 * that a waiter has left, so timed waiters poll.
 */
#ifndef POUNDLOCK_MCS_H
#define POUNDLOCK_MCS_H

#include "part/wait.h"

struct mcs_node {
	W_ATOMIC(uint32_t) status;
	W_ATOMIC(struct mcs_node *) next;
};

struct mcs {
	W_ATOMIC(struct mcs_node *) tail;
};

struct mcs_policy {
	enum wait wait;
};

#define mcs_settings(S)
#define mcs_bytes sizeof(struct mcs), sizeof(struct mcs_node), sizeof(struct mcs_node)

static inline void mcs_node_init(struct mcs_node *node)
{
	/* relaxed, both: [MCS-1], [MCS-3] or [MCS-4] publishes them */
	w_store_relaxed(&node->status, NODE_WAITING);
	w_store_relaxed(&node->next, NULL);
}

/* NULL -> @node. */
static inline bool mcs_try_acquire(struct mcs *lock, struct mcs_node *node)
{
	struct mcs_node *seen = NULL;

	/* relaxed: a hint that avoids taking the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->tail))
		return false;
	mcs_node_init(node);
	/*
	 * [MCS-1] acq_rel: acquire pairs with [MCS-5]; the previous critical section. Release pairs
	 * with [MCS-3]: our node
	 */
	if (w_compare_exchange_acq_rel(&lock->tail, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Polls @lock until the deadline. */
static W_SLOW bool mcs_poll(struct mcs *lock, struct mcs_node *node,
			    const struct w_deadline *deadline)
{
	do {
		if (mcs_try_acquire(lock, node))
			return true;
		/* [MCS-2] acquire: pairs with nothing; mcs_try_acquire() reads the word again */
		(void)w_wait_acquire(&lock->tail, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/* Enters the queue with @node. Returns true if it was empty: the caller holds @lock. */
static inline bool mcs_enter(struct mcs *lock, struct mcs_node *node)
{
	struct mcs_node *previous;

	mcs_node_init(node);
	/*
	 * [MCS-3] acq_rel: acquire pairs with [MCS-1], [MCS-3]: the predecessor's node, which we
	 * write; and with [MCS-5], [CST-1]: the previous critical section, and the end of the queue
	 * that it made. Release pairs with [MCS-3]: our node
	 */
	previous = w_exchange_acq_rel(&lock->tail, node);
	if (!previous)
		return true;
	/* [MCS-4] release: pairs with [MCS-6], [MCS-7], [CST-2], [CST-3]; our node's fields */
	w_store_release(&previous->next, node);
	return false;
}

/*
 * Takes @lock in order of arrival. Returns false, with @node back in its pool, if @deadline (NULL:
 * none) passes first.
 */
static inline bool mcs_acquire(struct mcs *lock, struct mcs_node *node, struct mcs_policy policy,
			       const struct w_deadline *deadline)
{
	if (policy.wait == WAIT_SPIN && deadline)
		return mcs_poll(lock, node, deadline);
	return mcs_enter(lock, node) || node_wait(&node->status, policy.wait, deadline);
}

/* @node -> NULL if nobody is behind @node, which holds @lock. */
static inline bool mcs_leave(struct mcs *lock, struct mcs_node *node)
{
	struct mcs_node *last = node;

	/* [MCS-5] release: pairs with [MCS-1], [MCS-3]; our critical section */
	if (!w_compare_exchange_release(&lock->tail, &last, NULL))
		return false;
	node_free(&node->status);
	return true;
}

/* Grants @lock to the first waiter behind @node that has not left. */
static W_SLOW void mcs_hand_over(struct mcs *lock, struct mcs_node *node, enum wait wait)
{
	struct mcs_node *next;
	bool granted;

	do {
		/* [MCS-6] acquire: pairs with [MCS-4]; the successor's node */
		next = w_load_acquire(&node->next);
		if (!next) {
			if (mcs_leave(lock, node))
				return;
			/* [MCS-7] acquire: pairs with [MCS-4], as [MCS-6] */
			next = w_wait_acquire(&node->next, VAL != NULL, wait_soon(wait), NULL);
		}
		granted = node_grant(&next->status, wait);
		node_free(&node->status);
		node = next;
	} while (!granted);
}

/* Releases @lock, held with @node. */
static inline void mcs_release(struct mcs *lock, struct mcs_node *node, struct mcs_policy policy)
{
	/* relaxed: mcs_hand_over() reads it again */
	if (w_unlikely(w_load_relaxed(&node->next) || !mcs_leave(lock, node)))
		mcs_hand_over(lock, node, policy.wait);
}

/*
 * In a forked child, discards all waiters behind @node, which holds @lock: their threads exist only
 * in the parent.
 */
static inline void mcs_drop_waiters(struct mcs *lock, struct mcs_node *node)
{
	/* relaxed, both: one thread repairs; [GENERATION-3] publishes the result */
	w_store_relaxed(&lock->tail, node);
	w_store_relaxed(&node->next, NULL);
}

#endif
