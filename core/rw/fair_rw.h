/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The fair queued readers-writer lock: a state word, and an MCS queue of waiters in order of
 * arrival.
 *
 * From: Long's queued rwlock (Linux, 2013), which replaced Mellor-Crummey and Scott's fair queue
 * lock (PPoPP'91) in practice. ShflLock (SOSP'19) section 4.2.3 starts from it and compares with
 * it: the same state word and a queue that is not shuffled, so that the two differ in the order of
 * waiters only. PPoPP'91's own lock, and the phase-fair ones, require a reader to keep a queue node
 * or ticket while it is inside. A thread that leaves could not find it by the lock alone, nor leave
 * at a deadline, and they access the lock's memory after the access that frees it.
 *
 * Order: FIFO; consecutive readers enter together.
 *
 * Promise: readers run together, at most 2^27; a writer runs alone. First come, first served;
 * consecutive readers enter together. Timed waiters under wait=spin poll. Waiters sleep under
 * wait=park. 16 bytes per lock, one node per waiter, none per holder. Atomic read-modify-writes: 2
 * uncontended, for readers and writers.
 *
 * part/rw_word.h describes the word, its states and transitions. CLOSED and HEIR are not used: an
 * empty queue means that the lock is open.
 *
 * Departures from Linux:
 *  - A newcomer enters only if nobody waits. Linux's may overtake the queue between one head and
 *    the next.
 *  - A waiter may yield, sleep, or leave at a deadline (part/wait.h).
 *  - A reader that is inside may enter again although writers wait (@again), because they wait for
 *    it.
 */
#ifndef POUNDLOCK_FAIR_RW_H
#define POUNDLOCK_FAIR_RW_H

#include "part/generation.h"
#include "mcs.h"
#include "part/rw_word.h"

struct fair_rw {
	struct mcs queue; /* held by the waiter that is next to enter */
	rw_word word;
	W_ATOMIC(uint32_t) generation;
};

struct fair_rw_policy {
	enum wait wait;
};

#define fair_rw_settings(S)
#define fair_rw_bytes sizeof(struct fair_rw), sizeof(struct mcs_node), 0

/* In a forked child, discards the parent's waiters. Returns true if it did. */
static inline bool fair_rw_drop_waiters(struct fair_rw *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return false;
	/* relaxed: [GENERATION-3] publishes it; nobody queues before that */
	w_store_relaxed(&lock->queue.tail, NULL);
	rw_drop_waiters(&lock->word);
	generation_settle(&lock->generation);
	return true;
}

/* Enters if nobody inside excludes the caller and nobody waits; @again: even if threads wait. */
static inline bool fair_rw_enter(struct fair_rw *lock, bool writes, bool again)
{
	uint32_t seen;

	/* relaxed: of two simultaneous arrivals, either may be the first */
	return (again || !w_load_relaxed(&lock->queue.tail)) &&
	       rw_enter(&lock->word, writes, rw_conflicts(writes), 0, &seen);
}

/* Enters if that needs no waiting. */
static inline bool fair_rw_try(struct fair_rw *lock, bool writes, bool again)
{
	/* The waiters may exist only in the parent. */
	return w_likely(fair_rw_enter(lock, writes, again)) ||
	       (fair_rw_drop_waiters(lock) && fair_rw_enter(lock, writes, again));
}

/*
 * As the next to enter, enters. Returns false if @deadline passes first or the reader is refused.
 */
static inline bool fair_rw_enter_as_head(struct fair_rw *lock, bool writes, enum wait wait,
					 const struct w_deadline *deadline)
{
	const uint32_t against = rw_conflicts(writes);
	uint32_t seen;

	while (!rw_enter(&lock->word, writes, against, RW_PARKED, &seen)) {
		if (w_unlikely(rw_refuses(writes, seen))) {
			rw_give_up(&lock->word);
			return false;
		}
		/* [FAIR_RW-1] acquire: pairs with nothing; [RW_WORD-1] reads the word again */
		seen = w_wait_acquire(&lock->word, !(VAL & against), wait_written(wait), deadline);
		if (!(seen & against))
			continue;
		if (w_expired(deadline)) {
			rw_give_up(&lock->word);
			return false;
		}
		rw_park(&lock->word, seen, deadline);
	}
	return true;
}

/*
 * Slow path: enters in its turn. Returns false if @deadline (NULL: none) passes first or the reader
 * is refused.
 */
static W_SLOW bool fair_rw_slow(struct fair_rw *lock, bool writes, struct fair_rw_policy policy,
				const struct w_deadline *deadline)
{
	struct mcs_policy queue = {.wait = policy.wait};
	struct mcs_node on_stack, *node;
	bool entered;

	/*
	 * Refused at once: a reader that enters again must not wait for a writer that waits for it.
	 */
	if (!writes && rw_full(&lock->word))
		return false;
	(void)fair_rw_drop_waiters(lock);
	/* With a deadline, the waiter may not enter the queue at all. */
	node = deadline ? w_node_choose() : w_waiter_node(&on_stack, false);
	/* relaxed: only for the count, which who finds others waiting does in wait.h */
	if (!w_load_relaxed(&lock->queue.tail))
		w_event(contended);
	entered = mcs_acquire(&lock->queue, node, queue, deadline);
	if (deadline)
		w_node_settle(node);
	if (!entered)
		return false;
	entered = fair_rw_enter_as_head(lock, writes, policy.wait, deadline);
	mcs_release(&lock->queue, node, queue);
	return entered;
}

/* ---- The lock ---- */

/*
 * @again, here and below: the caller may be a reader of @lock already, and overtakes waiting
 * writers.
 */
static inline bool fair_rw_try_read(struct fair_rw *lock, bool again)
{
	return fair_rw_try(lock, false, again);
}

/* Returns false if @deadline (NULL: none) passes first, or if fair_rw_full(). */
static inline bool fair_rw_read(struct fair_rw *lock, bool again, struct fair_rw_policy policy,
				const struct w_deadline *deadline)
{
	return w_likely(fair_rw_enter(lock, false, again)) ||
	       fair_rw_slow(lock, false, policy, deadline);
}

/* Returns whether a reader is refused because there are too many. */
static inline bool fair_rw_full(struct fair_rw *lock)
{
	return rw_full(&lock->word);
}

/* Returns false, and changes nothing, if there was no reader. */
static inline bool fair_rw_release_read(struct fair_rw *lock, struct fair_rw_policy policy)
{
	(void)policy;
	return rw_leave_read(&lock->word);
}

static inline bool fair_rw_try_write(struct fair_rw *lock)
{
	return fair_rw_try(lock, true, false);
}

static inline bool fair_rw_write(struct fair_rw *lock, struct fair_rw_policy policy,
				 const struct w_deadline *deadline)
{
	return w_likely(fair_rw_enter(lock, true, false)) ||
	       fair_rw_slow(lock, true, policy, deadline);
}

/* Returns false, and changes nothing, if there was no writer. */
static inline bool fair_rw_release_write(struct fair_rw *lock, struct fair_rw_policy policy)
{
	(void)policy;
	return rw_leave_write(&lock->word, NULL);
}

/* Each release is fair: newcomers queue behind waiters. */
static inline bool fair_rw_release_read_fair(struct fair_rw *lock, struct fair_rw_policy policy)
{
	return fair_rw_release_read(lock, policy);
}

static inline bool fair_rw_release_write_fair(struct fair_rw *lock, struct fair_rw_policy policy)
{
	return fair_rw_release_write(lock, policy);
}

#endif
