/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The fair queue readers-writer lock: an indicator, and an MCS queue of those who have to wait for it, in the order of
 * their arrival.
 *
 * From: Long's queued rwlock (Linux, 2013), which took the place of Mellor-Crummey and Scott's fair queue lock (PPoPP'91)
 * in practice. It is the baseline that ShflLock (SOSP'19) section 4.2.3 starts from and is measured against: the same
 * indicator with a queue that nobody shuffles, so that what differs between the two is the order of the waiters.
 * PPoPP'91's own lock, and the phase-fair ones, make a reader keep a queue's node or ticket while it is inside: a thread
 * could not find its own by the lock alone when it leaves, nor leave at a deadline, and they touch the lock's memory
 * after the access that frees it.
 * Changed, and why:
 *  - A newcomer enters only if nobody waits. Linux's may pass the queue in the moments between one head and the next.
 *  - A waiter may yield or sleep, and leave at a deadline (wait.h).
 *  - A reader that is inside may enter again though writers wait (@again), since they wait for it.
 *
 * Promises: readers together, 2^27 at most, a writer alone; first come, first served, readers that follow one another together; but
 * for timed waiters under wait=spin, which poll. Blocking under wait=park. 16 bytes a lock, a node a waiter, none a
 * holder. Atomic read-modify-writes: 2 uncontended, for a reader as for a writer.
 *
 * The word, its states and transitions: rw_word.h, without CLOSED and HEIR: who finds the queue empty knows enough.
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

/* In a forked child: drops the waiters that do not exist here. Whether it did. */
static inline bool fair_rw_drop_waiters(struct fair_rw *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return false;
	/* relaxed: [GENERATION-3] publishes it, and nobody queues until then */
	w_store_relaxed(&lock->queue.tail, NULL);
	rw_drop_waiters(&lock->word);
	generation_settle(&lock->generation);
	return true;
}

/* Enters if nobody is inside who is against it, nor waits; @again: whoever waits. */
static inline bool fair_rw_enter(struct fair_rw *lock, bool writes, bool again)
{
	uint32_t seen;

	/* relaxed: who comes at the same time as another is before or behind it */
	return (again || !w_load_relaxed(&lock->queue.tail)) &&
	       rw_enter(&lock->word, writes, rw_conflicts(writes), 0, &seen);
}

/* Enters if that needs no waiting. */
static inline bool fair_rw_try(struct fair_rw *lock, bool writes, bool again)
{
	/* Those who wait may be of another generation. */
	return w_likely(fair_rw_enter(lock, writes, again)) ||
	       (fair_rw_drop_waiters(lock) && fair_rw_enter(lock, writes, again));
}

/* As the next to enter, enters. False if the deadline passed first, or there are too many readers. */
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
		/* [FAIR_RW-1] acquire: pairs with nothing; [RW_WORD-1] reads again */
		seen = w_wait_acquire(&lock->word, !(VAL & against), wait == WAIT_PARK ? W_POLITE : wait_soon(wait),
				      deadline);
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

/* Enters in its turn. False if @deadline (NULL: never) passed first, or there are too many readers. */
static W_SLOW bool fair_rw_slow(struct fair_rw *lock, bool writes, struct fair_rw_policy policy,
				const struct w_deadline *deadline)
{
	struct mcs_policy queue = {.wait = policy.wait};
	struct mcs_node on_stack, *node;
	bool entered;

	/* Refused at once: a reader that enters again must not wait for a writer that waits for it. */
	if (!writes && rw_full(&lock->word))
		return false;
	(void)fair_rw_drop_waiters(lock);
	node = w_waiter_node(&on_stack, deadline);
	/* relaxed: only for the count, which who finds others waiting does in wait.h */
	if (!w_load_relaxed(&lock->queue.tail))
		w_event(contended);
	if (!mcs_acquire(&lock->queue, node, queue, deadline))
		return false;
	entered = fair_rw_enter_as_head(lock, writes, policy.wait, deadline);
	mcs_release(&lock->queue, node, queue);
	return entered;
}

/* ---- The lock ---- */

/* @again, here and below: the caller may be a reader of @lock already, and passes waiting writers. */
static inline bool fair_rw_try_read(struct fair_rw *lock, bool again)
{
	return fair_rw_try(lock, false, again);
}

/* False if @deadline (NULL: never) passed first, or fair_rw_full(). */
static inline bool fair_rw_read(struct fair_rw *lock, bool again, struct fair_rw_policy policy,
				const struct w_deadline *deadline)
{
	return w_likely(fair_rw_enter(lock, false, again)) || fair_rw_slow(lock, false, policy, deadline);
}

/* Whether a reader is refused, since there are too many. */
static inline bool fair_rw_full(struct fair_rw *lock)
{
	return rw_full(&lock->word);
}

/* Releases. False, and nothing is changed, if there was no reader. */
static inline bool fair_rw_release_read(struct fair_rw *lock, struct fair_rw_policy policy)
{
	(void)policy;
	return rw_leave_read(&lock->word);
}

static inline bool fair_rw_try_write(struct fair_rw *lock)
{
	return fair_rw_try(lock, true, false);
}

static inline bool fair_rw_write(struct fair_rw *lock, struct fair_rw_policy policy, const struct w_deadline *deadline)
{
	return w_likely(fair_rw_enter(lock, true, false)) || fair_rw_slow(lock, true, policy, deadline);
}

/* Releases. False, and nothing is changed, if there was no writer. */
static inline bool fair_rw_release_write(struct fair_rw *lock, struct fair_rw_policy policy)
{
	(void)policy;
	return rw_leave_write(&lock->word, NULL);
}

#endif
