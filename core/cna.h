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
 * MCS. In the kernel's own spin lock the bound is a time, and no later waiter bypasses an urgent
 * one (world/README.md).
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
 *   n      m               s                 both; s is spliced back after `left` local hand-overs,
 *                                            or at the time `left` if the world has a threshold
 *
 * Only the holder accesses secondary_queue, secondary_tail, left and skip: in its own node, in its
 * successor's and in those of the secondary queue. The grant transfers this right.
 *
 * Departures from the paper: the `spin` word of the figures, which is both the flag and the
 * secondary queue's head, is two fields, so that a waiter can sleep on the flag. The counts that
 * decide when the secondary queue returns, and when one may begin, travel with the lock instead of
 * belonging to a thread: the bound on local hand-overs is exact, not probabilistic. A waiter may
 * yield, sleep on its node, or leave at a deadline (part/wait.h). Threshold by time and urgent
 * waiters are those of CNA's patch of Linux: an urgent waiter counts as local, and then as a waiter
 * of the holder's domain. So is the search ahead of the release, by a holder that has nothing else
 * to do: the head of the queue of the kernel's spin lock.
 */
#ifndef POUNDLOCK_CNA_H
#define POUNDLOCK_CNA_H

#include "part/mcs_queue.h"

struct cna_node {
	/* `domain` is CNA_NO_DOMAIN until its thread has to wait; CNA_URGENT: an urgent waiter's */
	struct mcs_node mcs;
	struct cna_node *secondary_queue;
	struct cna_node *secondary_tail; /* in the first node of the secondary queue */
	/* Local hand-overs until the secondary queue returns, or the time at which it does. */
	uint32_t left;
	/* Hand-overs in order of arrival until a secondary queue may begin. */
	uint32_t skip;
};

struct cna {
	mcs_tail tail;
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
#define CNA_URGENT (-2)

static inline struct cna_node *cna_node_of(struct mcs_node *mcs)
{
	return (struct cna_node *)mcs;
}

static inline bool cna_is_urgent(const struct cna_node *node)
{
	return W_URGENCY && node->mcs.domain == CNA_URGENT;
}

static inline void cna_node_init(struct mcs_node *mcs)
{
	struct cna_node *node = cna_node_of(mcs);

	mcs->domain = CNA_NO_DOMAIN;
	node->secondary_queue = NULL;
	node->left = 0;
	node->skip = 0;
	mcs_node_init(mcs);
}

/* Takes @lock if it is free. */
static inline bool cna_try_acquire(struct cna *lock, struct cna_node *node)
{
	return mcs_queue_try_enter(&lock->tail, &node->mcs, cna_node_init);
}

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 * Figure 3.
 */
static inline bool cna_acquire(struct cna *lock, struct cna_node *node, struct cna_policy policy,
			       const struct w_deadline *deadline)
{
	const bool urgent = w_urgent();
	struct mcs_node *previous;

	if (wait_polls(policy.wait, deadline))
		return mcs_queue_poll(&lock->tail, &node->mcs, cna_node_init, deadline);
	cna_node_init(&node->mcs);
	previous = mcs_queue_enter(&lock->tail, &node->mcs);
	if (!previous)
		return true;
	node->mcs.domain = urgent ? CNA_URGENT : w_domain();
	mcs_queue_link(previous, &node->mcs);
	if (urgent)
		w_event(urgent);
	return node_wait(&node->mcs.status, policy.wait, deadline);
}

/* Returns `left` of a secondary queue that begins now. */
static inline uint32_t cna_begin_secondary(uint32_t threshold)
{
	return W_THRESHOLD ? wait_clock() + W_THRESHOLD : 1 + w_random() % threshold;
}

/* Returns whether a secondary queue with @left has to wait for longer. */
static inline bool cna_may_defer(uint32_t left)
{
	return W_THRESHOLD ? (int32_t)(left - wait_clock()) > 0 : left;
}

/*
 * Moves the waiters from @first to @last, whose next is known, from the main queue to the end of
 * @node's secondary queue.
 */
static inline void cna_move_to_secondary(struct cna_node *node, struct cna_node *first,
					 struct cna_node *last, uint32_t threshold)
{
	/* relaxed, both: only holders walk these links, and the grant or [CNA-1] orders them */
	w_store_relaxed(&last->mcs.next, NULL);
	if (node->secondary_queue) {
		w_store_relaxed(&node->secondary_queue->secondary_tail->mcs.next, &first->mcs);
	} else {
		node->secondary_queue = first;
		node->left = cna_begin_secondary(threshold);
	}
	node->secondary_queue->secondary_tail = last;
	w_event(secondary);
}

/*
 * A holder's search for its successor, which it may begin before it releases the lock and continue
 * as waiters arrive. Begins as all 0.
 */
struct cna_search {
	struct cna_node *seen;      /* the last waiter that was passed over; NULL: none */
	struct cna_node *successor; /* NULL: none yet */
};

/*
 * Returns the first waiter from @next on in @node's domain, or urgent, or NULL; moves those before
 * it to the secondary queue. Continues behind @search->seen. Figure 5.
 */
static inline struct cna_node *cna_find_successor(struct cna_node *node, struct cna_node *next,
						  struct cna_search *search, uint32_t threshold)
{
	struct cna_node *last = search->seen;
	struct cna_node *current = last ? cna_node_of(mcs_queue_next(&last->mcs)) : next;
	int32_t domain = node->mcs.domain;

	if (domain == CNA_NO_DOMAIN || cna_is_urgent(node))
		domain = w_domain();
	while (current && current->mcs.domain != domain && !cna_is_urgent(current)) {
		last = current;
		current = cna_node_of(mcs_queue_next(&current->mcs));
	}
	search->seen = last;
	if (current && last)
		cna_move_to_secondary(node, next, last, threshold);
	if (current && cna_is_urgent(current))
		current->mcs.domain = domain;
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

/*
 * Returns @node's successor if later arrivals cannot change it, else NULL. @next: the next node in
 * the main queue. Figure 4, lines 38-44.
 */
static inline struct cna_node *cna_choose_local(struct cna_node *node, struct cna_node *next,
						struct cna_search *search, struct cna_policy policy)
{
	struct cna_node *local;

	if (!node->secondary_queue && node->skip)
		return cna_transfer(next, NULL, 0, node->skip - 1);
	if (node->secondary_queue && !cna_may_defer(node->left))
		return NULL;
	local = cna_find_successor(node, next, search, policy.threshold);
	if (!local)
		return NULL;
	w_event(handover_local);
	return cna_transfer(local, node->secondary_queue,
			    node->secondary_queue ? node->left - !W_THRESHOLD : 0, 0);
}

/* Returns @node's successor if it has none of its domain. Figure 4, lines 45-49. */
static inline struct cna_node *cna_choose_remote(struct cna_node *node, struct cna_node *next,
						 struct cna_policy policy)
{
	struct cna_node *second = node->secondary_queue;

	w_event(handover_remote);
	if (second) {
		w_event(flush);
		/* relaxed: as in cna_move_to_secondary() */
		w_store_relaxed(&second->secondary_tail->mcs.next, &next->mcs);
		next = second;
	}
	return cna_transfer(next, NULL, 0,
			    policy.reduction ? w_random() % (policy.reduction + 1) : 0);
}

/*
 * Chooses @node's successor before the release, if later arrivals cannot change it. Called by the
 * holder, any number of times until it returns true.
 */
static inline bool cna_look_ahead(struct cna_node *node, struct cna_search *search,
				  struct cna_policy policy)
{
	struct cna_node *next = cna_node_of(mcs_queue_next(&node->mcs));

	if (next)
		search->successor = cna_choose_local(node, next, search, policy);
	return search->successor;
}

/*
 * @node -> secondary_tail: splices the secondary queue into the place of the empty main queue.
 * Returns its head, the successor, or NULL if the main queue is not empty.
 */
static inline struct cna_node *cna_splice(struct cna *lock, struct cna_node *node)
{
	struct cna_node *second = node->secondary_queue;
	struct mcs_node *last = &node->mcs;

	/*
	 * [CNA-1] release: pairs with [MCS_QUEUE-3]; the secondary queue's last link, which the
	 * next arrival overwrites
	 */
	if (!w_compare_exchange_release(&lock->tail, &last, &second->secondary_tail->mcs))
		return NULL;
	w_event(flush);
	w_event(handover_remote);
	return cna_transfer(second, NULL, 0, 0);
}

/* Returns @node's successor, or NULL: the queue has ended. Figure 4, lines 26-49. */
static inline struct cna_node *cna_successor(struct cna *lock, struct cna_node *node,
					     struct cna_search *search, struct cna_policy policy)
{
	struct cna_node *next = cna_node_of(mcs_queue_next(&node->mcs)), *successor;

	if (!next) {
		successor = node->secondary_queue ? cna_splice(lock, node) : NULL;
		if (successor)
			return successor;
		if (!node->secondary_queue && mcs_queue_end(&lock->tail, &node->mcs))
			return NULL;
		next = cna_node_of(mcs_queue_await_next(&node->mcs, policy.wait));
	}
	successor = cna_choose_local(node, next, search, policy);
	return successor ? successor : cna_choose_remote(node, next, policy);
}

/*
 * Grants @lock to a waiter that has not left, if there is one: to the successor of @search if it
 * has one. Figure 4.
 */
static W_SLOW void cna_hand_over(struct cna *lock, struct cna_node *node, struct cna_search search,
				 struct cna_policy policy)
{
	struct cna_node *successor;
	bool granted;

	do {
		successor = search.successor ? search.successor
					     : cna_successor(lock, node, &search, policy);
		granted = !successor || node_grant(&successor->mcs.status, policy.wait);
		node_free(&node->mcs.status);
		node = successor;
		search = (struct cna_search){NULL, NULL};
	} while (!granted);
}

/* Releases @lock, held with @node. */
static inline void cna_release(struct cna *lock, struct cna_node *node, struct cna_policy policy)
{
	/* relaxed: cna_hand_over() reads it again */
	if (w_unlikely(node->secondary_queue || w_load_relaxed(&node->mcs.next) ||
		       !mcs_queue_leave(&lock->tail, &node->mcs)))
		cna_hand_over(lock, node, (struct cna_search){NULL, NULL}, policy);
}

/* As cna_release(), after cna_look_ahead(). */
static inline void cna_release_ahead(struct cna *lock, struct cna_node *node,
				     struct cna_search search, struct cna_policy policy)
{
	if (w_likely(search.successor) && policy.wait == WAIT_SPIN) {
		(void)node_grant(&search.successor->mcs.status, WAIT_SPIN);
		node_free(&node->mcs.status);
	} else {
		cna_hand_over(lock, node, search, policy);
	}
}

/* In a forked child, discards all waiters of @node, which holds @lock. */
static inline void cna_drop_waiters(struct cna *lock, struct cna_node *node)
{
	node->secondary_queue = NULL;
	node->left = 0;
	mcs_queue_drop_waiters(&lock->tail, &node->mcs);
}

#endif
