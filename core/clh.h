/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CLH: a queue lock whose waiters watch their predecessor's node, so that no thread has to know its
 * successor.
 *
 * From: Craig, "Building FIFO and priority-queuing spin locks from atomic swap", 1993; Landin and
 * Hagersten, "Queue locks on cache coherent multiprocessors"; and Magnusson, Landin and Hagersten,
 * IPPS'94.
 *
 * Order: FIFO.
 *
 * Promise: mutual exclusion; first come, first served, except for timed waiters, which poll.
 * Waiters sleep under wait=park. 8 bytes per lock; one node per waiter and per holder. Atomic
 * read-modify-writes: 2 uncontended (exchange, compare-exchange), 2 contended (exchange, grant; 1
 * under wait=spin).
 *
 *   [holder] ◀─waits on─ [waiter] ◀─waits on─ [waiter] ◀─ tail
 *
 *   tail   status of tail's node   meaning
 *   NULL   -                       free
 *   n      WAITING, PARKED         n holds the lock or is the last waiter; PARKED: successor asleep
 *   n      GRANTED                 impossible: only a node with a successor is granted
 *
 * A node's status is that of part/wait.h, shifted by one: WAITING until its thread releases the
 * lock, PARKED by its successor, GRANTED by its thread, FREE by its successor; or, without a
 * successor, FREE by its thread.
 *
 * Departures from the papers: a free lock has no node. In the papers the last holder's node stays
 * in the lock, and each thread continues with its predecessor's node. Here a holder without a
 * successor removes its node (by a compare-exchange, as in MCS), and a waiter returns its
 * predecessor's node to the pool that it came from. So zeroed memory is a free lock, an unused lock
 * keeps nobody's memory, and the release ends with the access that frees the lock. The price is a
 * compare-exchange in an uncontended release, where the papers have a store. A waiter may yield or
 * sleep. CLH waiters cannot leave, so a timed one polls for a free lock.
 */
#ifndef POUNDLOCK_CLH_H
#define POUNDLOCK_CLH_H

#include "part/wait.h"

struct clh_node {
	W_ATOMIC(uint32_t) status;
};

struct clh {
	W_ATOMIC(struct clh_node *) tail;
};

struct clh_policy {
	enum wait wait;
};

#define clh_settings(S)
#define clh_bytes sizeof(struct clh), sizeof(struct clh_node), sizeof(struct clh_node)

/* NULL -> @node. */
static inline bool clh_try_acquire(struct clh *lock, struct clh_node *node)
{
	struct clh_node *seen = NULL;

	/* relaxed: a hint that avoids taking the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->tail))
		return false;
	/* relaxed: [CLH-1] publishes it */
	w_store_relaxed(&node->status, NODE_WAITING);
	/*
	 * [CLH-1] acq_rel: acquire pairs with [CLH-4]; the previous critical section. Release pairs
	 * with [CLH-3]: our node
	 */
	if (w_compare_exchange_acq_rel(&lock->tail, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Polls @lock until the deadline. */
static W_SLOW bool clh_poll(struct clh *lock, struct clh_node *node,
			    const struct w_deadline *deadline)
{
	do {
		if (clh_try_acquire(lock, node))
			return true;
		/* [CLH-2] acquire: pairs with nothing; clh_try_acquire() reads the word again */
		(void)w_wait_acquire(&lock->tail, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	w_event(abandon);
	return false;
}

/*
 * Takes @lock in order of arrival. Returns false, with @node back in its pool, if @deadline (NULL:
 * none) passes first.
 */
static inline bool clh_acquire(struct clh *lock, struct clh_node *node, struct clh_policy policy,
			       const struct w_deadline *deadline)
{
	struct clh_node *previous;

	if (deadline)
		return clh_poll(lock, node, deadline);
	/* relaxed: [CLH-3] publishes it */
	w_store_relaxed(&node->status, NODE_WAITING);
	/*
	 * [CLH-3] acq_rel: acquire pairs with [CLH-1], [CLH-3]: the predecessor's node, which we
	 * write; and with [CLH-4]: the previous critical section. Release pairs with [CLH-3]:
	 * our node
	 */
	previous = w_exchange_acq_rel(&lock->tail, node);
	if (!previous)
		return true;
	(void)node_wait(&previous->status, policy.wait, NULL);
	node_free(&previous->status);
	return true;
}

/* Releases @lock, held with @node. */
static inline void clh_release(struct clh *lock, struct clh_node *node, struct clh_policy policy)
{
	struct clh_node *last = node;

	/*
	 * relaxed: avoids taking the line if we have a successor, which stays; the compare-exchange
	 * decides
	 */
	if (w_load_relaxed(&lock->tail) == node &&
	    /* [CLH-4] release: pairs with [CLH-1], [CLH-3]; our critical section */
	    w_compare_exchange_release(&lock->tail, &last, NULL))
		node_free(&node->status);
	else
		(void)node_grant(&node->status, policy.wait);
}

/*
 * In a forked child, discards all waiters behind @node, which holds @lock: their threads exist only
 * in the parent.
 */
static inline void clh_drop_waiters(struct clh *lock, struct clh_node *node)
{
	/* relaxed, both: one thread repairs; [GENERATION-3] publishes the result */
	w_store_relaxed(&lock->tail, node);
	w_store_relaxed(&node->status, NODE_WAITING);
}

#endif
