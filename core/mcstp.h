/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * MCS-TP (time-published): MCS whose waiters publish the time while they wait, so that a release
 * can recognise preempted waiters and pass over them.
 *
 * From: He, Scherer, Scott, "Preemption adaptivity in time-published queue-based spin locks",
 * HiPC'05, section 3 (MCS-TP).
 *
 * Order: FIFO between running waiters; a preempted waiter is passed over.
 *
 * Promise: mutual exclusion; first come, first served among waiters that publish at least every
 * `stale` microseconds. Other waiters have no bound on bypass. Waiters sleep under wait=park. 8
 * bytes per lock; one node per waiter and per holder. Atomic read-modify-writes: 2 uncontended, 2
 * contended, and 1 per waiter passed over.
 *
 *   tail ───────────────────────────────┐
 *                                       ▼
 *   [holder] ─next─▶ [waiter] ─next─▶ [waiter] ─next─▶ NULL
 *                     time             time
 *
 * The status of a node is that of part/wait.h, and one more:
 *
 *   WAITING, PARKED ──release, done with the node──▶ SKIPPED   dequeued: its waiter enters again
 *   ABANDONED, or GRANTED without a waiter ──likewise──▶ SKIPPED ──▶ FREE
 *
 * A node that was passed over still belongs to its waiter. The release reads its link until it
 * writes SKIPPED, and not afterwards.
 *
 * Departures from the paper:
 *  - A waiter publishes the time only when the published one gets old, not at each read, so that it
 *    does not write its line all the time.
 *  - The paper's lock also publishes when it was taken, by which waiters guess that the holder is
 *    preempted, and yield. Here wait=yield does so after a bounded spin, without a clock, and the
 *    lock is one word.
 *  - A waiter that sleeps (wait=park) keeps its place and is woken, as in mcs.h.
 *  - A waiter that times out leaves its node to the release, as in part/wait.h, and does not return
 *    to it; the paper's takes up its old place.
 */
#ifndef POUNDLOCK_MCSTP_H
#define POUNDLOCK_MCSTP_H

#include "part/backoff.h"
#include "part/wait.h"

enum { MCSTP_SKIPPED = NODE_ABANDONED + 1 };

struct mcstp_node {
	W_ATOMIC(uint32_t) status;
	W_ATOMIC(struct mcstp_node *) next;
	W_ATOMIC(uint64_t) time; /* when its waiter last published that it is running */
};

struct mcstp {
	W_ATOMIC(struct mcstp_node *) tail;
};

struct mcstp_policy {
	enum wait wait;
	/* Microseconds after which a waiter that has not published counts as preempted. */
	uint32_t stale;
};

#define mcstp_settings(S) S(mcstp, stale, 20, 1, 1000000000)
/* Pauses between two publications, approximately: those of a bounded spin. */
#define MCSTP_LOOK 100

#define mcstp_bytes sizeof(struct mcstp), sizeof(struct mcstp_node), sizeof(struct mcstp_node)

static inline void mcstp_node_init(struct mcstp_node *node)
{
	/* relaxed, both: [MCSTP-1] or [MCSTP-6] publishes them */
	w_store_relaxed(&node->status, NODE_WAITING);
	w_store_relaxed(&node->next, NULL);
}

/* NULL -> @node. */
static inline bool mcstp_try_acquire(struct mcstp *lock, struct mcstp_node *node)
{
	struct mcstp_node *seen = NULL;

	/* relaxed: a hint that avoids taking the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->tail))
		return false;
	mcstp_node_init(node);
	/*
	 * [MCSTP-1] acq_rel: acquire pairs with [MCSTP-9], [MCSTP-12]; the previous critical
	 * section. Release pairs with [MCSTP-6]: our node
	 */
	if (w_compare_exchange_acq_rel(&lock->tail, &seen, node))
		return true;
	node_free(&node->status);
	return false;
}

/* Polls @lock until the deadline. */
static W_SLOW bool mcstp_poll(struct mcstp *lock, struct mcstp_node *node,
			      const struct w_deadline *deadline)
{
	do {
		if (mcstp_try_acquire(lock, node))
			return true;
		/*
		 * [MCSTP-2] acquire: pairs with nothing; mcstp_try_acquire() reads the word again
		 */
		(void)w_wait_acquire(&lock->tail, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	return false;
}

/* ---- Waiting ---- */

/*
 * Returns whether more than @nanoseconds have passed from @then to @now. @then may be later than
 * @now, which may have been read before.
 */
static inline bool mcstp_older(uint64_t then, uint64_t now, uint64_t nanoseconds)
{
	return (int64_t)(now - then) > (int64_t)nanoseconds;
}

/* Publishes that @node's waiter is running, if the last publication is old enough. */
static inline void mcstp_publish(struct mcstp_node *node, struct mcstp_policy policy)
{
	uint64_t now = w_now();

	/*
	 * relaxed, both: only we write it, and a release that reads an old time passes us over,
	 * which is harmless
	 */
	if (mcstp_older(w_load_relaxed(&node->time), now, policy.stale * UINT64_C(1000) / 4))
		w_store_relaxed(&node->time, now);
}

/*
 * WAITING -> PARKED, then sleeps until a release changes @status. Returns the new status, or PARKED
 * at @deadline.
 */
static inline uint32_t mcstp_park(W_ATOMIC(uint32_t) *status, const struct w_deadline *deadline)
{
	uint32_t seen = NODE_WAITING;

	/* relaxed: publishes nothing; it only tells the granter to wake a sleeper */
	if (w_compare_exchange_relaxed(status, &seen, NODE_PARKED))
		w_event(park);
	/* [MCSTP-3] acquire: pairs with [WAIT-6] and [MCSTP-11]; as in node_wait() */
	while ((seen = w_load_acquire(status)) == NODE_PARKED && !w_expired(deadline))
		w_park(status, NODE_PARKED, deadline);
	return seen;
}

/* Waits until a release decides about @node, or @deadline passes. Returns its status. */
static inline uint32_t mcstp_wait(struct mcstp_node *node, struct mcstp_policy policy,
				  const struct w_deadline *deadline)
{
	uint32_t seen, spun = 0;

	w_event(contended);
	for (;;) {
		/*
		 * [MCSTP-4] acquire: pairs with [WAIT-6], [WAIT-5], [MCSTP-11]; as in node_wait()
		 */
		seen = w_wait_acquire(&node->status, VAL != NODE_WAITING, W_BRIEF, deadline);
		if (seen == NODE_WAITING && policy.wait == WAIT_PARK)
			seen = mcstp_park(&node->status, deadline);
		if (seen != NODE_WAITING || w_expired(deadline))
			break;
		if (policy.wait == WAIT_SPIN)
			w_pause_for(1);
		backoff_yield(policy.wait, &spun, MCSTP_LOOK);
		mcstp_publish(node, policy);
	}
	if (seen == NODE_GRANTED || seen == MCSTP_SKIPPED)
		return seen;
	/*
	 * [MCSTP-5] acq_rel: release pairs with [WAIT-6], [MCSTP-11]: our last accesses to the
	 * node, for the thread that frees it; acquire pairs with [WAIT-6], [MCSTP-11]: the lock may
	 * have been granted at the last moment
	 */
	return w_exchange_acq_rel(&node->status, NODE_ABANDONED);
}

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 */
static inline bool mcstp_acquire(struct mcstp *lock, struct mcstp_node *node,
				 struct mcstp_policy policy, const struct w_deadline *deadline)
{
	struct mcstp_node *previous;
	uint32_t seen;

	if (policy.wait == WAIT_SPIN && deadline)
		return mcstp_poll(lock, node, deadline);
	do {
		mcstp_node_init(node);
		/*
		 * [MCSTP-6] acq_rel: acquire pairs with [MCSTP-1], [MCSTP-6]: the predecessor's
		 * node, which we write; and with [MCSTP-9], [MCSTP-12]: the previous critical
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

/* Returns the node behind @node, or NULL: @node -> NULL, and @lock is free. */
static inline struct mcstp_node *mcstp_next(struct mcstp *lock, struct mcstp_node *node,
					    enum wait wait)
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

/* Returns whether @node's waiter appears to be running, or sleeps by choice. */
static inline bool mcstp_runs(struct mcstp_node *node, struct mcstp_policy policy)
{
	/* relaxed, both: a guess */
	return w_load_relaxed(&node->status) != NODE_WAITING ||
	       !mcstp_older(w_load_relaxed(&node->time), w_now(), policy.stale * UINT64_C(1000));
}

/*
 * * -> SKIPPED: returns @node, which is out of the queue, to its waiter, or to its pool if the
 * waiter has left.
 */
static inline void mcstp_retire(struct mcstp_node *node)
{
	/*
	 * [MCSTP-11] acq_rel: release pairs with [MCSTP-3], [MCSTP-4], [MCSTP-5]: our last accesses
	 * to the node; acquire pairs with [MCSTP-5]: its waiter's
	 */
	uint32_t seen = w_exchange_acq_rel(&node->status, MCSTP_SKIPPED);

	if (seen == NODE_PARKED)
		w_unpark(&node->status);
	if (seen == NODE_PARKED || seen == NODE_WAITING)
		w_event(pass_over);
	else
		node_free(&node->status);
}

/*
 * Grants @lock to the first waiter behind @node that appears to be running, or frees it if there is
 * none.
 */
static W_SLOW void mcstp_hand_over(struct mcstp *lock, struct mcstp_node *node,
				   struct mcstp_policy policy)
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
static inline void mcstp_release(struct mcstp *lock, struct mcstp_node *node,
				 struct mcstp_policy policy)
{
	struct mcstp_node *last = node;

	/* relaxed: mcstp_hand_over() reads it again */
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

/*
 * In a forked child, discards all waiters behind @node, which holds @lock: their threads exist only
 * in the parent.
 */
static inline void mcstp_drop_waiters(struct mcstp *lock, struct mcstp_node *node)
{
	/* relaxed, both: one thread repairs; [GENERATION-3] publishes the result */
	w_store_relaxed(&lock->tail, node);
	w_store_relaxed(&node->next, NULL);
}

#endif
