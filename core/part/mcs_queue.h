/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The queue of MCS: a tail, and nodes linked from the holder's to the last waiter's (mcs.h has the
 * drawing). Shared by mcs.h, mcstp.h, cna.h, malthusian.h and cst.h, which differ in how a holder
 * chooses its successor.
 *
 * From: Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory
 * multiprocessors", TOCS'91.
 *
 * A lock whose nodes have more fields begins them with a struct mcs_node.
 */
#ifndef POUNDLOCK_MCS_QUEUE_H
#define POUNDLOCK_MCS_QUEUE_H

#include "part/wait.h"

struct mcs_node {
	W_ATOMIC(uint32_t) status;
	/* Of the locks built on the queue: they fill the gap before next. */
	union {
		int32_t domain; /* cna.h */
		uint32_t left;  /* malthusian.h */
	};
	W_ATOMIC(struct mcs_node *) next;
};

typedef W_TAIL(struct mcs_node) mcs_tail;

static inline void mcs_node_init(struct mcs_node *node)
{
	/* relaxed, both: [MCS_QUEUE-1], [MCS_QUEUE-3] or [MCS_QUEUE-4] publishes them */
	w_store_relaxed(&node->status, NODE_WAITING);
	w_store_relaxed(&node->next, NULL);
}

/* ---- Entering ---- */

/* NULL -> @node, which @init initialises: mcs_node_init(), or more for a lock with own fields. */
static inline bool mcs_queue_try_enter(mcs_tail *tail, struct mcs_node *node,
				       void (*init)(struct mcs_node *node))
{
	struct mcs_node *seen = NULL;

	/* relaxed: a hint that avoids taking the line; the compare-exchange decides */
	if (w_load_relaxed(tail))
		return false;
	init(node);
	/*
	 * [MCS_QUEUE-1] acq_rel: acquire pairs with [MCS_QUEUE-5]; the previous critical section.
	 * Release pairs with [MCS_QUEUE-3]: our node
	 */
	if (w_compare_exchange_acq_rel(tail, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Polls until mcs_queue_try_enter() succeeds. Returns false at the deadline. */
static W_SLOW bool mcs_queue_poll(mcs_tail *tail, struct mcs_node *node,
				  void (*init)(struct mcs_node *node),
				  const struct w_deadline *deadline)
{
	do {
		if (mcs_queue_try_enter(tail, node, init))
			return true;
		/*
		 * [MCS_QUEUE-2] acquire: pairs with nothing; mcs_queue_try_enter() reads the word
		 * again
		 */
		(void)w_wait_acquire(tail, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/*
 * Any -> @node, which is initialised. Returns its predecessor, to which the caller links it, or
 * NULL: the caller holds the lock.
 */
static inline struct mcs_node *mcs_queue_enter(mcs_tail *tail, struct mcs_node *node)
{
	/*
	 * [MCS_QUEUE-3] acq_rel: acquire pairs with [MCS_QUEUE-1], [MCS_QUEUE-3]: the predecessor's
	 * node, which we write; and with [MCS_QUEUE-5], [CNA-1], [CST-1], [MALTHUSIAN-1]: the
	 * previous critical section, and the end of the queue that it made. Release pairs with
	 * [MCS_QUEUE-3]: our node
	 */
	return w_exchange_acq_rel(tail, node);
}

/* Links @node behind @previous. */
static inline void mcs_queue_link(struct mcs_node *previous, struct mcs_node *node)
{
	/* [MCS_QUEUE-4] release: pairs with [MCS_QUEUE-6], [MCS_QUEUE-7]; our node's fields */
	w_store_release(&previous->next, node);
}

/* ---- Leaving; holder only ---- */

/* @node -> NULL if nobody is behind @node. The lock is then free. */
static inline bool mcs_queue_end(mcs_tail *tail, struct mcs_node *node)
{
	struct mcs_node *last = node;

	/* [MCS_QUEUE-5] release: pairs with [MCS_QUEUE-1], [MCS_QUEUE-3]; our critical section */
	return w_compare_exchange_release(tail, &last, NULL);
}

/* As mcs_queue_end(), and returns @node to its pool. */
static inline bool mcs_queue_leave(mcs_tail *tail, struct mcs_node *node)
{
	if (!mcs_queue_end(tail, node))
		return false;
	node_free(&node->status);
	return true;
}

/* Returns the node behind @node, or NULL if none is linked. */
static inline struct mcs_node *mcs_queue_next(struct mcs_node *node)
{
	/* [MCS_QUEUE-6] acquire: pairs with [MCS_QUEUE-4]; the node there */
	return w_load_acquire(&node->next);
}

/* Returns the node behind @node, whose waiter has entered and is about to link it. */
static inline struct mcs_node *mcs_queue_await_next(struct mcs_node *node, enum wait wait)
{
	/* [MCS_QUEUE-7] acquire: pairs with [MCS_QUEUE-4], as [MCS_QUEUE-6] */
	return w_wait_acquire(&node->next, VAL != NULL, wait_soon(wait), NULL);
}

/* Returns the node behind @node, or NULL: the queue has ended, and the lock is free. */
static inline struct mcs_node *mcs_queue_successor(mcs_tail *tail, struct mcs_node *node,
						   enum wait wait)
{
	struct mcs_node *next = mcs_queue_next(node);

	if (next || mcs_queue_end(tail, node))
		return next;
	return mcs_queue_await_next(node, wait);
}

/*
 * In a forked child, discards all waiters behind @node, which holds the lock: their threads exist
 * only in the parent.
 */
static inline void mcs_queue_drop_waiters(mcs_tail *tail, struct mcs_node *node)
{
	/* relaxed, both: one thread repairs; [GENERATION-3] publishes the result */
	w_store_relaxed(tail, node);
	w_store_relaxed(&node->next, NULL);
}

#endif
