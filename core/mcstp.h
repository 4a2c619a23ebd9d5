/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * MCS-TP (time-published): MCS whose waiters publish the time while they wait, so that a release can tell who is not
 * running, and passes over them.
 *
 * From: He, Scherer, Scott, "Preemption adaptivity in time-published queue-based spin locks", HiPC'05, section 3 (MCS-TP).
 * Changed: a waiter publishes the time only when the one it published is getting old, not at each look, so that a waiter
 * does not write its line all the time. The paper's lock also carries the time since when it has been held, by which
 * waiters guess that the holder does not run and yield; here wait=yield does so after a bounded spin, without a clock, and
 * the lock stays one word. A waiter that sleeps (wait=park) does not look on purpose: it keeps its place and is woken,
 * as in mcs.h. A waiter that times out leaves its node to the release, as in wait.h, and does not come back to it; the
 * paper's takes up its old place.
 *
 * Promises: mutual exclusion; first come, first served among those who look at least every `stale` microseconds: who does
 * not may be passed without bound. Blocking under wait=park. 8 bytes a lock, a node a waiter and a holder. Atomic
 * read-modify-writes: 2 uncontended, 2 contended, 1 more for each waiter passed over.
 *
 *   tail ───────────────────────────────┐
 *                                       ▼
 *   [holder] ─next─▶ [waiter] ─next─▶ [waiter] ─next─▶ NULL
 *                     time             time
 *
 * The status of a node is wait.h's, and one more:
 *
 *   WAITING, PARKED ──release, done with the node──▶ SKIPPED   out of the queue: its waiter enters again
 *   ABANDONED, GRANTED with nobody there ──the same──▶ SKIPPED ──▶ FREE
 *
 * A node passed over stays its waiter's. Until SKIPPED is there the release reads its link; after that it is done with it.
 */
#ifndef POUNDLOCK_MCSTP_H
#define POUNDLOCK_MCSTP_H

#include "part/backoff.h"
#include "part/wait.h"

enum { MCSTP_SKIPPED = NODE_ABANDONED + 1 };

struct mcstp_node {
	W_ATOMIC(uint32_t) status;
	W_ATOMIC(struct mcstp_node *) next;
	W_ATOMIC(uint64_t) time; /* when its waiter last said that it runs */
};

struct mcstp {
	W_ATOMIC(struct mcstp_node *) tail;
};

struct mcstp_policy {
	enum wait wait;
	uint32_t stale; /* microseconds without a sign of life after which a waiter is taken not to run */
};

#define mcstp_settings(S) S(mcstp, stale, 20, 1, 1000000000)
/* About how many pauses a waiter makes between two times that it says it runs: those of a bounded spin. */
#define MCSTP_LOOK 100

#define mcstp_bytes sizeof(struct mcstp), sizeof(struct mcstp_node), sizeof(struct mcstp_node)

static inline void mcstp_node_init(struct mcstp_node *node)
{
	/* relaxed, both: [MCSTP-1] or [MCSTP-6] publishes them */
	w_store_relaxed(&node->status, NODE_WAITING);
	w_store_relaxed(&node->next, NULL);
}

/* Takes @lock with @node if it is free. */
static inline bool mcstp_try_acquire(struct mcstp *lock, struct mcstp_node *node)
{
	struct mcstp_node *seen = NULL;

	/* relaxed: only a hint that spares the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->tail))
		return false;
	mcstp_node_init(node);
	/* [MCSTP-1] acq_rel: acquire pairs with [MCSTP-9], [MCSTP-12]; the last holder's critical
	 * section. Release pairs with [MCSTP-6]: our node */
	if (w_compare_exchange_acq_rel(&lock->tail, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Takes @lock by polling until the deadline. */
static W_SLOW bool mcstp_poll(struct mcstp *lock, struct mcstp_node *node, const struct w_deadline *deadline)
{
	do {
		if (mcstp_try_acquire(lock, node))
			return true;
		/* [MCSTP-2] acquire: pairs with nothing; mcstp_try_acquire reads again */
		(void)w_wait_acquire(&lock->tail, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/* ---- Waiting ---- */

/* Whether from @then to @now more than @nanoseconds have passed; @then may lie in the future of a clock read before. */
static inline bool mcstp_older(uint64_t then, uint64_t now, uint64_t nanoseconds)
{
	return (int64_t)(now - then) > (int64_t)nanoseconds;
}

/* Says that @node's waiter runs, if that was long enough ago. */
static inline void mcstp_publish(struct mcstp_node *node, struct mcstp_policy policy)
{
	uint64_t now = w_now();

	/* relaxed, both: only we write it, and who reads an old time passes us over, which is harmless */
	if (mcstp_older(w_load_relaxed(&node->time), now, policy.stale * UINT64_C(1000) / 4))
		w_store_relaxed(&node->time, now);
}

/* Sleeps on @status until a release has changed it: the new one; or to the deadline: PARKED. */
static inline uint32_t mcstp_park(W_ATOMIC(uint32_t) *status, const struct w_deadline *deadline)
{
	uint32_t seen = NODE_WAITING;

	/* relaxed: publishes nothing; the granter learns from it only that there is somebody to wake */
	if (w_compare_exchange_relaxed(status, &seen, NODE_PARKED))
		w_event(park);
	/* [MCSTP-3] acquire: pairs with [WAIT-6] and [MCSTP-11]; as in node_wait */
	while ((seen = w_load_acquire(status)) == NODE_PARKED && !w_expired(deadline))
		w_park(status, NODE_PARKED, deadline);
	return seen;
}

/* Waits until a release has decided about @node, or to the deadline: its status then. */
static inline uint32_t mcstp_wait(struct mcstp_node *node, struct mcstp_policy policy,
				  const struct w_deadline *deadline)
{
	uint32_t seen, spun = 0;

	w_event(contended);
	for (;;) {
		/* [MCSTP-4] acquire: pairs with [WAIT-6], [WAIT-5], [MCSTP-11]; as in node_wait */
		seen = w_wait_acquire(&node->status, VAL != NODE_WAITING, W_BRIEF, deadline);
		if (seen == NODE_WAITING && policy.wait == WAIT_PARK)
			seen = mcstp_park(&node->status, deadline);
		if (seen != NODE_WAITING || w_expired(deadline))
			break;
		if (policy.wait == WAIT_SPIN)
			w_pause_for(1);
		backoff_give_way(policy.wait, &spun, MCSTP_LOOK);
		mcstp_publish(node, policy);
	}
	if (seen == NODE_GRANTED || seen == MCSTP_SKIPPED)
		return seen;
	/* [MCSTP-5] acq_rel: release pairs with [WAIT-6], [MCSTP-11]: whoever frees our node sees
	 * that we are done with it; acquire pairs with [WAIT-6], [MCSTP-11]: the lock may have come
	 * in the last moment */
	return w_exchange_acq_rel(&node->status, NODE_ABANDONED);
}

/* Takes @lock. False, with @node left to its pool, if @deadline (NULL: never) passed first. */
static inline bool mcstp_acquire(struct mcstp *lock, struct mcstp_node *node, struct mcstp_policy policy,
				 const struct w_deadline *deadline)
{
	struct mcstp_node *previous;
	uint32_t seen;

	if (policy.wait == WAIT_SPIN && deadline)
		return mcstp_poll(lock, node, deadline);
	do {
		mcstp_node_init(node);
		/*
		 * [MCSTP-6] acq_rel: acquire pairs with [MCSTP-1], [MCSTP-6]: the predecessor's
		 * node, which we write; and with [MCSTP-9], [MCSTP-12]: the last holder's critical
		 * section. Release pairs with [MCSTP-6]: our node
		 */
		previous = w_exchange_acq_rel(&lock->tail, node);
		if (!previous)
			return true;
		/* relaxed: [MCSTP-7] publishes it */
		w_store_relaxed(&node->time, w_now());
		/* [MCSTP-7] release: pairs with [MCSTP-8], [MCSTP-10]; our node's fields */
		w_store_release(&previous->next, node);
		seen = mcstp_wait(node, policy, deadline);
	} while (seen == MCSTP_SKIPPED && !w_expired(deadline));
	if (seen == NODE_GRANTED)
		return true;
	w_event(abandon);
	if (seen == MCSTP_SKIPPED)
		node_free(&node->status);
	return false;
}

/* ---- Release ---- */

/* Who comes behind @node; NULL: nobody, and @lock is free. */
static inline struct mcstp_node *mcstp_next(struct mcstp *lock, struct mcstp_node *node, enum wait wait)
{
	/* [MCSTP-8] acquire: pairs with [MCSTP-7]; the node behind */
	struct mcstp_node *next = w_load_acquire(&node->next), *last = node;

	if (next)
		return next;
	/* [MCSTP-9] release: pairs with [MCSTP-1], [MCSTP-6]; our critical section */
	if (w_compare_exchange_release(&lock->tail, &last, NULL))
		return NULL;
	/* [MCSTP-10] acquire: pairs with [MCSTP-7], as [MCSTP-8] */
	return w_wait_acquire(&node->next, VAL != NULL, wait_soon(wait), NULL);
}

/* Whether @node's waiter seems to run, or sleeps on purpose. */
static inline bool mcstp_runs(struct mcstp_node *node, struct mcstp_policy policy)
{
	/* relaxed, both: a guess */
	return w_load_relaxed(&node->status) != NODE_WAITING ||
	       !mcstp_older(w_load_relaxed(&node->time), w_now(), policy.stale * UINT64_C(1000));
}

/* Gives @node, which is out of the queue, back to its waiter to enter again, or to its pool if nobody is there. */
static inline void mcstp_retire(struct mcstp_node *node)
{
	/* [MCSTP-11] acq_rel: release pairs with [MCSTP-3], [MCSTP-4], [MCSTP-5]: we are done with
	 * the node; acquire pairs with [MCSTP-5]: so is its waiter */
	uint32_t seen = w_exchange_acq_rel(&node->status, MCSTP_SKIPPED);

	if (seen == NODE_PARKED)
		w_unpark(&node->status);
	if (seen == NODE_PARKED || seen == NODE_WAITING)
		w_event(pass_over);
	else
		node_free(&node->status);
}

/* Gives @lock to the first waiter behind @node that seems to run; makes it free if there is none. */
static W_SLOW void mcstp_hand_over(struct mcstp *lock, struct mcstp_node *node, struct mcstp_policy policy)
{
	struct mcstp_node *next = mcstp_next(lock, node, policy.wait);

	node_free(&node->status);
	while ((node = next)) {
		if (mcstp_runs(node, policy) && node_grant(&node->status, policy.wait))
			return;
		next = mcstp_next(lock, node, policy.wait);
		mcstp_retire(node);
	}
}

/* Releases @lock, held with @node. */
static inline void mcstp_release(struct mcstp *lock, struct mcstp_node *node, struct mcstp_policy policy)
{
	struct mcstp_node *last = node;

	/* relaxed: mcstp_hand_over reads again */
	if (w_unlikely(w_load_relaxed(&node->next))) {
		mcstp_hand_over(lock, node, policy);
		return;
	}
	/* [MCSTP-12] release: pairs with [MCSTP-1], [MCSTP-6]; our critical section */
	if (w_likely(w_compare_exchange_release(&lock->tail, &last, NULL)))
		node_free(&node->status);
	else
		mcstp_hand_over(lock, node, policy);
}

/* In a forked child: drops all waiters behind @node, which holds @lock; their threads do not exist here. */
static inline void mcstp_drop_waiters(struct mcstp *lock, struct mcstp_node *node)
{
	/* relaxed, both: [GENERATION-3] publishes what is repaired, once */
	w_store_relaxed(&lock->tail, node);
	w_store_relaxed(&node->next, NULL);
}

#endif
