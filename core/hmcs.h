/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * HMCS: a tree of MCS locks along the machine's levels. A release hands over at the lowest level
 * where a thread waits, up to a threshold there, and only then at the level above.
 *
 * From: Chabbi, Fagan and Mellor-Crummey, "High performance locks for multi-level NUMA systems",
 * PPoPP'15: HMCS<N>. The leaves are the domains. Above them are the root, and the parts of the
 * machine that contain several domains, if there are any (such as cores in L3 groups in packages,
 * depending on what a domain is).
 *
 * Order: FIFO within a domain, in bounded batches; FIFO between domains.
 *
 * Promise: mutual exclusion; first come, first served within a domain; domains, and the parts that
 * contain them, in order of their arrival at the level above. A waiter that is next in its domain
 * is bypassed by at most (P - 1) * (batch + 1) turns of the P places at each level, where a turn is
 * up to batch + 1 of the level below; not counting trylock and timed waits. Waiters sleep under
 * wait=park. 64 bytes per lock and 64 per place, boxed; one node per waiter and one more per level
 * entered; one node per holder and one per level except the root. Atomic read-modify-writes: 2 per
 * level uncontended; as MCS within a batch.
 *
 *   root    tail ──▶ [node of part 1's turn] ...
 *   part 0  tail ──▶ [node of leaf 0's turn] ...    up: its node in the root's queue  passed  owns
 *   leaf 0  tail ──▶ [waiter]                       up: its node in part 0's queue    passed  owns
 *   leaf 1  tail ──▶ [holder] ◀─ [waiter]
 *
 *   a place's queue   owns    up             meaning, for the place
 *   empty             -       -              no thread is here
 *   n is first        false   in the queue   n waits for the level above, or holds the lock
 *   n is first        true    the holder's   the lock was passed to n, which is about to notice
 *
 * up, above, passed and owns belong to the first of the place's queue; `last` to the lock's holder.
 * A leaf may be in another part at each turn: the thread that enters decides.
 *
 * Departures from the paper:
 *  - A place's node in the queue above is not the place's own, but a pool node of the thread that
 *    entered it there. It stays with the place until its turn ends, whichever thread ends it. So a
 *    release that ends turns can leave the leaf first and the root last. In the paper's order it
 *    still writes to the leaf's queue when another domain holds the lock, and may have freed it.
 *  - The count of passes is in the place; the paper passes it in the successor's status. So a
 *    waiter can sleep on its status (part/wait.h).
 *  - One threshold (`batch`) holds for all levels.
 *  - trylock and timed waiters, which poll, take the root alone with their own node.
 */
#ifndef POUNDLOCK_HMCS_H
#define POUNDLOCK_HMCS_H

#include "mcs.h"

struct hmcs_place {
	_Alignas(64) struct mcs queue;
	struct mcs_node *up;
	struct hmcs_place *above; /* in whose queue `up` is; NULL: the root's */
	uint32_t passed;          /* consecutive hand-overs since the place took the lock */
	/* Whether the first of the queue gets the lock together with it. */
	bool owns;
	struct { /* cst.h: waiters removed from the queue because they sleep */
		struct mcs_node *first, *last;
		uint32_t left; /* how often they may still be bypassed */
	} asleep;
};

struct hmcs {
	_Alignas(64) struct mcs root;
	struct hmcs_place *last; /* the leaf through which the lock was last taken */
	/* Per level, stored one level after the other; 0: the level is left out. */
	uint32_t places[W_LEVELS];
};

struct hmcs_node {
	struct mcs_node mcs;
	struct hmcs_place *leaf; /* through which the lock was taken; NULL: past the leaves */
};

struct hmcs_policy {
	enum wait wait;
	uint32_t batch;  /* consecutive hand-overs within one place: the paper's threshold */
	uint32_t levels; /* most levels that are used, including the root */
};

#define hmcs_settings(S) S(hmcs, batch, 64, 1, UINT32_MAX) S(hmcs, levels, 4, 2, UINT32_MAX)
#define hmcs_bytes                                             \
	0, sizeof(struct hmcs_node) + sizeof(struct mcs_node), \
		sizeof(struct hmcs_node) + sizeof(struct mcs_node)

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

/* Levels for which there is no room are left out: cst.h makes room for leaves only. */
static inline void hmcs_init(struct hmcs *lock, size_t size)
{
	uint32_t room = (uint32_t)((size - sizeof(struct hmcs)) / sizeof(struct hmcs_place)),
		 most = w_domain_count();

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

/*
 * Takes @lock if it is free. Does not write to a node that fails: nothing would release such a
 * store.
 */
static inline bool hmcs_try_acquire(struct hmcs *lock, struct hmcs_node *node)
{
	if (!mcs_try_acquire(&lock->root, &node->mcs))
		return false;
	node->leaf = NULL;
	return true;
}

/*
 * Returns the place of @domain at the first level above *@below that @lock has, or NULL for the
 * root.
 */
static inline struct hmcs_place *hmcs_above(struct hmcs *lock, int32_t domain, uint32_t *below,
					    uint32_t levels)
{
	struct hmcs_place *places = hmcs_places(lock);

	for (uint32_t level = 0; level < W_LEVELS && level + 1 < levels;
	     places += lock->places[level++]) {
		if (level > *below && lock->places[level]) {
			*below = level;
			return &places[w_domain_parent(level, domain) % lock->places[level]];
		}
	}
	return NULL;
}

/* Takes the root through @leaf, of @domain. */
static inline void hmcs_climb(struct hmcs *lock, struct hmcs_place *leaf, int32_t domain,
			      struct mcs_node *mine, struct hmcs_policy policy)
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

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 */
static inline bool hmcs_acquire(struct hmcs *lock, struct hmcs_node *node,
				struct hmcs_policy policy, const struct w_deadline *deadline)
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

/*
 * Decides whether @place's first hands over within the place; @behind: there is a successor. If
 * not, returns the node with which to leave the level above.
 */
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

/*
 * Releases @lock, held with @node: the places from the leaf up, until one hands over; the root
 * last.
 */
static inline void hmcs_release(struct hmcs *lock, struct hmcs_node *node,
				struct hmcs_policy policy)
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

/*
 * The node of @lock's holder, of @node, in the queue of @place (NULL: the root); NULL if it has
 * none.
 */
static inline struct mcs_node *hmcs_stands(struct hmcs_node *node, const struct hmcs_place *place)
{
	struct mcs_node *mine = &node->mcs;
	struct hmcs_place *at = node->leaf;

	for (; at && at != place; at = at->above)
		mine = at->up;
	return at == place ? mine : NULL;
}

/*
 * In a forked child, discards all waiters of @lock, which is held with @node: their threads exist
 * only in the parent.
 */
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
		/* relaxed: one thread repairs; [GENERATION-3] publishes the result */
		w_store_relaxed(&place->queue.tail, NULL);
	}
	mcs_drop_waiters(&lock->root, hmcs_stands(node, NULL));
}

#endif
