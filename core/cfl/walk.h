/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The walks of CFL's shuffler through the queue: back to the head, past nodes that may leave at any
 * time, and ahead to the end.
 *
 * A node's `before`: the node before it in the shuffled part of the queue.
 *
 *   NULL ──shuffler, placing it──▶ n ──walker──▶ n|1 pinned ──walker──▶ n
 *                                  │                │
 *                                  └──n, leaving────┴──▶ NULL
 *                                     (from n: n frees its node; from n|1: the walker does)
 */
#ifndef POUNDLOCK_CFL_WALK_H
#define POUNDLOCK_CFL_WALK_H

#include "cfl/tally.h"

static inline struct cfl_node *cfl_tagged(struct cfl_node *node)
{
	return (struct cfl_node *)((uintptr_t)node | 1);
}

/*
 * n -> n|1: pins the node before @at, which stays readable until cfl_unpin(). Returns NULL if there
 * is none or it is leaving.
 */
static inline struct cfl_node *cfl_pin(struct cfl_node *at)
{
	/* relaxed: the compare-exchange decides */
	struct cfl_node *before = w_load_relaxed(&at->before), *seen = before;

	if (!before)
		return NULL;
	/*
	 * relaxed: the thread that placed @at published that node before we got the role. A failure
	 * means that it has left
	 */
	return w_compare_exchange_relaxed(&at->before, &seen, cfl_tagged(before)) ? before : NULL;
}

/* n|1 -> n: unpins @before. If its waiter has left in the meantime, frees the node. */
static inline void cfl_unpin(struct cfl_node *at, struct cfl_node *before)
{
	struct cfl_node *seen = cfl_tagged(before);

	/*
	 * [WALK-1] release: pairs with [WALK-3]; our reads of the node come before its
	 * next use
	 */
	if (w_compare_exchange_release(&at->before, &seen, before))
		return;
	/*
	 * [WALK-2] acquire: pairs with [WALK-3]; the last accesses to the node by its
	 * thread, or by the thread that acted for it
	 */
	(void)w_load_acquire(&at->before);
	w_event(free_for);
	node_free(&before->node.status);
}

/*
 * Publishes @node, the head, to newcomers. Its time is a sample for its group's average, in case no
 * waiter is awake to compute averages.
 */
static inline void cfl_announce(struct cfl *lock, const struct shfl_node *node)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	W_ATOMIC(uint64_t) *average = &ledger->average[cfl_group(node)];
	/* relaxed, all: as in cfl_arrive() */
	uint64_t units = w_load_relaxed(average) >> CFL_UNIT;

	units += (uint64_t)(int64_t)(cfl_ahead(node->note, (uint32_t)units) / 2);
	w_store_relaxed(average, units << CFL_UNIT);
	w_store_relaxed(&ledger->head, (uint64_t)node->where << 32 | node->note);
}

/* As cfl_announce(), for a head behind which nobody waits. */
static inline void cfl_announce_alone(struct cfl *lock, const struct shfl_node *node)
{
	cfl_announce(lock, node);
	/* relaxed: as in cfl_arrive() */
	w_store_relaxed(&cfl_ledger(lock)->least_group, cfl_group(node));
}

/*
 * n or n|1 -> NULL: a node leaves the queue and @next becomes the head. Returns whether the node is
 * to be freed by the caller rather than by a walker.
 */
static inline bool cfl_retire(void *lock, struct shfl_node *next)
{
	cfl_announce(lock, next);
	/*
	 * [WALK-3] acq_rel: release pairs with [WALK-2]: our last accesses to our node;
	 * acquire pairs with [WALK-1]: the walker's
	 */
	return !((uintptr_t)w_exchange_acq_rel(&cfl_node(next)->before, NULL) & 1);
}

/* Counts @node and those before it, back to the head or to a node that is leaving. */
static inline void cfl_look_back(struct cfl *lock, struct cfl_node *node, struct cfl_tally *tally)
{
	struct cfl_node *at = node, *before, *next;

	cfl_count(lock, tally, &node->node);
	for (; (before = cfl_pin(at)); at = before) {
		w_event(look_back);
		cfl_count(lock, tally, &before->node);
	}
	for (; at != node; at = next) {
		/* relaxed: a link of the shuffled part, which no longer changes */
		next = cfl_node(w_load_relaxed(&at->node.next));
		cfl_unpin(next, at);
	}
}

/* Counts the waiters behind @node. */
static inline void cfl_look_ahead(struct cfl *lock, struct shfl_node *node, struct cfl_tally *tally)
{
	/* [WALK-4] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node there */
	while ((node = w_load_acquire(&node->next)))
		cfl_count(lock, tally, node);
}

#endif
