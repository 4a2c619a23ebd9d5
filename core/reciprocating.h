/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reciprocating lock: waiters pile up as a stack, which a release takes as a whole and lets in from the top; meanwhile the
 * next stack grows. Arriving and leaving take constant time, and a hand-over touches one line of the waiter's.
 *
 * From: Dice and Kogan, "Reciprocating locks", PPoPP'25, listing 1.
 * Changed: the paper's gate, by which a waiter is let in and told where its segment ends, is a status and a pointer, so
 * that a waiter can yield or sleep on the status, and leave at a deadline (wait.h). The paper's one element per thread is a
 * node of the pool, held until the release.
 *
 * Promises: mutual exclusion; no strict order, but each other thread passes a waiter at most once: those who came after
 * it into the same segment, once each. Blocking under wait=park. 8 bytes a lock, a node a waiter and a holder. Atomic
 * read-modify-writes: 2 uncontended (exchange, compare-exchange); contended 2 and a grant each segment needs two more.
 *
 *   arrivals ──▶ [youngest] ─next─▶ [waiter] ─next─▶ [eldest]         the arrival segment
 *   [holder] ─next─▶ [waiter] ─next─▶ ... ─next─▶ end                 the entry segment, detached before
 *
 *   arrivals   means
 *   NULL       free
 *   EMPTY      held, nobody has arrived since the entry segment was detached
 *   n          held; n is the holder, who found the lock free, or the last to arrive
 *
 * `end` of a holder says where its segment ends: at the node of the one who found the lock free, which may have other uses
 * by now and serves as a name only; or EMPTY, at the waiter without a next. A release may find
 *
 *   next       end     and then
 *   n          any     n gets the lock, and is told the end
 *   == end     n       the segment is over; the end from now on is EMPTY
 *   NULL       any     arrivals == end: nobody came, it becomes free; else it is detached: EMPTY
 */
#ifndef POUNDLOCK_RECIPROCATING_H
#define POUNDLOCK_RECIPROCATING_H

#include "part/wait.h"

struct reciprocating_node {
	W_ATOMIC(uint32_t) status;
	struct reciprocating_node *next; /* who arrived before us in our segment; our thread's */
	struct reciprocating_node *end;  /* the holder's */
};

struct reciprocating {
	W_ATOMIC(struct reciprocating_node *) arrivals;
};

struct reciprocating_policy {
	enum wait wait;
};

#define reciprocating_settings(S)
#define reciprocating_bytes \
	sizeof(struct reciprocating), sizeof(struct reciprocating_node), sizeof(struct reciprocating_node)

#define RECIPROCATING_EMPTY ((struct reciprocating_node *)1)

/* Makes @node the holder's who found the lock free. */
static inline void reciprocating_begin(struct reciprocating_node *node)
{
	node->next = NULL;
	node->end = node;
}

/* Takes @lock with @node if it is free. */
static inline bool reciprocating_try_acquire(struct reciprocating *lock, struct reciprocating_node *node)
{
	struct reciprocating_node *seen = NULL;

	/* relaxed: only a hint that spares the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->arrivals))
		return false;
	reciprocating_begin(node);
	/* relaxed: nobody looks at a holder's status */
	w_store_relaxed(&node->status, NODE_WAITING);
	/* [RECIPROCATING-1] acquire: pairs with [RECIPROCATING-4]; the last holder's critical
	 * section */
	if (w_compare_exchange_acquire(&lock->arrivals, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Takes @lock by polling until the deadline. */
static W_SLOW bool reciprocating_poll(struct reciprocating *lock, struct reciprocating_node *node,
				      const struct w_deadline *deadline)
{
	do {
		if (reciprocating_try_acquire(lock, node))
			return true;
		/* [RECIPROCATING-2] acquire: pairs with nothing; reciprocating_try_acquire reads
		 * again */
		(void)w_wait_acquire(&lock->arrivals, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/* Takes @lock. False, with @node left to its pool, if @deadline (NULL: never) passed first. */
static inline bool reciprocating_acquire(struct reciprocating *lock, struct reciprocating_node *node,
					 struct reciprocating_policy policy, const struct w_deadline *deadline)
{
	struct reciprocating_node *seen;

	if (policy.wait == WAIT_SPIN && deadline)
		return reciprocating_poll(lock, node, deadline);
	/* relaxed: [RECIPROCATING-3] publishes it */
	w_store_relaxed(&node->status, NODE_WAITING);
	/*
	 * [RECIPROCATING-3] acq_rel: acquire pairs with [RECIPROCATING-4]: the last holder's
	 * critical section; and with [RECIPROCATING-3]: the node of who came before us, to whom we
	 * hand over. Release pairs with [RECIPROCATING-3], [RECIPROCATING-5]: our node
	 */
	seen = w_exchange_acq_rel(&lock->arrivals, node);
	if (!seen) {
		reciprocating_begin(node);
		return true;
	}
	node->next = seen == RECIPROCATING_EMPTY ? NULL : seen;
	return node_wait(&node->status, policy.wait, deadline);
}

/* Whom @node gives @lock to, and has told where the segment ends: NULL if there is nobody, and the lock is free. */
static inline struct reciprocating_node *reciprocating_next(struct reciprocating *lock, struct reciprocating_node *node)
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
		/* [RECIPROCATING-5] acquire: pairs with [RECIPROCATING-3]; the node of the last to
		 * arrive */
		next = w_exchange_acquire(&lock->arrivals, RECIPROCATING_EMPTY);
	}
	next->end = end;
	return next;
}

/* Releases @lock, held with @node, to a waiter that is still there, if there is one. */
static inline void reciprocating_release(struct reciprocating *lock, struct reciprocating_node *node,
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

/* In a forked child: drops all waiters of @node, which holds @lock; their threads do not exist here. */
static inline void reciprocating_drop_waiters(struct reciprocating *lock, struct reciprocating_node *node)
{
	reciprocating_begin(node);
	/* relaxed: [GENERATION-3] publishes what is repaired, once */
	w_store_relaxed(&lock->arrivals, node);
}

#endif
