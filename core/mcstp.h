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
#include "part/mcs_queue.h"

enum { MCSTP_SKIPPED = NODE_ABANDONED + 1 };

struct mcstp_node {
	struct mcs_node mcs;
	W_ATOMIC(uint64_t) time; /* when its waiter last published that it is running */
};

struct mcstp {
	mcs_tail tail;
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

/* Takes @lock if it is free. */
static inline bool mcstp_try_acquire(struct mcstp *lock, struct mcstp_node *node)
{
	return mcs_queue_try_enter(&lock->tail, &node->mcs, mcs_node_init);
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
	/* [MCSTP-1] acquire: pairs with [WAIT-6] and [MCSTP-4]; as in node_wait() */
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
		 * [MCSTP-2] acquire: pairs with [WAIT-6], [WAIT-5], [MCSTP-4]; as in node_wait()
		 */
		seen = w_wait_acquire(&node->mcs.status, VAL != NODE_WAITING, W_BRIEF, deadline);
		if (seen == NODE_WAITING && policy.wait == WAIT_PARK)
			seen = mcstp_park(&node->mcs.status, deadline);
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
	 * [MCSTP-3] acq_rel: release pairs with [WAIT-6], [MCSTP-4]: our last accesses to the
	 * node, for the thread that frees it; acquire pairs with [WAIT-6], [MCSTP-4]: the lock may
	 * have been granted at the last moment
	 */
	return w_exchange_acq_rel(&node->mcs.status, NODE_ABANDONED);
}

/*
 * Takes @lock. Returns false, with @node back in its pool, if @deadline (NULL: none) passes first.
 */
static inline bool mcstp_acquire(struct mcstp *lock, struct mcstp_node *node,
				 struct mcstp_policy policy, const struct w_deadline *deadline)
{
	struct mcs_node *previous;
	uint32_t seen;

	if (wait_polls(policy.wait, deadline))
		return mcs_queue_poll(&lock->tail, &node->mcs, mcs_node_init, deadline);
	do {
		mcs_node_init(&node->mcs);
		previous = mcs_queue_enter(&lock->tail, &node->mcs);
		if (!previous)
			return true;
		/* relaxed: [MCS_QUEUE-4] publishes it */
		w_store_relaxed(&node->time, w_now());
		mcs_queue_link(previous, &node->mcs);
		seen = mcstp_wait(node, policy, deadline);
	} while (seen == MCSTP_SKIPPED && !w_expired(deadline));
	if (seen == NODE_GRANTED)
		return true;
	w_event(abandon);
	if (seen == MCSTP_SKIPPED)
		node_free(&node->mcs.status);
	return false;
}

/* ---- Release ---- */

/* Returns the node behind @node, or NULL: @lock is free. */
static inline struct mcstp_node *mcstp_next(struct mcstp *lock, struct mcstp_node *node,
					    enum wait wait)
{
	return (struct mcstp_node *)mcs_queue_successor(&lock->tail, &node->mcs, wait);
}

/* Returns whether @node's waiter appears to be running, or sleeps by choice. */
static inline bool mcstp_runs(struct mcstp_node *node, struct mcstp_policy policy)
{
	/* relaxed, both: a guess */
	return w_load_relaxed(&node->mcs.status) != NODE_WAITING ||
	       !mcstp_older(w_load_relaxed(&node->time), w_now(), policy.stale * UINT64_C(1000));
}

/*
 * * -> SKIPPED: returns @node, which is out of the queue, to its waiter, or to its pool if the
 * waiter has left.
 */
static inline void mcstp_retire(struct mcstp_node *node)
{
	/*
	 * [MCSTP-4] acq_rel: release pairs with [MCSTP-1], [MCSTP-2], [MCSTP-3]: our last accesses
	 * to the node; acquire pairs with [MCSTP-3]: its waiter's
	 */
	uint32_t seen = w_exchange_acq_rel(&node->mcs.status, MCSTP_SKIPPED);

	if (seen == NODE_PARKED)
		w_unpark(&node->mcs.status);
	if (seen == NODE_PARKED || seen == NODE_WAITING)
		w_event(pass_over);
	else
		node_free(&node->mcs.status);
}

/*
 * Grants @lock to the first waiter behind @node that appears to be running, or frees it if there is
 * none.
 */
static W_SLOW void mcstp_hand_over(struct mcstp *lock, struct mcstp_node *node,
				   struct mcstp_policy policy)
{
	struct mcstp_node *next = mcstp_next(lock, node, policy.wait);

	node_free(&node->mcs.status);
	while ((node = next)) {
		if (mcstp_runs(node, policy) && node_grant(&node->mcs.status, policy.wait))
			return;
		next = mcstp_next(lock, node, policy.wait);
		mcstp_retire(node);
	}
}

/* Releases @lock, held with @node. */
static inline void mcstp_release(struct mcstp *lock, struct mcstp_node *node,
				 struct mcstp_policy policy)
{
	/* relaxed: mcstp_hand_over() reads it again */
	if (w_unlikely(w_load_relaxed(&node->mcs.next) ||
		       !mcs_queue_leave(&lock->tail, &node->mcs)))
		mcstp_hand_over(lock, node, policy);
}

/* In a forked child, discards all waiters behind @node, which holds @lock. */
static inline void mcstp_drop_waiters(struct mcstp *lock, struct mcstp_node *node)
{
	mcs_queue_drop_waiters(&lock->tail, &node->mcs);
}

#endif
