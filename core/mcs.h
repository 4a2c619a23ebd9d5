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

#include "part/mcs_queue.h"

struct mcs {
	mcs_tail tail;
};

struct mcs_policy {
	enum wait wait;
};

#define mcs_settings(S)
#define mcs_bytes sizeof(struct mcs), sizeof(struct mcs_node), sizeof(struct mcs_node)

/* Takes @lock if it is free. */
static inline bool mcs_try_acquire(struct mcs *lock, struct mcs_node *node)
{
	return mcs_queue_try_enter(&lock->tail, node, mcs_node_init);
}

/* Polls @lock until the deadline. */
static inline bool mcs_poll(struct mcs *lock, struct mcs_node *node,
			    const struct w_deadline *deadline)
{
	return mcs_queue_poll(&lock->tail, node, mcs_node_init, deadline);
}

/* Enters the queue with @node. Returns true if it was empty: the caller holds @lock. */
static inline bool mcs_enter(struct mcs *lock, struct mcs_node *node)
{
	struct mcs_node *previous;

	mcs_node_init(node);
	previous = mcs_queue_enter(&lock->tail, node);
	if (!previous)
		return true;
	mcs_queue_link(previous, node);
	return false;
}

/*
 * Takes @lock in order of arrival. Returns false, with @node back in its pool, if @deadline (NULL:
 * none) passes first.
 */
static inline bool mcs_acquire(struct mcs *lock, struct mcs_node *node, struct mcs_policy policy,
			       const struct w_deadline *deadline)
{
	if (wait_polls(policy.wait, deadline))
		return mcs_poll(lock, node, deadline);
	return mcs_enter(lock, node) || node_wait(&node->status, policy.wait, deadline);
}

/* Grants @lock to the first waiter behind @node that has not left, or frees it. */
static W_SLOW void mcs_hand_over(struct mcs *lock, struct mcs_node *node, enum wait wait)
{
	struct mcs_node *next;
	bool done;

	do {
		next = mcs_queue_successor(&lock->tail, node, wait);
		done = !next || node_grant(&next->status, wait);
		node_free(&node->status);
		node = next;
	} while (!done);
}

/* Releases @lock, held with @node. */
static inline void mcs_release(struct mcs *lock, struct mcs_node *node, struct mcs_policy policy)
{
	/* relaxed: mcs_hand_over() reads it again */
	if (w_unlikely(w_load_relaxed(&node->next) || !mcs_queue_leave(&lock->tail, node)))
		mcs_hand_over(lock, node, policy.wait);
}

/* In a forked child, discards all waiters behind @node, which holds @lock. */
static inline void mcs_drop_waiters(struct mcs *lock, struct mcs_node *node)
{
	mcs_queue_drop_waiters(&lock->tail, node);
}

#endif
