/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * HMCS: a tree of MCS locks along the machine's levels. Who releases passes to a neighbour at the lowest level where
 * one waits, up to a threshold there, and only then to the level above.
 *
 * From: Chabbi, Fagan and Mellor-Crummey, "High performance locks for multi-level NUMA systems", PPoPP'15: HMCS<N>. The
 * leaves are the domains; above them are the parts of the machine that have several domains, if it has such (cores in L3
 * groups in packages, by what a domain is), and the root.
 * Changed, and why:
 *  - A place's node in the queue above is not the place's, but one of the thread that entered it there, from its pool;
 *    it stays with the place until its turn ends, whoever ends it. So a release that ends turns can leave the leaf first and
 *    the root last: in the paper's order it still writes to the leaf's queue when another domain has the lock, and may have
 *    freed it.
 *  - The count of passes lies in the place, where the paper hands it on in the successor's status, so that a waiter can
 *    sleep on its status (wait.h).
 *  - trylock and timed waiters, who poll, take the root alone with their own node.
 *
 * Promises: mutual exclusion; within a domain first come, first served, and domains, and the parts they are in, in order of
 * their arrival a level above: a waiter that is next in its domain is passed by at most (P - 1) * (batch + 1) turns of the P
 * places beside its own at each level, a turn being of up to batch + 1 of the level below; but for trylock and timed waits.
 * Blocking under wait=park. 64 bytes a lock and 64 a place in its box; a node a waiter, and one more for each level
 * entered; a node a holder, and one for each level but the root. Atomic read-modify-writes: 2 a level uncontended, within a
 * batch as MCS.
 *
 *   root    tail ──▶ [node of part 1's turn] ...
 *   part 0  tail ──▶ [node of leaf 0's turn] ...    up: its node in the root's queue   passed   owns
 *   leaf 0  tail ──▶ [waiter]                       up: its node in part 0's queue     passed   owns
 *   leaf 1  tail ──▶ [holder] ◀─ [waiter]
 *
 *   a place's queue   owns    up             means, for the place
 *   empty             -       -              nobody is here
 *   n is first        false   in the queue   n waits for the level above, or has the lock
 *   n is first        true    the holder's   the lock was passed on to n, which is about to see it
 *
 * up, above, passed and owns belong to the first of the place's queue, `last` to the lock's holder. A leaf may be in another
 * part each turn: who enters says in which.
 */
#ifndef POUNDLOCK_HMCS_H
#define POUNDLOCK_HMCS_H

#include "mcs.h"

struct hmcs_place {
	_Alignas(64) struct mcs queue;
	struct mcs_node *up;
	struct hmcs_place *above; /* in whose queue `up` is; NULL: the root's */
	uint32_t passed;          /* how often the lock was passed on since the place took it */
	bool owns;                /* whether who comes first in the queue has the lock with it */
	struct {                  /* cst.h: waiters taken out of the queue because they sleep */
		struct mcs_node *first, *last;
		uint32_t left; /* how often they may still be passed */
	} asleep;
};

struct hmcs {
	_Alignas(64) struct mcs root;
	struct hmcs_place *last;   /* the leaf that the lock was last taken through */
	uint32_t places[W_LEVELS]; /* of each level, which lie one behind the other; 0: it is left out */
};

struct hmcs_node {
	struct mcs_node mcs;
	struct hmcs_place *leaf; /* that the lock was taken through; NULL: past them */
};

struct hmcs_policy {
	enum wait wait;
	uint32_t batch;  /* how often in a row a place may pass the lock on within itself: the paper's threshold */
	uint32_t levels; /* the root's among them, that are used at most */
};

#define hmcs_settings(S) S(hmcs, batch, 64, 1, UINT32_MAX) S(hmcs, levels, 4, 2, UINT32_MAX)
#define hmcs_bytes \
	0, sizeof(struct hmcs_node) + sizeof(struct mcs_node), sizeof(struct hmcs_node) + sizeof(struct mcs_node)

static inline struct hmcs_place *hmcs_places(struct hmcs *lock)
{
	return (struct hmcs_place *)(lock + 1);
}

static inline size_t hmcs_size(void)
{
	size_t places = w_domain_count();

	for (uint32_t level = 1; level < W_LEVELS; level++)
		places += w_domain_parents(level);
	return sizeof(struct hmcs) + places * sizeof(struct hmcs_place);
}

/* Levels for which there is no room are left out: cst.h makes room for leaves alone. */
static inline void hmcs_init(struct hmcs *lock, size_t size)
{
	uint32_t room = (uint32_t)((size - sizeof(struct hmcs)) / sizeof(struct hmcs_place)), most = w_domain_count();

	lock->places[0] = most < room ? most : room;
	for (uint32_t level = 1; level < W_LEVELS; level++) {
		room -= lock->places[level - 1];
		most = w_domain_parents(level);
		lock->places[level] = most <= room ? most : 0;
	}
}

static inline uint32_t hmcs_count(const struct hmcs *lock)
{
	uint32_t count = 0;

	for (uint32_t level = 0; level < W_LEVELS; level++)
		count += lock->places[level];
	return count;
}

/* Takes @lock if it is free. A node that was not taken is left as it is: nothing would release a store to it. */
static inline bool hmcs_try_acquire(struct hmcs *lock, struct hmcs_node *node)
{
	if (!mcs_try_acquire(&lock->root, &node->mcs))
		return false;
	node->leaf = NULL;
	return true;
}

/* The place of @domain at the first level above @below that @lock has, or NULL: the root is next. */
static inline struct hmcs_place *hmcs_above(struct hmcs *lock, int32_t domain, uint32_t *below, uint32_t levels)
{
	struct hmcs_place *places = hmcs_places(lock);

	for (uint32_t level = 0; level < W_LEVELS && level + 1 < levels; places += lock->places[level++]) {
		if (level > *below && lock->places[level]) {
			*below = level;
			return &places[w_domain_parent(level, domain) % lock->places[level]];
		}
	}
	return NULL;
}

/* Takes the root through @leaf, of @domain. */
static inline void hmcs_climb(struct hmcs *lock, struct hmcs_place *leaf, int32_t domain, struct mcs_node *mine,
			      struct hmcs_policy policy)
{
	uint32_t level = 0;

	for (struct hmcs_place *place = leaf; place; place = place->above) {
		(void)mcs_acquire(&place->queue, mine, (struct mcs_policy){policy.wait}, NULL);
		if (place->owns) {
			place->owns = false;
			return;
		}
		mine = place->up = w_node_get();
		place->above = hmcs_above(lock, domain, &level, policy.levels);
	}
	(void)mcs_acquire(&lock->root, mine, (struct mcs_policy){policy.wait}, NULL);
}

/* Takes @lock. False, with @node left to its pool, if @deadline (NULL: never) passed first. */
static inline bool hmcs_acquire(struct hmcs *lock, struct hmcs_node *node, struct hmcs_policy policy,
				const struct w_deadline *deadline)
{
	int32_t domain;

	if (deadline) {
		if (!mcs_poll(&lock->root, &node->mcs, deadline))
			return false;
		node->leaf = NULL;
		return true;
	}
	domain = w_domain();
	node->leaf = &hmcs_places(lock)[(uint32_t)domain % lock->places[0]];
	hmcs_climb(lock, node->leaf, domain, &node->mcs, policy);
	if (lock->last != node->leaf) {
		if (lock->last)
			w_event(handover_remote);
		lock->last = node->leaf;
	}
	return true;
}

/* Notes whether @place's first passes the lock on to who is @behind it; if not, the node to leave the level above with. */
static inline struct mcs_node *hmcs_end_turn(struct hmcs_place *place, bool behind, uint32_t batch)
{
	bool pass = behind && place->passed < batch;

	if (behind && !pass)
		w_event(batch);
	place->owns = pass;
	place->passed = pass ? place->passed + 1 : 0;
	return pass ? NULL : place->up;
}

static inline void hmcs_count_pass(bool within_a_domain)
{
	if (within_a_domain)
		w_event(handover_local);
	else
		w_event(handover_near);
}

/* Releases @lock, held with @node: places from the leaf up, until one passes the lock on; the root last. */
static inline void hmcs_release(struct hmcs *lock, struct hmcs_node *node, struct hmcs_policy policy)
{
	const struct mcs_policy mcs = {policy.wait};
	struct hmcs_place *place = node->leaf, *above;
	struct mcs_node *mine = &node->mcs, *up;
	bool within_a_domain = true;

	for (; place; place = above, mine = up, within_a_domain = false) {
		above = place->above;
		/* relaxed: a hint, which may miss a newcomer */
		up = hmcs_end_turn(place, w_load_relaxed(&mine->next), policy.batch);
		mcs_release(&place->queue, mine, mcs);
		if (!up) {
			hmcs_count_pass(within_a_domain);
			return;
		}
	}
	mcs_release(&lock->root, mine, mcs);
}

/* The node with which @lock's holder, of @node, stands in @place's queue (NULL: the root's); NULL if it does not. */
static inline struct mcs_node *hmcs_stands(struct hmcs_node *node, const struct hmcs_place *place)
{
	struct mcs_node *mine = &node->mcs;
	struct hmcs_place *at = node->leaf;

	for (; at && at != place; at = at->above)
		mine = at->up;
	return at == place ? mine : NULL;
}

/* In a forked child: drops all waiters of @lock, which is held with @node; their threads do not exist here. */
static inline void hmcs_drop_waiters(struct hmcs *lock, struct hmcs_node *node)
{
	for (uint32_t i = 0; i < hmcs_count(lock); i++) {
		struct hmcs_place *place = &hmcs_places(lock)[i];
		struct mcs_node *mine = hmcs_stands(node, place);

		place->owns = false;
		place->asleep.first = NULL;
		if (mine) {
			mcs_drop_waiters(&place->queue, mine);
			continue;
		}
		place->passed = 0;
		/* relaxed: [GENERATION-3] publishes what is repaired, once */
		w_store_relaxed(&place->queue.tail, NULL);
	}
	mcs_drop_waiters(&lock->root, hmcs_stands(node, NULL));
}

#endif
