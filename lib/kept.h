/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Locks whose holder keeps its queue node until it unlocks: the node comes from the thread's pool,
 * and a pointer beside the lock leads to it, so that any thread may unlock.
 */
#ifndef POUNDLOCK_KEPT_H
#define POUNDLOCK_KEPT_H

#include "all.h"
#include "part/disguise.h"
#include "part/generation.h"

/* A node of the pool, for whichever lock it is used. */
struct any_node {
	union {
		W_ATOMIC(uint32_t) status;
		struct mcs_node mcs;
		struct clh_node clh;
		struct c_bo_mcs_node c_bo_mcs;
		struct hmcs_node hmcs;
		struct cst_node cst;
		struct cna_node cna;
		struct malthusian_node malthusian;
		struct mcstp_node mcstp;
		struct reciprocating_node reciprocating;
		struct shfl_node shfl; /* of a waiter with a deadline */
		struct ron_node ron;   /* the same */
		struct cfl_node cfl;
	};
	/*
	 * Of a waiter or holder: the fork generation in which its queue is sound
	 * (part/generation.h).
	 */
	W_ATOMIC(uint32_t) generation;
};

/* A lock, and its holder's node. */
struct kept {
	void *lock[1];
	W_ATOMIC(struct any_node *) holder; /* disguised; NULL: none */
};

_Static_assert(sizeof(struct any_node) <= offsetof(struct w_node, chosen),
	       "a node must fit into the pool's");
_Static_assert(sizeof(struct kept) <= 16, "bytes 16 to 19 are the embedder's");

/* A node for an attempt to take a lock; kept_put() or kept_put_if() follows. */
static inline struct any_node *kept_new_node(void)
{
	struct any_node *node = w_node_choose();

	/* relaxed: a thread that reaches the node through its lock is ordered by the lock */
	w_store_relaxed(&node->generation, 2 * w_fork_generation());
	return node;
}

/* As the new holder of @kept, keeps @node. */
static inline void kept_put(struct kept *kept, struct any_node *node)
{
	w_node_settle(node);
	/* relaxed: whoever unlocks holds the lock */
	w_store_relaxed(&kept->holder, disguise(node));
}

/*
 * Keeps @node if @kept was @taken, which it returns. Otherwise the node is free, or still queued.
 */
static inline bool kept_put_if(bool taken, struct kept *kept, struct any_node *node)
{
	if (taken)
		kept_put(kept, node);
	else
		w_node_settle(node);
	return taken;
}

/* The node of the holder of @kept, which is about to release it. NULL if @kept is not held. */
static inline struct any_node *kept_take(struct kept *kept)
{
	/* relaxed: as in kept_put() */
	struct any_node *node = w_load_relaxed(&kept->holder);

	if (w_unlikely(!node))
		return NULL;
	/* release: pairs with the acquire in kept_drop_waiters(); the queue as it was made there */
	w_store_release(&kept->holder, NULL);
	return disguise(node);
}

typedef void (*kept_drop)(struct kept *kept, struct any_node *node);

/*
 * Drops the waiters of another process from a lock that is held since before the fork, unless that
 * is done.
 */
static W_SLOW void kept_drop_waiters(struct kept *kept, kept_drop drop)
{
	/*
	 * acquire: pairs with the release in kept_take(): of a lock that was released meanwhile,
	 * its queue
	 */
	struct any_node *holder = w_load_acquire(&kept->holder);

	/*
	 * A holder that has moved its node (preload/layout.h) is of this process, or never
	 * releases.
	 */
	if (!is_disguised(holder))
		return;
	holder = disguise(holder);
	if (!generation_claim(&holder->generation))
		return;
	drop(kept, holder);
	generation_settle(&holder->generation);
}

/* Called by a thread before it waits for @kept, and by the holder before the release. */
static inline void kept_check_fork(struct kept *kept, kept_drop drop)
{
	if (w_unlikely(w_fork_generation()))
		kept_drop_waiters(kept, drop);
}

#endif
