/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reciprocating lock: arrivals push themselves onto a stack. A release detaches the whole stack and
 * serves it from the top, while the next one grows. Arrival and release take constant time, and a
 * hand-over touches one line of the waiter.
 *
 * From: Dice and Kogan, "Reciprocating locks", PPoPP'25, listing 1.
 *
 * Order: each other thread overtakes a waiter at most once.
 *
 * Promise: mutual exclusion; no strict order, but each other thread overtakes a waiter at most
 * once: those that arrived after it in the same segment. Waiters sleep under wait=park. 8 bytes per
 * lock; one node per waiter and per holder. Atomic read-modify-writes: 2 uncontended (exchange,
 * compare-exchange); contended 2 (exchange, grant), and 2 more per segment.
 *
 *   arrivals ──▶ [youngest] ─next─▶ [waiter] ─next─▶ [eldest]         the arrival segment
 *   [holder] ─next─▶ [waiter] ─next─▶ ... ─next─▶ end                 the entry segment, detached
 *
 *   arrivals   meaning
 *   NULL       free
 *   EMPTY      held; nobody has arrived since the entry segment was detached
 *   n          held; n is the last to arrive, or the holder, which found the lock free
 *
 * A holder's `end` is where its segment ends: at the node of the thread that found the lock free,
 * which may have other uses by now and is only a name; or, if EMPTY, at the waiter without a next.
 * A release may find
 *
 *   next       end     action
 *   n          any     n gets the lock and the end
 *   == end     n       the segment is over; the end is EMPTY from now on
 *   NULL       any     arrivals == end: nobody came, the lock becomes free. Otherwise detach it
 *
 * Departures from the paper: its gate, which admits a waiter and tells it where its segment ends,
 * is a status and a pointer, so that a waiter can yield or sleep on the status, or leave at a
 * deadline (part/wait.h). Its one element per thread is a pool node, held until the release.
 */
#ifndef POUNDLOCK_RECIPROCATING_H
#define POUNDLOCK_RECIPROCATING_H

#include "part/wait.h"

struct reciprocating_node {
	W_ATOMIC(uint32_t) status;
	struct reciprocating_node *next; /* predecessor in our segment; accessed by our thread */
	struct reciprocating_node *end;  /* written for the holder */
};

struct reciprocating {
	W_ATOMIC(struct reciprocating_node *) arrivals;
};

struct reciprocating_policy {
	enum wait wait;
};

#define reciprocating_settings(S)
#define reciprocating_bytes                                              \
	sizeof(struct reciprocating), sizeof(struct reciprocating_node), \
		sizeof(struct reciprocating_node)

#define RECIPROCATING_EMPTY ((struct reciprocating_node *)1)

/* Prepares @node for a holder that found the lock free. */
static inline void reciprocating_begin(struct reciprocating_node *node)
{
	node->next = NULL;
	node->end = node;
}

/* NULL -> @node. */
static inline bool reciprocating_try_acquire(struct reciprocating *lock,
					     struct reciprocating_node *node)
{
	struct reciprocating_node *seen = NULL;

	/* relaxed: a hint that avoids taking the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->arrivals))
		return false;
	reciprocating_begin(node);
	/* relaxed: nobody reads a holder's status */
	w_store_relaxed(&node->status, NODE_WAITING);
	/* [RECIPROCATING-1] acquire: pairs with [RECIPROCATING-4]; the previous critical section */
	if (w_compare_exchange_acquire(&lock->arrivals, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Polls @lock until the deadline. */
static W_SLOW bool reciprocating_poll(struct reciprocating *lock, struct reciprocating_node *node,
				      const struct w_deadline *deadline)
{
	do {
		if (reciprocating_try_acquire(lock, node))
			return true;
		/*
		 * [RECIPROCATING-2] acquire: pairs with nothing; reciprocating_try_acquire() reads
		 * the word again
		 */
		(void)w_wait_acquire(&lock->arrivals, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 */
static inline bool reciprocating_acquire(struct reciprocating *lock,
					 struct reciprocating_node *node,
					 struct reciprocating_policy policy,
					 const struct w_deadline *deadline)
{
	struct reciprocating_node *seen;

	if (wait_polls(policy.wait, deadline))
		return reciprocating_poll(lock, node, deadline);
	/* relaxed: [RECIPROCATING-3] publishes it */
	w_store_relaxed(&node->status, NODE_WAITING);
	/*
	 * [RECIPROCATING-3] acq_rel: acquire pairs with [RECIPROCATING-4]: the previous critical
	 * section; and with [RECIPROCATING-3]: the predecessor's node, to which we hand over.
	 * Release pairs with [RECIPROCATING-3], [RECIPROCATING-5]: our node
	 */
	seen = w_exchange_acq_rel(&lock->arrivals, node);
	if (!seen) {
		reciprocating_begin(node);
		return true;
	}
	node->next = seen == RECIPROCATING_EMPTY ? NULL : seen;
	return node_wait(&node->status, policy.wait, deadline);
}

/* Returns @node's successor, with its end set, or NULL: nobody waits, and @lock is free. */
static inline struct reciprocating_node *reciprocating_next(struct reciprocating *lock,
							    struct reciprocating_node *node)
{
	struct reciprocating_node *next = node->next, *end = node->end, *seen;

	if (next && next == end) {
		next = NULL;
		end = RECIPROCATING_EMPTY;
	}
	if (!next) {
		seen = end;
		/* [RECIPROCATING-4] release: pairs with [RECIPROCATING-1], [RECIPROCATING-3]; our
		 * critical section */
		if (w_compare_exchange_release(&lock->arrivals, &seen, NULL))
			return NULL;
		w_event(segment);
		/*
		 * [RECIPROCATING-5] acquire: pairs with [RECIPROCATING-3]; the node of the last
		 * arrival
		 */
		next = w_exchange_acquire(&lock->arrivals, RECIPROCATING_EMPTY);
	}
	next->end = end;
	return next;
}

/* Releases @lock, held with @node, to a waiter that has not left, if there is one. */
static inline void reciprocating_release(struct reciprocating *lock,
					 struct reciprocating_node *node,
					 struct reciprocating_policy policy)
{
	struct reciprocating_node *next;
	bool granted;

	do {
		next = reciprocating_next(lock, node);
		granted = !next || node_grant(&next->status, policy.wait);
		node_free(&node->status);
		node = next;
	} while (!granted);
}

/*
 * In a forked child, discards all waiters of @node, which holds @lock: their threads exist only in
 * the parent.
 */
static inline void reciprocating_drop_waiters(struct reciprocating *lock,
					      struct reciprocating_node *node)
{
	reciprocating_begin(node);
	/* relaxed: one thread repairs; [GENERATION-3] publishes the result */
	w_store_relaxed(&lock->arrivals, node);
}

#endif
