/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * RON: the lock travels along a route over the CPUs, from each to the next one with a waiter.
 *
 * From: Lo et al., "RON", OSDI'23, section 4, algorithm 1. part/tour.h contains the tour.
 *
 * Order: the next on a tour of the CPUs; FIFO within a CPU.
 *
 * Promise: mutual exclusion. Places are served in the order of the tour, waiters of one place in
 * order of arrival. A waiter with k others before it at its place is overtaken by at most k + 1
 * waiters of each other place. Timed waiters under wait=spin poll, and have no place. Waiters sleep
 * under wait=park. A box of part/tour.h's size; a node of 16 bytes per waiter, none per holder.
 * Atomic read-modify-writes: 2 uncontended; contended 1 (the list) or 2 (and the word) to wait, and
 * 2 to hand over (the list, the grant; 1 under wait=spin), and 1 more if the place's group becomes
 * empty.
 *
 *   place   arrived ─▶ [last] ─next─▶ ... ─next─▶ [first]      pushed by arriving threads
 *           queue   ─▶ [first] ─next─▶ ... ─next─▶ [last]      the holder's: the reverse of arrived
 *
 * A push is one compare-exchange, and the holder takes all by one exchange. So it never waits for a
 * thread that has not finished arriving. A node leaves both lists before its status is granted; its
 * waiter may then return from its stack frame.
 *
 * Departures from the paper: algorithm 1 has one flag per CPU, for one thread. Two threads there
 * would share the flag, and one hand-over would admit both. Here the threads of a place queue, and
 * each waits on a word of its own. A waiter may yield, sleep, or leave at a deadline (part/wait.h).
 * part/tour.h lists the rest.
 */
#ifndef POUNDLOCK_RON_H
#define POUNDLOCK_RON_H

#include "part/tour.h"

/* On a stack, it has a cache line of its own, as in part/shuffle.h. */
struct ron_node {
	W_ATOMIC(uint32_t) status;
	struct ron_node *next;
};

struct ron_place {
	W_ATOMIC(uintptr_t) arrived;
	struct ron_node *queue;
};

struct ron {
	struct tour tour;
};

struct ron_policy {
	enum wait wait;
};

#define ron_settings(S)
#define ron_bytes sizeof(void *), sizeof(struct ron_node), 0

/* Tag in `arrived`: the node was not the only one. */
#define RON_MORE 1u

static inline struct ron_node *ron_node(uintptr_t arrived)
{
	return (struct ron_node *)(arrived & ~(uintptr_t)RON_MORE);
}

/* Enters @place with @node. */
static inline void ron_come(struct ron_place *place, struct ron_node *node)
{
	uintptr_t seen;

	/* relaxed, both: [RON-1] publishes them */
	w_store_relaxed(&node->status, NODE_WAITING);
	seen = w_load_relaxed(&place->arrived);
	do
		node->next = ron_node(seen);
	/* [RON-1] release: pairs with [RON-2]; our node */
	while (!w_compare_exchange_release(&place->arrived, &seen,
					   (uintptr_t)node | (seen ? RON_MORE : 0)));
}

/*
 * Removes and returns the first waiter of @place, or NULL. A waiter that arrived alone is not read:
 * its cache line moves to its granter once, to be written.
 */
static inline struct ron_node *ron_take(struct ron_place *place)
{
	struct ron_node *node = place->queue, *next;
	uintptr_t arrived;

	if (!node) {
		/* relaxed: only avoids taking the line */
		if (!w_load_relaxed(&place->arrived))
			return NULL;
		/* [RON-2] acquire: pairs with [RON-1]; the nodes */
		arrived = w_exchange_acquire(&place->arrived, 0);
		if (!(arrived & RON_MORE))
			return ron_node(arrived);
		for (struct ron_node *last = ron_node(arrived); last; last = next) {
			next = last->next;
			last->next = node;
			node = last;
		}
	}
	place->queue = node->next;
	return node;
}

static inline bool ron_waits(void *memory)
{
	struct ron_place *place = memory;

	/* relaxed: only a hint for the search */
	return w_load_relaxed(&place->arrived) || place->queue;
}

static inline bool ron_grant(void *memory, enum wait wait)
{
	struct ron_node *node;

	while ((node = ron_take(memory))) {
		if (node_grant(&node->status, wait))
			return true;
		node_free(&node->status);
	}
	return false;
}

static inline void ron_clear(void *memory)
{
	struct ron_place *place = memory;

	/* relaxed: [GENERATION-3] publishes it */
	w_store_relaxed(&place->arrived, 0);
	place->queue = NULL;
}

static const struct tour_kind ron_kind = {ron_waits, ron_grant, ron_clear};

_Static_assert(sizeof(struct ron_place) <= TOUR_PLACE_BYTES, "a place has room for it");

static inline size_t ron_size(void)
{
	return tour_size();
}

static inline void ron_init(struct ron *lock, size_t size)
{
	(void)size;
	tour_init(&lock->tour);
}

static W_SLOW void ron_hand_over(struct ron *lock, enum wait wait)
{
	tour_hand_over(&lock->tour, &ron_kind, wait);
}

/* Takes @lock if it is free. */
static inline bool ron_try_acquire(struct ron *lock)
{
	return tour_try_acquire(&lock->tour);
}

static inline bool ron_acquire_at_place(struct ron *lock, struct ron_node *node, enum wait wait,
					const struct w_deadline *deadline)
{
	uint32_t here = tour_here(&lock->tour);

	tour_drop_waiters(&lock->tour, &ron_kind);
	ron_come(tour_place(&lock->tour, here), node);
	if (tour_mark(&lock->tour, here))
		ron_hand_over(lock, wait);
	if (!node_wait(&node->status, wait, deadline))
		return false;
	node_free(&node->status);
	tour_arrive(&lock->tour, here);
	return true;
}

static W_SLOW bool ron_acquire_slow(struct ron *lock, enum wait wait,
				    const struct w_deadline *deadline)
{
	W_OWN_LINE struct ron_node node;

	if (wait_polls(wait, deadline))
		return tour_poll(&lock->tour, deadline);
	return ron_acquire_at_place(lock, w_waiter_node(&node, deadline), wait, deadline);
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool ron_acquire(struct ron *lock, struct ron_policy policy,
			       const struct w_deadline *deadline)
{
	return w_likely(ron_try_acquire(lock)) || ron_acquire_slow(lock, policy.wait, deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool ron_release(struct ron *lock, struct ron_policy policy)
{
	bool held = true;

	if (w_unlikely(!tour_leave(&lock->tour, &held)) && held)
		ron_hand_over(lock, policy.wait);
	return held;
}

#endif
