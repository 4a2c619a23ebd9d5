/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Malthusian (MCSCR): MCS that restricts how many threads circulate over the lock: more waiters than keep it busy are set
 * aside, where they cost no CPU, cache or hand-over.
 *
 * From: Dice, "Malthusian locks", EuroSys'17, section 5 (MCSCR).
 * Changed: the paper's passive set lies in the lock, here it travels with the lock from holder to holder, as CNA's second
 * queue does (cna.h): the lock stays one word, and an idle one costs nothing more than MCS. The paper draws at random, one
 * in 1,000 times, when the eldest of the passive set gets the lock; here the hand-overs are counted, so that the bound is
 * exact. A waiter may yield or sleep on its node, and leave at a deadline (wait.h).
 *
 * Promises: mutual exclusion; no order for a while: a waiter set aside when `p` others were is passed by at most
 * (p + 1) * (`patience` + 1) hand-overs, as each `patience` of them the eldest gets the lock; one in the main queue by
 * at most one of the passive set each `patience`. No lock is free while somebody waits. Blocking under wait=park. 8
 * bytes a lock, a node a waiter and a holder. Atomic read-modify-writes: as MCS.
 *
 *   tail ─────────────────────────────────────┐
 *                                             ▼
 *   [holder] ─next─▶ [waiter] ─ ... ─next─▶ [waiter]                  circulating
 *      │ │
 *      │ └─passive─▶ [youngest] ─next─▶ ... ─next─▶ [eldest]          set aside; `elder` of each names the one before it
 *      └───eldest────────────────────────────────────▲
 *
 *   tail   holder's next   passive   at the release
 *   NULL   -               -         free
 *   n      NULL            NULL      the lock becomes free
 *   n      NULL            p         p, the youngest, comes back and gets the lock: nobody else wants it
 *   n      m, not the last any       m is set aside, the one behind it gets the lock
 *   n      m, the last     any       m gets the lock
 *   n      any             p, left 0 the eldest comes back and gets the lock
 *
 * Only the holder reads or writes passive, eldest and left, in its own node and in its successor's, and links of nodes
 * that are set aside; the grant passes that right on.
 */
#ifndef POUNDLOCK_MALTHUSIAN_H
#define POUNDLOCK_MALTHUSIAN_H

#include "part/wait.h"

struct malthusian_node {
	W_ATOMIC(uint32_t) status;
	uint32_t left; /* hand-overs until the eldest of the passive set gets the lock */
	W_ATOMIC(struct malthusian_node *) next;
	struct malthusian_node *younger; /* in the passive set: whose next we are */
	struct malthusian_node *passive; /* the youngest of the passive set */
	struct malthusian_node *eldest;
};

struct malthusian {
	W_ATOMIC(struct malthusian_node *) tail;
};

struct malthusian_policy {
	enum wait wait;
	uint32_t patience; /* hand-overs from one return of the eldest waiter set aside to the next */
};

#define malthusian_settings(S) S(malthusian, patience, 1000, 1, UINT32_MAX - 1)
#define malthusian_bytes sizeof(struct malthusian), sizeof(struct malthusian_node), sizeof(struct malthusian_node)

static inline void malthusian_node_init(struct malthusian_node *node)
{
	node->left = 0;
	node->passive = NULL;
	node->eldest = NULL;
	/* relaxed, both: [MALTHUSIAN-1] or [MALTHUSIAN-3] publishes them */
	w_store_relaxed(&node->status, NODE_WAITING);
	w_store_relaxed(&node->next, NULL);
}

/* Takes @lock with @node if it is free. */
static inline bool malthusian_try_acquire(struct malthusian *lock, struct malthusian_node *node)
{
	struct malthusian_node *seen = NULL;

	/* relaxed: only a hint that spares the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->tail))
		return false;
	malthusian_node_init(node);
	/* [MALTHUSIAN-1] acq_rel: acquire pairs with [MALTHUSIAN-5]; the last holder's critical
	 * section. Release pairs with [MALTHUSIAN-3]: our node */
	if (w_compare_exchange_acq_rel(&lock->tail, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Takes @lock by polling until the deadline. */
static W_SLOW bool malthusian_poll(struct malthusian *lock, struct malthusian_node *node,
				   const struct w_deadline *deadline)
{
	do {
		if (malthusian_try_acquire(lock, node))
			return true;
		/* [MALTHUSIAN-2] acquire: pairs with nothing; malthusian_try_acquire reads again */
		(void)w_wait_acquire(&lock->tail, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/* Takes @lock. False, with @node left to its pool, if @deadline (NULL: never) passed first. */
static inline bool malthusian_acquire(struct malthusian *lock, struct malthusian_node *node,
				      struct malthusian_policy policy, const struct w_deadline *deadline)
{
	struct malthusian_node *previous;

	if (policy.wait == WAIT_SPIN && deadline)
		return malthusian_poll(lock, node, deadline);
	malthusian_node_init(node);
	/*
	 * [MALTHUSIAN-3] acq_rel: acquire pairs with [MALTHUSIAN-1], [MALTHUSIAN-3]: the
	 * predecessor's node, which we write; and with [MALTHUSIAN-5], [MALTHUSIAN-6]: the last
	 * holder's critical section, and the end of the queue that it made. Release pairs with
	 * [MALTHUSIAN-3]: our node
	 */
	previous = w_exchange_acq_rel(&lock->tail, node);
	if (!previous)
		return true;
	/* [MALTHUSIAN-4] release: pairs with [MALTHUSIAN-8], [MALTHUSIAN-10], [MALTHUSIAN-7],
	 * [MALTHUSIAN-9]; our node's fields */
	w_store_release(&previous->next, node);
	return node_wait(&node->status, policy.wait, deadline);
}

/* ---- The passive set, by the holder ---- */

/* Sets @waiter, who is out of the main queue, aside. */
static inline void malthusian_cull(struct malthusian_node *node, struct malthusian_node *waiter, uint32_t patience)
{
	w_event(cull);
	/* relaxed: only holders walk these links, and the grant or [MALTHUSIAN-6] orders them */
	w_store_relaxed(&waiter->next, node->passive);
	waiter->younger = NULL;
	if (node->passive) {
		node->passive->younger = waiter;
	} else {
		node->eldest = waiter;
		node->left = patience;
	}
	node->passive = waiter;
}

/* Takes the youngest out of @node's passive set. */
static inline struct malthusian_node *malthusian_take_youngest(struct malthusian_node *node)
{
	struct malthusian_node *youngest = node->passive;

	w_event(revive);
	node->left--;
	/* relaxed: as in malthusian_cull */
	node->passive = w_load_relaxed(&youngest->next);
	if (node->passive)
		node->passive->younger = NULL;
	else
		node->eldest = NULL;
	return youngest;
}

/* Takes the eldest out of @node's passive set. */
static inline struct malthusian_node *malthusian_take_eldest(struct malthusian_node *node, uint32_t patience)
{
	struct malthusian_node *eldest = node->eldest;

	w_event(revive_eldest);
	node->left = patience;
	node->eldest = eldest->younger;
	if (node->eldest)
		/* relaxed: as in malthusian_cull */
		w_store_relaxed(&node->eldest->next, NULL);
	else
		node->passive = NULL;
	return eldest;
}

/* ---- Release ---- */

/* Makes @lock free if nobody is behind @node, which holds it, and nobody is set aside. */
static inline bool malthusian_leave(struct malthusian *lock, struct malthusian_node *node)
{
	struct malthusian_node *last = node;

	/* [MALTHUSIAN-5] release: pairs with [MALTHUSIAN-1], [MALTHUSIAN-3]; our critical
	 * section */
	if (!w_compare_exchange_release(&lock->tail, &last, NULL))
		return false;
	node_free(&node->status);
	return true;
}

/* Puts @waiter, of the passive set, behind @node, whose next in the queue was last seen as @next. */
static inline void malthusian_graft(struct malthusian *lock, struct malthusian_node *node,
				    struct malthusian_node *waiter, struct malthusian_node *next, enum wait wait)
{
	struct malthusian_node *last = node;

	/* relaxed: [MALTHUSIAN-6] publishes it to who overwrites it, or the grant to its waiter */
	w_store_relaxed(&waiter->next, next);
	/* [MALTHUSIAN-6] release: pairs with [MALTHUSIAN-3]; the queue's last link, which the next
	 * arrival overwrites */
	if (next || w_compare_exchange_release(&lock->tail, &last, waiter))
		return;
	/* [MALTHUSIAN-7] acquire: pairs with [MALTHUSIAN-4]; the next waiter's node. relaxed: as
	 * above */
	w_store_relaxed(&waiter->next, w_wait_acquire(&node->next, VAL != NULL, wait_soon(wait), NULL));
}

/* Whom @node gives @lock to, who is then right behind it: NULL if there is nobody, and the lock is free. */
static inline struct malthusian_node *malthusian_choose(struct malthusian *lock, struct malthusian_node *node,
							struct malthusian_policy policy)
{
	/* [MALTHUSIAN-8] acquire: pairs with [MALTHUSIAN-4]; the successor's node */
	struct malthusian_node *next = w_load_acquire(&node->next), *second, *back;

	if (node->passive && (!next || !node->left)) {
		back = node->left ? malthusian_take_youngest(node) : malthusian_take_eldest(node, policy.patience);
		malthusian_graft(lock, node, back, next, policy.wait);
		return back;
	}
	if (!next) {
		if (malthusian_leave(lock, node))
			return NULL;
		/* [MALTHUSIAN-9] acquire: pairs with [MALTHUSIAN-4], as [MALTHUSIAN-8] */
		next = w_wait_acquire(&node->next, VAL != NULL, wait_soon(policy.wait), NULL);
	}
	if (node->passive)
		node->left--;
	/* [MALTHUSIAN-10] acquire: pairs with [MALTHUSIAN-4]; the node there */
	second = w_load_acquire(&next->next);
	if (!second)
		return next;
	malthusian_cull(node, next, policy.patience);
	return second;
}

/* Gives @lock to a waiter that is still there, if there is one. */
static W_SLOW void malthusian_hand_over(struct malthusian *lock, struct malthusian_node *node,
					struct malthusian_policy policy)
{
	struct malthusian_node *successor;
	bool granted;

	do {
		successor = malthusian_choose(lock, node, policy);
		if (!successor)
			return;
		successor->passive = node->passive;
		successor->eldest = node->eldest;
		successor->left = node->left;
		granted = node_grant(&successor->status, policy.wait);
		node_free(&node->status);
		node = successor;
	} while (!granted);
}

/* Releases @lock, held with @node. */
static inline void malthusian_release(struct malthusian *lock, struct malthusian_node *node,
				      struct malthusian_policy policy)
{
	/* relaxed: malthusian_hand_over reads again */
	if (w_unlikely(node->passive || w_load_relaxed(&node->next) || !malthusian_leave(lock, node)))
		malthusian_hand_over(lock, node, policy);
}

/* In a forked child: drops all waiters of @node, which holds @lock; their threads do not exist here. */
static inline void malthusian_drop_waiters(struct malthusian *lock, struct malthusian_node *node)
{
	node->passive = NULL;
	node->eldest = NULL;
	/* relaxed, both: [GENERATION-3] publishes what is repaired, once */
	w_store_relaxed(&lock->tail, node);
	w_store_relaxed(&node->next, NULL);
}

#endif
