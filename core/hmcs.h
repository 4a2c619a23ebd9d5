/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * HMCS: a tree of MCS locks along the machine's levels. Who releases passes to a neighbour at the lowest level where
 * one waits, up to a threshold there, and only then to the level above.
 *
 * From: Chabbi, Fagan and Mellor-Crummey, "High performance locks for multi-level NUMA systems", PPoPP'15. Here of two
 * levels, HMCS<2>: a leaf for each domain, and the root.
 * Changed, and why:
 *  - A leaf's node in the root's queue is not the leaf's, but one of the thread that entered it there, from its pool;
 *    it stays with the leaf until the turn of the domain ends, whoever ends it. So a release that ends a turn can leave the
 *    leaf first and the root last: in the paper's order it still writes to the leaf's queue when another domain has the lock,
 *    and may have freed it.
 *  - The count of passes lies in the leaf, where the paper hands it on in the successor's status, so that a waiter can
 *    sleep on its status (wait.h).
 *  - trylock and timed waiters, who poll, take the root alone with their own node.
 *
 * Promises: mutual exclusion; within a domain first come, first served, and the domains in order of their arrival at the
 * root: with D domains, a waiter that is next in its own is passed by at most (D - 1) * (batch + 1) acquisitions of the
 * others, but for trylock and timed waits. Blocking under wait=park. 64 bytes a lock and 64 a domain in its box; a node a
 * waiter, and up to one more for the domain; a node a holder, and one for its domain. Atomic read-modify-writes: 4
 * uncontended, within a batch as MCS.
 *
 *   root    tail ──▶ [node of domain 1's turn] ...
 *   leaf 0  tail ──▶ [waiter]            up: the node in the root's queue   passed   owns
 *   leaf 1  tail ──▶ [holder] ◀─ [waiter]
 *
 *   leaf's queue   owns    up             means, for its domain
 *   empty          -       -              nobody is here
 *   n is first     false   in the queue   n waits for the root, or has the lock
 *   n is first     true    the holder's   the lock was passed on to n, which is about to see it
 *
 * up, passed and owns belong to the first of the leaf's queue, `last` to the lock's holder.
 */
#ifndef POUNDLOCK_HMCS_H
#define POUNDLOCK_HMCS_H

#include "mcs.h"

struct hmcs_leaf {
	_Alignas(64) struct mcs queue;
	struct mcs_node *up;
	uint32_t passed; /* how often the lock was passed on since the domain took it */
	bool owns;       /* whether who comes first in the queue has the lock with it */
	struct {         /* cst.h: waiters taken out of the queue because they sleep */
		struct mcs_node *first, *last;
		uint32_t left; /* how often they may still be passed */
	} asleep;
};

struct hmcs {
	_Alignas(64) struct mcs root;
	struct hmcs_leaf *last; /* the leaf that the lock was last taken through */
	uint32_t leaves;
};

struct hmcs_node {
	struct mcs_node mcs;
	struct hmcs_leaf *leaf; /* that the lock was taken through; NULL: past them */
};

struct hmcs_policy {
	enum wait wait;
	uint32_t batch; /* how often in a row a domain may pass the lock on within itself: the paper's threshold */
};

#define hmcs_settings(S) S(hmcs, batch, 64, 1, UINT32_MAX, 1)
#define hmcs_bytes \
	0, sizeof(struct hmcs_node) + sizeof(struct mcs_node), sizeof(struct hmcs_node) + sizeof(struct mcs_node)

static inline struct hmcs_leaf *hmcs_leaves(struct hmcs *lock)
{
	return (struct hmcs_leaf *)(lock + 1);
}

static inline size_t hmcs_size(void)
{
	return sizeof(struct hmcs) + w_domain_count() * sizeof(struct hmcs_leaf);
}

static inline void hmcs_init(struct hmcs *lock, size_t size)
{
	lock->leaves = (uint32_t)((size - sizeof(struct hmcs)) / sizeof(struct hmcs_leaf));
}

/* Takes @lock if it is free. */
static inline bool hmcs_try_acquire(struct hmcs *lock, struct hmcs_node *node)
{
	node->leaf = NULL;
	return mcs_try_acquire(&lock->root, &node->mcs);
}

/* Takes @lock. False, with @node left to its pool, if @deadline (NULL: never) passed first. */
static inline bool hmcs_acquire(struct hmcs *lock, struct hmcs_node *node, struct hmcs_policy policy,
				const struct w_deadline *deadline)
{
	const struct mcs_policy mcs = {policy.wait};
	struct hmcs_leaf *leaf;

	node->leaf = NULL;
	if (deadline)
		return mcs_poll(&lock->root, &node->mcs, deadline);
	leaf = node->leaf = &hmcs_leaves(lock)[(uint32_t)w_domain() % lock->leaves];
	(void)mcs_acquire(&leaf->queue, &node->mcs, mcs, NULL);
	if (leaf->owns) {
		leaf->owns = false;
		return true;
	}
	leaf->up = w_node_get();
	(void)mcs_acquire(&lock->root, leaf->up, mcs, NULL);
	if (lock->last != leaf) {
		if (lock->last)
			w_event(handover_remote);
		lock->last = leaf;
	}
	return true;
}

/* Notes whether @leaf's first passes the lock on to who is @behind it; if not, the node to leave the root with. */
static inline struct mcs_node *hmcs_end_turn(struct hmcs_leaf *leaf, bool behind, uint32_t batch)
{
	bool pass = behind && leaf->passed < batch;

	if (pass)
		w_event(handover_local);
	else if (behind)
		w_event(batch);
	leaf->owns = pass;
	leaf->passed = pass ? leaf->passed + 1 : 0;
	return pass ? NULL : leaf->up;
}

/* Releases @lock, held with @node. */
static inline void hmcs_release(struct hmcs *lock, struct hmcs_node *node, struct hmcs_policy policy)
{
	const struct mcs_policy mcs = {policy.wait};
	struct hmcs_leaf *leaf = node->leaf;
	struct mcs_node *up = &node->mcs;

	if (leaf) {
		/* relaxed: a hint, which may miss a newcomer */
		up = hmcs_end_turn(leaf, w_load_relaxed(&node->mcs.next), policy.batch);
		mcs_release(&leaf->queue, &node->mcs, mcs);
	}
	if (up)
		mcs_release(&lock->root, up, mcs);
}

/* In a forked child: drops all waiters of @lock, which is held with @node; their threads do not exist here. */
static inline void hmcs_drop_waiters(struct hmcs *lock, struct hmcs_node *node)
{
	for (uint32_t i = 0; i < lock->leaves; i++) {
		struct hmcs_leaf *leaf = &hmcs_leaves(lock)[i];

		leaf->owns = false;
		leaf->asleep.first = NULL;
		if (leaf == node->leaf) {
			mcs_drop_waiters(&leaf->queue, &node->mcs);
			continue;
		}
		leaf->passed = 0;
		/* relaxed: there is one thread only */
		w_store_relaxed(&leaf->queue.tail, NULL);
	}
	mcs_drop_waiters(&lock->root, node->leaf ? node->leaf->up : &node->mcs);
}

#endif
