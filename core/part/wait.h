/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Waiting on a queue lock's own node, whatever the order of the queue. Shared by mcs.h, cna.h and
 * others.
 *
 *   SPIN   as in the papers: only pauses, and never yields. A timed wait does not queue
 *          (wait_polls()).
 *   YIELD  spins for a bounded time, then yields the CPU between reads.
 *   PARK   spins for a bounded time, then sleeps.
 *
 * The status of a node:
 *
 *   FREE ──acquire──▶ WAITING ──────────────grant──────────▶ GRANTED ──release──▶ FREE
 *                      │    │ park                              ▲
 *                      │    └────▶ PARKED ──grant, unpark───────┤
 *                      │ deadline    │ deadline                 │ (the releaser then acts for the
 *                      └─────────────┴────▶ ABANDONED ──grant───┘  waiter, which has left)
 *
 *   WAITING    -> PARKED by compare-exchange, -> ABANDONED by exchange: written by the waiter
 *   WAITING, PARKED, ABANDONED -> GRANTED: written by the predecessor
 *   GRANTED    -> FREE: written by the thread that releases the lock that came with it
 */
#ifndef POUNDLOCK_WAIT_H
#define POUNDLOCK_WAIT_H

#include "world.h"

enum wait { WAIT_SPIN, WAIT_YIELD, WAIT_PARK };

enum { NODE_FREE, NODE_WAITING, NODE_PARKED, NODE_GRANTED, NODE_ABANDONED };

/* Time in units of 1,024 ns, as the world's threshold; wraps. */
static inline uint32_t wait_clock(void)
{
	return (uint32_t)(w_now() >> 10);
}

/* How to wait for an imminent action of another running thread, such as linking its node. */
static inline enum w_how wait_soon(enum wait wait)
{
	return wait == WAIT_SPIN ? W_SPIN : W_YIELD;
}

/*
 * How to wait, before sleeping, for a word that any waiter may take: no other waiter depends on us.
 */
static inline enum w_how wait_race(enum wait wait)
{
	return wait == WAIT_PARK ? W_BRIEF : wait_soon(wait);
}

/* How to wait, before sleeping, for our turn: the lock is idle until the granted waiter notices. */
static inline enum w_how wait_turn(enum wait wait)
{
	if (wait == WAIT_PARK)
		return W_BRIEF;
	return wait == WAIT_SPIN ? W_SPIN : W_TURN;
}

/*
 * How to wait, before sleeping, in a queue that hands the lock over in order: a waiter that sleeps
 * delays all waiters behind it.
 */
static inline enum w_how wait_ordered(enum wait wait)
{
	return wait == WAIT_PARK ? W_ORDERED : wait_turn(wait);
}

/*
 * How to wait, before sleeping, in a queue whose lock newcomers take while a granted waiter wakes.
 */
static inline enum w_how wait_overtaken(enum wait wait)
{
	return wait == WAIT_PARK ? W_QUEUED : wait_turn(wait);
}

/* How to wait, before sleeping, for a word that its holder and other waiters write. */
static inline enum w_how wait_written(enum wait wait)
{
	return wait == WAIT_PARK ? W_POLITE : wait_soon(wait);
}

/* Returns how a waiter with @spins bounded spins waits before it sleeps: @how; 0: one read. */
static inline enum w_how wait_spins(enum w_how how, enum wait wait, uint32_t spins)
{
	return wait == WAIT_PARK && !spins ? W_ONCE : how;
}

/*
 * Returns whether a waiter polls until @deadline instead of queueing: under WAIT_SPIN, a hand-over
 * is a plain store, which could not notice that its waiter has left.
 */
static inline bool wait_polls(enum wait wait, const struct w_deadline *deadline)
{
	return wait == WAIT_SPIN && deadline;
}

/* WAITING -> PARKED, then sleeps. Returns true once granted, false if @deadline passes first. */
static inline bool node_park(W_ATOMIC(uint32_t) *status, const struct w_deadline *deadline)
{
	uint32_t seen = NODE_WAITING;

	/* relaxed: publishes nothing; it only tells the granter to wake a sleeper */
	if (!w_compare_exchange_relaxed(status, &seen, NODE_PARKED))
		/* [WAIT-1] acquire: pairs with [WAIT-6], [WAIT-7], as in node_wait */
		return w_load_acquire(status) == NODE_GRANTED;
	w_event(park);
	do {
		w_park(status, NODE_PARKED, deadline);
		/* [WAIT-2] acquire: pairs with [WAIT-6], as in node_wait */
		if (w_load_acquire(status) == NODE_GRANTED)
			return true;
	} while (!w_expired(deadline));
	return false;
}

/* * -> ABANDONED: leaves the node to the granter. Returns true if it was granted already. */
static inline bool node_leave(W_ATOMIC(uint32_t) *status)
{
	/*
	 * [WAIT-3] acq_rel: release pairs with [WAIT-6]: our links, for the thread that passes the
	 * lock on for us; acquire pairs with [WAIT-6]: the lock may have been granted at the last
	 * moment
	 */
	return w_exchange_acq_rel(status, NODE_ABANDONED) == NODE_GRANTED;
}

/*
 * Waits until the node of @status is granted. At the deadline, abandons the node to the granter and
 * returns false. @how: how to wait before sleeping.
 */
static inline bool node_wait_in(W_ATOMIC(uint32_t) *status, enum w_how how, enum wait wait,
				const struct w_deadline *deadline)
{
	w_event(contended);
	/*
	 * [WAIT-4] acquire: pairs with [WAIT-6], [WAIT-5], [WAIT-7]; the previous critical section,
	 * and what the granter wrote into our node
	 */
	if (w_wait_acquire(status, VAL == NODE_GRANTED, how, deadline) == NODE_GRANTED)
		return true;
	if (wait == WAIT_PARK && node_park(status, deadline))
		return true;
	if (node_leave(status))
		return true;
	w_event(abandon);
	return false;
}

/* As node_wait_in(), in a queue where a granted waiter that sleeps delays all waiters behind it. */
static W_SLOW bool node_wait(W_ATOMIC(uint32_t) *status, enum wait wait,
			     const struct w_deadline *deadline)
{
	return node_wait_in(status, wait_ordered(wait), wait, deadline);
}

/*
 * * -> GRANTED. Returns false if the waiter has left: the caller then holds the lock in its place.
 */
static inline bool node_grant(W_ATOMIC(uint32_t) *status, enum wait wait)
{
	uint32_t seen;

	if (wait == WAIT_SPIN) {
		/* [WAIT-5] release: pairs with [WAIT-4], [MCSTP-2]; our critical section */
		w_store_release(status, NODE_GRANTED);
		return true;
	}
	/*
	 * [WAIT-6] acq_rel: release pairs with [WAIT-1], [WAIT-2], [WAIT-4], [WAIT-3], [MCSTP-1],
	 * [MCSTP-2], [MCSTP-3]: our critical section; acquire pairs with [WAIT-3], [MCSTP-3]: the
	 * links of a waiter that has left
	 */
	seen = w_exchange_acq_rel(status, NODE_GRANTED);
	if (seen == NODE_PARKED) {
		w_event(wake_in_cs);
		w_unpark(status);
	}
	if (seen == NODE_ABANDONED)
		w_event(skip);
	return seen != NODE_ABANDONED;
}

/* WAITING -> GRANTED. Returns false if the waiter sleeps or has left. */
static inline bool node_grant_awake(W_ATOMIC(uint32_t) *status)
{
	uint32_t seen = NODE_WAITING;

	/* relaxed: avoids taking the line of a sleeper; the compare-exchange decides */
	if (w_load_relaxed(status) != NODE_WAITING)
		return false;
	/* [WAIT-7] release: pairs with [WAIT-1], [WAIT-4]; our critical section */
	return w_compare_exchange_release(status, &seen, NODE_GRANTED);
}

/* * -> FREE: returns a node to its pool. The last access to it. */
static inline void node_free(W_ATOMIC(uint32_t) *status)
{
	/*
	 * [WAIT-8] release: pairs with the acquire of w_node_get; our last accesses come before the
	 * node's next use. Pairs with [QSPIN-3]
	 */
	w_store_release(status, NODE_FREE);
}

#endif
