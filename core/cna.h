/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CNA: MCS in one word whose holder sends waiters of other domains to a second queue, so that the lock and the data it
 * protects stay in one domain for a while.
 *
 * From: Dice and Kogan, "Compact NUMA-aware locks", EuroSys'19, figures 2-5 and both optimisations of section 6.
 * Changed: the figures' `spin` word, which is the flag and the second queue's head at once, is two fields, so that a
 * waiter can sleep on the flag. The counts that decide when the second queue comes back, and when to begin one, travel
 * with the lock instead of lying in a thread: the bound on local hand-overs is then exact, not only likely. A waiter may
 * yield or sleep on its node, and leave at a deadline (wait.h).
 *
 * Promises: mutual exclusion; a waiter in the second queue is passed by at most `threshold` local hand-overs before the
 * second queue moves to the front as it stands. Blocking under wait=park. 8 bytes a lock, a node a waiter and a holder.
 * Atomic read-modify-writes: as MCS.
 *
 *   tail ─────────────────────────────────────┐
 *                                             ▼
 *   [holder] ─next─▶ [waiter] ─ ... ─next─▶ [waiter]
 *      │
 *      └─second─▶ [waiter] ─ ... ─next─▶ [waiter] ─next─▶ NULL        all of other domains than the holder's
 *                    └───────second_tail─────▲
 *
 *   tail   holder's next   holder's second   means
 *   NULL   -               -                 free
 *   n      NULL            NULL              n holds the lock, nobody waits (or has linked itself)
 *   n      NULL            s                 only waiters of other domains: the release makes s's queue the main one
 *   n      m               NULL              as MCS
 *   n      m               s                 both; `left` local hand-overs more before s's queue comes back
 *
 * Only the holder reads or writes second, second_tail, left and skip, in its own node, in its successor's and in those
 * of the second queue; the grant passes that right on.
 */
#ifndef POUNDLOCK_CNA_H
#define POUNDLOCK_CNA_H

#include "part/wait.h"

struct cna_node {
	W_ATOMIC(uint32_t) status;
	int32_t domain; /* CNA_NO_DOMAIN until its thread has to wait */
	W_ATOMIC(struct cna_node *) next;
	struct cna_node *second;
	struct cna_node *second_tail; /* in the first node of the second queue */
	uint32_t left;                /* local hand-overs until the second queue comes back */
	uint32_t skip;                /* hand-overs in order of arrival until a second queue may begin */
};

struct cna {
	W_TAIL(struct cna_node) tail;
};

struct cna_policy {
	enum wait wait;
	uint32_t threshold; /* the most local hand-overs while the second queue waits; at least 1 */
	uint32_t reduction; /* the most hand-overs in order of arrival before a second queue begins; 0: begin at once */
};

#define cna_settings(S) S(cna, threshold, 65535, 1, UINT32_MAX - 1) S(cna, reduction, 127, 0, UINT32_MAX - 1)
#define cna_bytes sizeof(struct cna), sizeof(struct cna_node), sizeof(struct cna_node)

#define CNA_NO_DOMAIN (-1)

static inline void cna_node_init(struct cna_node *node)
{
	node->domain = CNA_NO_DOMAIN;
	node->second = NULL;
	node->left = 0;
	node->skip = 0;
	/* relaxed, both: [CNA-1] or [CNA-3] publishes them */
	w_store_relaxed(&node->status, NODE_WAITING);
	w_store_relaxed(&node->next, NULL);
}

/* Takes @lock with @node if it is free. */
static inline bool cna_try_acquire(struct cna *lock, struct cna_node *node)
{
	struct cna_node *seen = NULL;

	/* relaxed: only a hint that spares the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->tail))
		return false;
	cna_node_init(node);
	/* [CNA-1] acq_rel: acquire pairs with [CNA-6]; the last holder's critical section. Release
	 * pairs with [CNA-3]: our node */
	if (w_compare_exchange_acq_rel(&lock->tail, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Takes @lock by polling until the deadline. */
static W_SLOW bool cna_poll(struct cna *lock, struct cna_node *node, const struct w_deadline *deadline)
{
	do {
		if (cna_try_acquire(lock, node))
			return true;
		/* [CNA-2] acquire: pairs with nothing; cna_try_acquire reads again */
		(void)w_wait_acquire(&lock->tail, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/* Takes @lock. False, with @node left to its pool, if @deadline (NULL: never) passed first. Figure 3. */
static inline bool cna_acquire(struct cna *lock, struct cna_node *node, struct cna_policy policy,
			       const struct w_deadline *deadline)
{
	struct cna_node *previous;

	if (policy.wait == WAIT_SPIN && deadline)
		return cna_poll(lock, node, deadline);
	cna_node_init(node);
	/*
	 * [CNA-3] acq_rel: acquire pairs with [CNA-1], [CNA-3]: the predecessor's node, which we
	 * write; and with [CNA-6], [CNA-7]: the last holder's critical section, and the end of the
	 * queue that it made. Release pairs with [CNA-3]: our node
	 */
	previous = w_exchange_acq_rel(&lock->tail, node);
	if (!previous)
		return true;
	node->domain = w_domain();
	/* [CNA-4] release: pairs with [CNA-8], [CNA-5], [CNA-9]; our node's domain */
	w_store_release(&previous->next, node);
	return node_wait(&node->status, policy.wait, deadline);
}

/* Moves the waiters from @first to @last, whose next is known, from the main queue to the end of @node's second one. */
static inline void cna_defer(struct cna_node *node, struct cna_node *first, struct cna_node *last, uint32_t threshold)
{
	/* relaxed, both: only holders walk these links, and the grant or [CNA-7] orders them */
	w_store_relaxed(&last->next, NULL);
	if (node->second) {
		w_store_relaxed(&node->second->second_tail->next, first);
	} else {
		node->second = first;
		node->left = 1 + w_random() % threshold;
	}
	node->second->second_tail = last;
	w_event(secondary);
}

/* The first waiter from @next on in @node's domain, or NULL. Those before it go to the second queue. Figure 5. */
static inline struct cna_node *cna_find_local(struct cna_node *node, struct cna_node *next, uint32_t threshold)
{
	struct cna_node *last = NULL, *current = next;
	int32_t domain = node->domain == CNA_NO_DOMAIN ? w_domain() : node->domain;

	while (current && current->domain != domain) {
		last = current;
		/* [CNA-5] acquire: pairs with [CNA-4]; the domain of the waiter there */
		current = w_load_acquire(&current->next);
	}
	if (current && last)
		cna_defer(node, next, last, threshold);
	return current;
}

/* Tells @next, the successor-to-be, what travels with the lock. */
static inline struct cna_node *cna_bequeath(struct cna_node *next, struct cna_node *second, uint32_t left,
					    uint32_t skip)
{
	next->second = second;
	next->left = left;
	next->skip = skip;
	return next;
}

/* Chooses @node's successor, @next being the next in the main queue. Figure 4, lines 38-49. */
static inline struct cna_node *cna_choose(struct cna_node *node, struct cna_node *next, struct cna_policy policy)
{
	struct cna_node *local, *second;

	if (!node->second && node->skip)
		return cna_bequeath(next, NULL, 0, node->skip - 1);
	if (!node->second || node->left) {
		local = cna_find_local(node, next, policy.threshold);
		if (local) {
			w_event(handover_local);
			return cna_bequeath(local, node->second, node->second ? node->left - 1 : 0, 0);
		}
	}
	w_event(handover_remote);
	second = node->second;
	if (second) {
		w_event(flush);
		/* relaxed: as in cna_defer */
		w_store_relaxed(&second->second_tail->next, next);
		next = second;
	}
	return cna_bequeath(next, NULL, 0, policy.reduction ? w_random() % (policy.reduction + 1) : 0);
}

/* Makes @lock free if nobody is behind @node, which holds it, and its second queue is empty. */
static inline bool cna_leave(struct cna *lock, struct cna_node *node)
{
	struct cna_node *last = node;

	/* [CNA-6] release: pairs with [CNA-1], [CNA-3]; our critical section */
	if (!w_compare_exchange_release(&lock->tail, &last, NULL))
		return false;
	node_free(&node->status);
	return true;
}

/* Gives the second queue the main one's place, if nobody is behind @node there: its head, the successor, or NULL. */
static inline struct cna_node *cna_replace(struct cna *lock, struct cna_node *node)
{
	struct cna_node *last = node, *second = node->second;

	/* [CNA-7] release: pairs with [CNA-3]; the second queue's last link, which the next arrival
	 * overwrites */
	if (!w_compare_exchange_release(&lock->tail, &last, second->second_tail))
		return NULL;
	w_event(flush);
	w_event(handover_remote);
	return cna_bequeath(second, NULL, 0, 0);
}

/* Gives @lock to a waiter that is still there, if there is one. Figure 4. */
static W_SLOW void cna_hand_over(struct cna *lock, struct cna_node *node, struct cna_policy policy)
{
	struct cna_node *next, *successor;
	bool granted;

	do {
		successor = NULL;
		/* [CNA-8] acquire: pairs with [CNA-4]; the successor's node */
		next = w_load_acquire(&node->next);
		if (!next) {
			if (node->second)
				successor = cna_replace(lock, node);
			else if (cna_leave(lock, node))
				return;
		}
		if (!next && !successor)
			/* [CNA-9] acquire: pairs with [CNA-4], as [CNA-8] */
			next = w_wait_acquire(&node->next, VAL != NULL, wait_soon(policy.wait), NULL);
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
	/* relaxed: cna_hand_over reads again */
	if (w_unlikely(node->second || w_load_relaxed(&node->next) || !cna_leave(lock, node)))
		cna_hand_over(lock, node, policy);
}

/* In a forked child: drops all waiters of @node, which holds @lock; their threads do not exist here. */
static inline void cna_drop_waiters(struct cna *lock, struct cna_node *node)
{
	node->second = NULL;
	node->left = 0;
	/* relaxed, both: [GENERATION-3] publishes what is repaired, once */
	w_store_relaxed(&lock->tail, node);
	w_store_relaxed(&node->next, NULL);
}

#endif
