/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shuffling: a queue of waiters that one of the waiters, the shuffler, re-orders while it waits. Only the order is here;
 * what the head of the queue waits for is the lock's (shfl_spin.h, shfl_mutex.h).
 *
 * From: Kashyap, Calciu, Cheng, Min, Kim, "Scalable and practical locking with shuffling", SOSP'19, figure 4 (lines
 * 44-108), figure 6 and the qlast optimisation of section 4.2.1.
 * Changed, and why:
 *  - The role of shuffler is a field of its own, and the status only wakes its new holder up (ROLE): a status that
 *    carried the role would lose it to the READY that a predecessor writes meanwhile.
 *  - Figure 6 leaves the transitions from PARKED to others; below they are all compare-exchanges or exchanges, so that a
 *    wake-up cannot fall between two of them.
 *  - A woken waiter (AWAKE, the paper's S_SPINNING) spins for one more budget and then sleeps again: on over-subscribed
 *    cores a waiter that spins without end takes the CPU that the holder needs.
 *  - A shuffler in the middle of the queue that finds nobody to move keeps the role until it is the head, instead of
 *    walking again and again.
 *  - Waiters can leave at a deadline.
 *
 * The queue is MCS's: tail names the last waiter, next links lead to it. The invariants (section 4.2.1): a head keeps
 * its place; there is one shuffler at a time; only a head starts shuffling; the role goes only to waiters behind. The
 * second follows from: between the head that started and the waiter that has the role, all have batch > 0.
 *
 * The status of a node:
 *
 *   WAITING ──shuffler──▶ AWAKE ──shuffler──▶ ROLE       (WAITING ──▶ ROLE too)
 *      │ ▲                  │                  │
 *      │ └ (never again)    │                  │
 *      └──────── waiter, its spinning over: any of the three ──▶ PARKED ──shuffler, unpark──▶ AWAKE
 *
 *   any ──predecessor──▶ READY   its waiter is now the head
 *   any but READY ──waiter, at its deadline──▶ ABANDONED ──predecessor, which then acts for it──▶ READY
 *   any ──waiter, or who acts for it, when it leaves the queue──▶ FREE
 *
 * Who may write a node's fields: next its thread's successor once (from NULL), then the shuffler; batch and seen the
 * shuffler; domain its thread, before it is linked.
 */
#ifndef POUNDLOCK_SHUFFLE_H
#define POUNDLOCK_SHUFFLE_H

#include "policy/numa.h"
#include "wait.h"

/* How many waiters of a domain may follow one another because of shuffling. Figure 4, line 55. */
#define SHFL_MAX_BATCH 1024

enum {
	SHFL_FREE,
	SHFL_WAITING,
	SHFL_PARKED,
	SHFL_AWAKE,
	SHFL_ROLE,
	SHFL_READY,
	SHFL_ABANDONED,
};

struct shfl_node {
	W_ATOMIC(uint32_t) status;
	W_ATOMIC(uint32_t) shuffler; /* whether this waiter has the role */
	W_ATOMIC(struct shfl_node *) next;
	struct shfl_node *seen; /* how far the role's holders have walked; NULL: to this node */
	uint32_t batch;         /* its place in a batch of its domain; 0: in none */
	int32_t domain;
};

typedef W_ATOMIC(struct shfl_node *) shfl_tail;

/* ---- The shuffler ---- */

/* Makes @node's waiter look up from its sleep, off anybody's critical path. Figure 6, line 41. */
static inline void shfl_wake_early(struct shfl_node *node)
{
	uint32_t seen = SHFL_WAITING;

	/* relaxed, both: the waiter learns only that it should not sleep */
	if (w_compare_exchange_relaxed(&node->status, &seen, SHFL_AWAKE) || seen != SHFL_PARKED)
		return;
	if (w_compare_exchange_relaxed(&node->status, &seen, SHFL_AWAKE)) {
		w_event(wake_early);
		w_unpark(&node->status);
	}
}

/* Hands the role to @node, which finds it when it next looks: at once if it spins. */
static inline void shfl_pass_role(struct shfl_node *node)
{
	uint32_t seen = SHFL_WAITING;

	w_event(shuffle_pass);
	/* [S1] release: pairs with [S2]; the queue as we leave it, and node's batch and seen */
	w_store_release(&node->shuffler, 1);
	/* relaxed, both: only a nudge; the role is in `shuffler` */
	if (!w_compare_exchange_relaxed(&node->status, &seen, SHFL_ROLE) && seen == SHFL_AWAKE)
		(void)w_compare_exchange_relaxed(&node->status, &seen, SHFL_ROLE);
}

/* Whether @node's waiter is to shuffle. */
static inline bool shfl_has_role(struct shfl_node *node)
{
	/* [S2] acquire: pairs with [S1]; the last shuffler's work */
	return w_load_acquire(&node->shuffler);
}

/* Moves @current from behind @previous to behind @last. False if it is the last in the queue, where others link. */
static inline bool shfl_move(struct shfl_node *last, struct shfl_node *previous, struct shfl_node *current)
{
	/* [S3] acquire: pairs with [S8], [S4]; the node behind */
	struct shfl_node *next = w_load_acquire(&current->next);

	if (!next)
		return false;
	/* [S4] release: pairs with [S3], [S5], [S9]; each link publishes the node that it leads to. relaxed: our own view
	 * of a link that only we change */
	w_store_release(&previous->next, next);
	w_store_release(&current->next, w_load_relaxed(&last->next));
	w_store_release(&last->next, current);
	w_event(shuffle_move);
	return true;
}

/*
 * As the shuffler, walks the queue from where the last one stopped and brings the waiters that the policy wants behind
 * @node, in a batch; ends at the end of the queue, or as soon as *@word, less the bits outside @mask, equals @stop; then
 * passes the role to the last of the batch. @wake: wake the waiter that comes right behind @node, too.
 */
static inline void shfl_shuffle(struct shfl_node *node, W_ATOMIC(uint32_t) *word, uint32_t mask, uint32_t stop,
				bool wake)
{
	struct shfl_node *last = node, *previous = node->seen ? node->seen : node, *current;

	/* relaxed: the role is ours; [S1] passes it on */
	w_store_relaxed(&node->shuffler, 0);
	if (!node->batch)
		node->batch = 1;
	w_event(shuffle);
	/* relaxed: only a hint that walking has become a delay */
	while (last->batch < SHFL_MAX_BATCH && (w_load_relaxed(word) & mask) != stop) {
		/* [S5] acquire: pairs with [S8], [S4]; the node there */
		current = w_load_acquire(&previous->next);
		if (!current)
			break;
		if (!policy_numa(node->domain, current->domain)) {
			previous = current;
			continue;
		}
		if (previous == last)
			previous = current;
		else if (!shfl_move(last, previous, current))
			break;
		current->batch = last->batch + 1;
		if (wake && last == node)
			shfl_wake_early(current);
		last = current;
	}
	if (last->batch >= SHFL_MAX_BATCH)
		return;
	last->seen = previous == last ? NULL : previous;
	if (last != node)
		shfl_pass_role(last);
	else
		/* relaxed: kept, not passed */
		w_store_relaxed(&node->shuffler, 1);
}

/* Whether @node, the head, is to shuffle: it has the role, or nobody has batched it yet. Figure 4, line 23. */
static inline bool shfl_head_shuffles(struct shfl_node *node)
{
	return shfl_has_role(node) || !node->batch;
}

/* ---- The queue ---- */

/* Enters the queue with @node, to be shuffled as of @domain. True if it is the head. Figure 4, lines 10-14 and 45. */
static inline bool shfl_enter_as(shfl_tail *tail, struct shfl_node *node, int32_t domain)
{
	struct shfl_node *previous;

	node->seen = NULL;
	node->batch = 0;
	node->domain = domain;
	/* relaxed, all: [S6] and [S8] publish them */
	w_store_relaxed(&node->status, SHFL_WAITING);
	w_store_relaxed(&node->shuffler, 0);
	w_store_relaxed(&node->next, NULL);
	w_event(contended);
	/* [S6] acq_rel: acquire and release pair with [S6]: the predecessor's node, which we write. Acquire pairs with
	 * [S7] too: the queue has ended before it begins again */
	previous = w_exchange_acq_rel(tail, node);
	if (!previous)
		return true;
	/* [S8] release: pairs with [S3], [S5], [S9], [S12]; our node's fields */
	w_store_release(&previous->next, node);
	return false;
}

static inline bool shfl_enter(shfl_tail *tail, struct shfl_node *node)
{
	return shfl_enter_as(tail, node, w_domain());
}

/* Sleeps on @node, last seen with status @seen, until that changes: the new status; or to the deadline: PARKED. */
static inline uint32_t shfl_park(struct shfl_node *node, uint32_t seen, const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; the waker learns only that there is somebody to wake */
	if (!w_compare_exchange_relaxed(&node->status, &seen, SHFL_PARKED))
		/* [S10] acquire: pairs with [S13], as [S11] */
		return w_load_acquire(&node->status);
	w_event(park);
	do {
		w_park(&node->status, SHFL_PARKED, deadline);
		/* [S14] acquire: pairs with [S13], as [S11] */
		seen = w_load_acquire(&node->status);
	} while (seen == SHFL_PARKED && !w_expired(deadline));
	return seen;
}

/*
 * Waits until @node is the head: true. At the deadline leaves it to its predecessor to remove: false. *@slept: whether
 * the waiter ever slept. Figure 4, line 44; figure 6, line 13.
 */
static inline bool shfl_wait_turn(struct shfl_node *node, enum wait wait, const struct w_deadline *deadline,
				  bool *slept)
{
	uint32_t now, seen = SHFL_WAITING;

	for (;;) {
		/* [S11] acquire: pairs with [S13]; the order of the queue, and batch and role given to us */
		now = w_wait_acquire(&node->status, VAL != seen, wait_turn(wait), deadline);
		if (now == seen && wait == WAIT_PARK && !w_expired(deadline)) {
			*slept = true;
			now = shfl_park(node, seen, deadline);
		}
		if (now == SHFL_READY)
			return true;
		if (w_expired(deadline))
			break;
		seen = now;
		if (shfl_has_role(node))
			shfl_shuffle(node, &node->status, ~0u, SHFL_READY, false);
	}
	/* [S15] acq_rel: release pairs with [S13]: our links, for whoever acts for us; acquire pairs with [S13]: we may have
	 * become the head in the last moment */
	if (w_exchange_acq_rel(&node->status, SHFL_ABANDONED) == SHFL_READY)
		return true;
	w_event(abandon);
	return false;
}

/*
 * Takes @node, the head, and the abandoned ones behind it out of the queue and makes the next waiter the head. Returns
 * the status to unpark if that one sleeps, else NULL. Figure 4, lines 33-42.
 */
static inline W_ATOMIC(uint32_t) *shfl_leave(shfl_tail *tail, struct shfl_node *node, enum wait wait)
{
	struct shfl_node *next, *last;
	uint32_t seen;

	do {
		/* [S9] acquire: pairs with [S8], [S4]; the node behind */
		next = w_load_acquire(&node->next);
		if (!next) {
			last = node;
			/* [S7] release: pairs with [S6]; our last accesses to the queue */
			if (w_compare_exchange_release(tail, &last, NULL)) {
				node_free(&node->status);
				return NULL;
			}
			/* [S12] acquire: pairs with [S8], as [S9] */
			next = w_wait_acquire(&node->next, VAL != NULL, wait_soon(wait), NULL);
		}
		/* [S13] acq_rel: release pairs with [S10], [S11], [S14], [S15]: the queue's order so far. Acquire pairs
		 * with [S15]: the links of one that has gone */
		seen = w_exchange_acq_rel(&next->status, SHFL_READY);
		node_free(&node->status);
		node = next;
		if (seen == SHFL_ABANDONED)
			w_event(skip);
	} while (seen == SHFL_ABANDONED);
	return seen == SHFL_PARKED ? &next->status : NULL;
}

#endif
