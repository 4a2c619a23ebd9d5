/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CNA: MCS in one word, whose holder moves waiters of other domains to a secondary queue, so that
 * the lock and the data it protects stay in one domain for a while.
 *
 * From: Dice and Kogan, "Compact NUMA-aware locks", EuroSys'19, figures 2-5 and both optimisations
 * of section 6.
 *
 * Order: same domain first, within a random bound on local hand-overs.
 *
 * Promise: mutual exclusion; a waiter in the secondary queue is bypassed by at most `threshold`
 * local hand-overs before the secondary queue moves to the front as a whole. Waiters sleep under
 * wait=park. 8 bytes per lock; one node per waiter and per holder. Atomic read-modify-writes: as
 * MCS.
 *
 *   tail ─────────────────────────────────────┐
 *                                             ▼
 *   [holder] ─next─▶ [waiter] ─ ... ─next─▶ [waiter]
 *      │
 *      └─secondary_queue─▶ [waiter] ─ ... ─next─▶ [waiter] ─next─▶ NULL     all of other domains
 *                            └──secondary_tail──────▲
 *
 *   tail   holder's next   secondary_queue   meaning
 *   NULL   -               -                 free
 *   n      NULL            NULL              n holds the lock; nobody waits (or has linked itself)
 *   n      NULL            s                 only remote waiters: the release splices s into the
 *                                            place of the main queue
 *   n      m               NULL              as MCS
 *   n      m               s                 both; s is spliced back after `left` local hand-overs
 *
 * Only the holder accesses secondary_queue, secondary_tail, left and skip: in its own node, in its
 * successor's and in those of the secondary queue. The grant transfers this right.
 *
 * Departures from the paper: the `spin` word of the figures, which is both the flag and the
 * secondary queue's head, is two fields, so that a waiter can sleep on the flag. The counts that
 * decide when the secondary queue returns, and when one may begin, travel with the lock instead of
 * belonging to a thread: the bound on local hand-overs is exact, not probabilistic. A waiter may
 * yield, sleep on its node, or leave at a deadline (part/wait.h).
 */
#ifndef POUNDLOCK_CNA_H
#define POUNDLOCK_CNA_H

#include "part/wait.h"

struct cna_node {
	W_ATOMIC(uint32_t) status;
	int32_t domain; /* CNA_NO_DOMAIN until its thread has to wait */
	W_ATOMIC(struct cna_node *) next;
	struct cna_node *secondary_queue;
	struct cna_node *secondary_tail; /* in the first node of the secondary queue */
	uint32_t left;                   /* local hand-overs until the secondary queue returns */
	/* Hand-overs in order of arrival until a secondary queue may begin. */
	uint32_t skip;
};

struct cna {
	W_TAIL(struct cna_node) tail;
};

struct cna_policy {
	enum wait wait;
	uint32_t threshold; /* most local hand-overs while the secondary queue waits; at least 1 */
	/*
	 * Most hand-overs in order of arrival before a secondary queue begins; 0: it begins at
	 * once.
	 */
	uint32_t reduction;
};

#define cna_settings(S) \
	S(cna, threshold, 65535, 1, UINT32_MAX - 1) S(cna, reduction, 127, 0, UINT32_MAX - 1)
#define cna_bytes sizeof(struct cna), sizeof(struct cna_node), sizeof(struct cna_node)

#define CNA_NO_DOMAIN (-1)

static inline void cna_node_init(struct cna_node *node)
{
	node->domain = CNA_NO_DOMAIN;
	node->secondary_queue = NULL;
	node->left = 0;
	node->skip = 0;
	/* relaxed, both: [CNA-1] or [CNA-3] publishes them */
	w_store_relaxed(&node->status, NODE_WAITING);
	w_store_relaxed(&node->next, NULL);
}

/* NULL -> @node. */
static inline bool cna_try_acquire(struct cna *lock, struct cna_node *node)
{
	struct cna_node *seen = NULL;

	/* relaxed: a hint that avoids taking the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->tail))
		return false;
	cna_node_init(node);
	/*
	 * [CNA-1] acq_rel: acquire pairs with [CNA-6]; the previous critical section. Release pairs
	 * with [CNA-3]: our node
	 */
	if (w_compare_exchange_acq_rel(&lock->tail, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Polls @lock until the deadline. */
static W_SLOW bool cna_poll(struct cna *lock, struct cna_node *node,
			    const struct w_deadline *deadline)
{
	do {
		if (cna_try_acquire(lock, node))
			return true;
		/* [CNA-2] acquire: pairs with nothing; cna_try_acquire() reads the word again */
		(void)w_wait_acquire(&lock->tail, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 * Figure 3.
 */
static inline bool cna_acquire(struct cna *lock, struct cna_node *node, struct cna_policy policy,
			       const struct w_deadline *deadline)
{
	struct cna_node *previous;

	if (policy.wait == WAIT_SPIN && deadline)
		return cna_poll(lock, node, deadline);
	cna_node_init(node);
	/*
	 * [CNA-3] acq_rel: acquire pairs with [CNA-1], [CNA-3]: the predecessor's node, which we
	 * write; and with [CNA-6], [CNA-7]: the previous critical section, and the end of the queue
	 * that it made. Release pairs with [CNA-3]: our node
	 */
	previous = w_exchange_acq_rel(&lock->tail, node);
	if (!previous)
		return true;
	node->domain = w_domain();
	/* [CNA-4] release: pairs with [CNA-8], [CNA-5], [CNA-9]; our node's domain */
	w_store_release(&previous->next, node);
	return node_wait(&node->status, policy.wait, deadline);
}

/*
 * Moves the waiters from @first to @last, whose next is known, from the main queue to the end of
 * @node's secondary queue.
 */
static inline void cna_move_to_secondary(struct cna_node *node, struct cna_node *first,
					 struct cna_node *last, uint32_t threshold)
{
	/* relaxed, both: only holders walk these links, and the grant or [CNA-7] orders them */
	w_store_relaxed(&last->next, NULL);
	if (node->secondary_queue) {
		w_store_relaxed(&node->secondary_queue->secondary_tail->next, first);
	} else {
		node->secondary_queue = first;
		node->left = 1 + w_random() % threshold;
	}
	node->secondary_queue->secondary_tail = last;
	w_event(secondary);
}

/*
 * Returns the first waiter from @next on in @node's domain, or NULL; moves those before it to the
 * secondary queue. Figure 5.
 */
static inline struct cna_node *cna_find_successor(struct cna_node *node, struct cna_node *next,
						  uint32_t threshold)
{
	struct cna_node *last = NULL, *current = next;
	int32_t domain = node->domain == CNA_NO_DOMAIN ? w_domain() : node->domain;

	while (current && current->domain != domain) {
		last = current;
		/* [CNA-5] acquire: pairs with [CNA-4]; the domain of the waiter there */
		current = w_load_acquire(&current->next);
	}
	if (current && last)
		cna_move_to_secondary(node, next, last, threshold);
	return current;
}

/* Hands the state that travels with the lock to @next, the future holder. */
static inline struct cna_node *cna_transfer(struct cna_node *next, struct cna_node *second,
					    uint32_t left, uint32_t skip)
{
	next->secondary_queue = second;
	next->left = left;
	next->skip = skip;
	return next;
}

/* Returns @node's successor. @next: the next node in the main queue. Figure 4, lines 38-49. */
static inline struct cna_node *cna_choose(struct cna_node *node, struct cna_node *next,
					  struct cna_policy policy)
{
	struct cna_node *local, *second;

	if (!node->secondary_queue && node->skip)
		return cna_transfer(next, NULL, 0, node->skip - 1);
	if (!node->secondary_queue || node->left) {
		local = cna_find_successor(node, next, policy.threshold);
		if (local) {
			w_event(handover_local);
			return cna_transfer(local, node->secondary_queue,
					    node->secondary_queue ? node->left - 1 : 0, 0);
		}
	}
	w_event(handover_remote);
	second = node->secondary_queue;
	if (second) {
		w_event(flush);
		/* relaxed: as in cna_move_to_secondary() */
		w_store_relaxed(&second->secondary_tail->next, next);
		next = second;
	}
	return cna_transfer(next, NULL, 0,
			    policy.reduction ? w_random() % (policy.reduction + 1) : 0);
}

/* @node -> NULL if nobody is behind @node, which holds @lock, and its secondary queue is empty. */
static inline bool cna_leave(struct cna *lock, struct cna_node *node)
{
	struct cna_node *last = node;

	/* [CNA-6] release: pairs with [CNA-1], [CNA-3]; our critical section */
	if (!w_compare_exchange_release(&lock->tail, &last, NULL))
		return false;
	node_free(&node->status);
	return true;
}

/*
 * @node -> secondary_tail: splices the secondary queue into the place of the empty main queue.
 * Returns its head, the successor, or NULL if the main queue is not empty.
 */
static inline struct cna_node *cna_splice(struct cna *lock, struct cna_node *node)
{
	struct cna_node *last = node, *second = node->secondary_queue;

	/*
	 * [CNA-7] release: pairs with [CNA-3]; the secondary queue's last link, which the next
	 * arrival overwrites
	 */
	if (!w_compare_exchange_release(&lock->tail, &last, second->secondary_tail))
		return NULL;
	w_event(flush);
	w_event(handover_remote);
	return cna_transfer(second, NULL, 0, 0);
}

/* Grants @lock to a waiter that has not left, if there is one. Figure 4. */
static W_SLOW void cna_hand_over(struct cna *lock, struct cna_node *node, struct cna_policy policy)
{
	struct cna_node *next, *successor;
	bool granted;

	do {
		successor = NULL;
		/* [CNA-8] acquire: pairs with [CNA-4]; the successor's node */
		next = w_load_acquire(&node->next);
		if (!next) {
			if (node->secondary_queue)
				successor = cna_splice(lock, node);
			else if (cna_leave(lock, node))
				return;
		}
		if (!next && !successor)
			/* [CNA-9] acquire: pairs with [CNA-4], as [CNA-8] */
			next = w_wait_acquire(&node->next, VAL != NULL, wait_soon(policy.wait),
					      NULL);
		if (!successor)
			successor = cna_choose(node, next, policy);
		granted = node_grant(&successor->status, policy.wait);
		node_free(&node->status);
		node = successor;
	} while (!granted);
}

/* Releases @lock, held with @node. */
static inline void cna_release(struct cna *lock, struct cna_node *node, struct cna_policy policy)
{
	/* relaxed: cna_hand_over() reads it again */
	if (w_unlikely(node->secondary_queue || w_load_relaxed(&node->next) ||
		       !cna_leave(lock, node)))
		cna_hand_over(lock, node, policy);
}

/*
 * In a forked child, discards all waiters of @node, which holds @lock: their threads exist only in
 * the parent.
 */
static inline void cna_drop_waiters(struct cna *lock, struct cna_node *node)
{
	node->secondary_queue = NULL;
	node->left = 0;
	/* relaxed, both: one thread repairs; [GENERATION-3] publishes the result */
	w_store_relaxed(&lock->tail, node);
	w_store_relaxed(&node->next, NULL);
}

#endif
