/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How waiters of queue locks wait on their own node, whatever their order. mcs.h, cna.h and others share it.
 *
 *   SPIN   the papers' form: only pauses, and gives way to nobody. A timed wait never queues, since a hand-over by plain
 *          store could not tell that its waiter has gone.
 *   YIELD  spins for a bounded time, then gives the CPU up between reads.
 *   PARK   spins for a bounded time, then sleeps.
 *
 * The status of a node:
 *
 *   FREE ──acquire──▶ WAITING ──────────────grant──────────▶ GRANTED ──release──▶ FREE
 *                      │    │ park                              ▲
 *                      │    └────▶ PARKED ──grant, unpark───────┤
 *                      │ deadline    │ deadline                 │ (then the releaser passes the lock on
 *                      └─────────────┴────▶ ABANDONED ──grant───┘  for the waiter that has gone)
 *
 *   who may write it: WAITING the waiter, by compare-exchange to PARKED or exchange to ABANDONED; any of WAITING,
 *   PARKED, ABANDONED its predecessor, to GRANTED; GRANTED whoever releases the lock that came with it, to FREE.
 */
#ifndef POUNDLOCK_WAIT_H
#define POUNDLOCK_WAIT_H

#include "world.h"

enum wait { WAIT_SPIN, WAIT_YIELD, WAIT_PARK };

enum { NODE_FREE, NODE_WAITING, NODE_PARKED, NODE_GRANTED, NODE_ABANDONED };

/* How to wait for something that another running thread is about to do, e.g. to link its node. */
static inline enum w_how wait_soon(enum wait wait)
{
	return wait == WAIT_SPIN ? W_SPIN : W_YIELD;
}

/* How to wait, before thinking of sleep, for a word that any waiter may take: nobody else waits for one that is late. */
static inline enum w_how wait_race(enum wait wait)
{
	return wait == WAIT_PARK ? W_BRIEF : wait_soon(wait);
}

/* How to wait, before thinking of sleep, for one's turn: while a waiter that has it is late, the lock is idle. */
static inline enum w_how wait_turn(enum wait wait)
{
	if (wait == WAIT_PARK)
		return W_BRIEF;
	return wait == WAIT_SPIN ? W_SPIN : W_TURN;
}

/* Sleeps on @status until it is granted (true) or the deadline passes (false). */
static inline bool node_park(W_ATOMIC(uint32_t) *status, const struct w_deadline *deadline)
{
	uint32_t seen = NODE_WAITING;

	/* relaxed: publishes nothing; the granter learns from it only that there is somebody to wake */
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

/* Abandons the node to the granter: false; unless it is granted already: true. */
static inline bool node_leave(W_ATOMIC(uint32_t) *status)
{
	/*
	 * [WAIT-3] acq_rel: release pairs with [WAIT-6]: whoever passes the lock on for us sees our
	 * links; acquire pairs with [WAIT-6]: the lock may have come in the last moment
	 */
	return w_exchange_acq_rel(status, NODE_ABANDONED) == NODE_GRANTED;
}

/*
 * Waits until the node of @status is granted: true. At the deadline abandons the node to the granter: false. @how: how to
 * wait before thinking of sleep.
 */
static inline bool node_wait_in(W_ATOMIC(uint32_t) *status, enum w_how how, enum wait wait,
				const struct w_deadline *deadline)
{
	w_event(contended);
	/* [WAIT-4] acquire: pairs with [WAIT-6], [WAIT-5], [WAIT-7]; the last holder's critical
	 * section, and what it wrote into our node */
	if (w_wait_acquire(status, VAL == NODE_GRANTED, how, deadline) == NODE_GRANTED)
		return true;
	if (wait == WAIT_PARK && node_park(status, deadline))
		return true;
	if (node_leave(status))
		return true;
	w_event(abandon);
	return false;
}

/* The same in a queue in which whoever sleeps on keeps the lock from all behind it. */
static W_SLOW bool node_wait(W_ATOMIC(uint32_t) *status, enum wait wait, const struct w_deadline *deadline)
{
	return node_wait_in(status, wait_turn(wait), wait, deadline);
}

/* Gives the lock to the waiter of @status. False if it has gone: the caller then holds the lock in its place. */
static inline bool node_grant(W_ATOMIC(uint32_t) *status, enum wait wait)
{
	uint32_t seen;

	if (wait == WAIT_SPIN) {
		/* [WAIT-5] release: pairs with [WAIT-4], [MCSTP-4]; our critical section */
		w_store_release(status, NODE_GRANTED);
		return true;
	}
	/*
	 * [WAIT-6] acq_rel: release pairs with [WAIT-1], [WAIT-2], [WAIT-4], [WAIT-3], [MCSTP-3],
	 * [MCSTP-4], [MCSTP-5]: our critical section; acquire pairs with [WAIT-3], [MCSTP-5]: the
	 * links of the waiter that has gone
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

/* Gives the lock to the waiter of @status, if it does not sleep and will not leave. */
static inline bool node_grant_awake(W_ATOMIC(uint32_t) *status)
{
	uint32_t seen = NODE_WAITING;

	/* relaxed: spares the line of one that sleeps; the compare-exchange decides */
	if (w_load_relaxed(status) != NODE_WAITING)
		return false;
	/* [WAIT-7] release: pairs with [WAIT-1], [WAIT-4]; our critical section */
	return w_compare_exchange_release(status, &seen, NODE_GRANTED);
}

/* Gives a node back to its pool: the last access to it. */
static inline void node_free(W_ATOMIC(uint32_t) *status)
{
	/* [WAIT-8] release: pairs with the acquire of w_node_get; our last accesses come before its
	 * next use. Pairs with [QSPIN-3] */
	w_store_release(status, NODE_FREE);
}

#endif
