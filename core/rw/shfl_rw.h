/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ShflLock's readers-writer lock: a centralised indicator, and a shuffled queue of those who have to wait for it.
 *
 * From: ShflLock (SOSP'19) section 4.2.3.
 * Changed, and why:
 *  - The paper puts the indicator beside a whole blocking lock ("wlock"), which a waiter holds while it waits for the
 *    indicator. Only the head of wlock's queue can hold it, so its word would say nothing that the queue does not: here
 *    the head of the queue is that waiter, and the lock is 24 bytes.
 *  - A waiting head closes the lock to newcomers at once only if it is a writer and finds readers inside: they overlap,
 *    and might never be all out. Against writers, who leave, it first tries `patience` times, as in shfl_mutex.h: a
 *    closed lock whose head sleeps stands idle until that has woken.
 *  - The head sleeps, too, on the word.
 *  - Readers are a domain of their own for the shuffler: behind a reader it gathers readers, which then enter together,
 *    behind a writer writers of its domain. The paper moves writers only.
 *  - A reader that is inside may enter again whatever a waiting writer has asked for (@again), since that writer waits
 *    for it.
 *
 * Promises: readers together, 2^27 at most, a writer alone. Newcomers pass waiters until the head closes the lock; in the queue the
 * bound is shuffle.h's, SHFL_MAX_BATCH. Blocking. 24 bytes a lock, a node a waiter, none a holder. Atomic
 * read-modify-writes: 2 uncontended, for a reader as for a writer.
 *
 * The word, its states and transitions: rw_word.h.
 */
#ifndef POUNDLOCK_SHFL_RW_H
#define POUNDLOCK_SHFL_RW_H

#include "part/generation.h"
#include "part/rw_word.h"
#include "part/shuffle.h"

/* Who embeds it in a frame of another form declares that, with the same fields. */
#ifndef SHFL_RW_FRAME
struct shfl_rw {
	shfl_tail tail;
	W_ATOMIC(uint32_t) *heir; /* the writer's; an address to unpark, never to read */
	rw_word word;
	W_ATOMIC(uint32_t) generation;
};
#endif

struct shfl_rw_policy {
	enum wait wait;
	uint32_t patience; /* how often a head tries in vain before it closes the lock to newcomers */
};

#define shfl_rw_settings(S) S(shfl_rw, patience, 4, 0, 1000000000, 1)
#define shfl_rw_bytes sizeof(struct shfl_rw), sizeof(struct shfl_node), 0

/* What shuffling takes for the domain of all readers. */
#define SHFL_RW_READERS UINT32_MAX

static inline struct shfl_order shfl_rw_order(void)
{
	static const enum policy numa = POLICY_NUMA;

	return shfl_by(&numa, SHFL_MAX_BATCH);
}

/* In a forked child: drops the waiters that do not exist here. Whether it did. */
static inline bool shfl_rw_drop_waiters(struct shfl_rw *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return false;
	/* relaxed: [GENERATION-3] publishes it, and nobody queues until then */
	w_store_relaxed(&lock->tail, NULL);
	rw_drop_waiters(&lock->word);
	generation_settle(&lock->generation);
	return true;
}

/* What keeps a newcomer out; one that may be a reader already (@again) only waits for writers inside. */
static inline uint32_t shfl_rw_against(bool writes, bool again)
{
	return rw_against(writes) | (again ? 0 : RW_CLOSED);
}

/* Enters if nobody is against it. */
static inline bool shfl_rw_try(struct shfl_rw *lock, bool writes, bool again)
{
	uint32_t seen;

	if (w_likely(rw_enter(&lock->word, writes, shfl_rw_against(writes, again), 0, &seen)))
		return true;
	/* It may have been closed for a head that does not exist in this child. */
	return !(seen & rw_against(writes)) && shfl_rw_drop_waiters(lock) &&
	       rw_enter(&lock->word, writes, shfl_rw_against(writes, again), 0, &seen);
}

/* Closes the lock to newcomers, for the head, last seen as @seen, if that has cause to. */
static inline void shfl_rw_close(struct shfl_rw *lock, uint32_t seen, bool out_of_patience)
{
	if ((seen & RW_CLOSED) || !(out_of_patience || (seen & RW_READERS)))
		return;
	w_event(close);
	/* relaxed: closes to newcomers, publishes nothing */
	(void)w_fetch_or_relaxed(&lock->word, RW_CLOSED);
}

/* As the head of the queue, enters. False if the deadline passed first, or there are too many readers. */
static inline bool shfl_rw_enter_as_head(struct shfl_rw *lock, struct shfl_node *node, bool writes,
					 struct shfl_rw_policy policy, const struct w_deadline *deadline, bool slept)
{
	const uint32_t against = rw_against(writes);
	uint32_t seen, in_vain = 0;

	while (!rw_enter(&lock->word, writes, against, RW_CLOSED | RW_PARKED, &seen)) {
		if (w_unlikely(rw_refuses(writes, seen))) {
			rw_give_up(&lock->word);
			return false;
		}
		if (shfl_head_shuffles(node))
			shfl_shuffle(node, (struct shfl_stop){&lock->word, against, 0}, !slept, shfl_rw_order());
		shfl_rw_close(lock, seen, in_vain++ >= policy.patience);
		/* [SHFL_RW-1] acquire: pairs with nothing; [RW_WORD-1] reads again. Readers that
		 * are inside an open lock: close it */
		seen = w_wait_acquire(&lock->word, !(VAL & against) || ((VAL & RW_READERS) && !(VAL & RW_CLOSED)),
				      policy.wait == WAIT_PARK ? W_POLITE : wait_soon(policy.wait), deadline);
		if (!(seen & against))
			continue;
		if (w_expired(deadline)) {
			rw_give_up(&lock->word);
			return false;
		}
		if ((seen & RW_READERS) && !(seen & RW_CLOSED))
			continue;
		slept = true;
		rw_park(&lock->word, seen, deadline);
	}
	return true;
}

static W_SLOW bool shfl_rw_queue(struct shfl_rw *lock, struct shfl_node *node, bool writes,
				 struct shfl_rw_policy policy, const struct w_deadline *deadline)
{
	W_ATOMIC(uint32_t) *sleeper;
	bool entered, slept = false;

	(void)shfl_rw_drop_waiters(lock);
	if (!shfl_enter(&lock->tail, node, writes ? policy_numa_note() : SHFL_RW_READERS) &&
	    !shfl_wait_turn(node, policy.wait, deadline, &slept, shfl_rw_order()))
		return false;
	entered = shfl_rw_enter_as_head(lock, node, writes, policy, deadline, slept);
	sleeper = shfl_leave(&lock->tail, node, policy.wait);
	if (!sleeper)
		return entered;
	/* The next head may be a reader, which can enter beside us; behind a writer it sleeps on. */
	if (!entered || !writes) {
		w_unpark(sleeper);
		return entered;
	}
	lock->heir = sleeper;
	/* relaxed: only our own release, or that of a thread we synchronise with, acts on it */
	(void)w_fetch_or_relaxed(&lock->word, RW_HEIR);
	return true;
}

/* Enters, having found the lock taken. False if @deadline (NULL: never) passed first, or there are too many readers. */
static W_SLOW bool shfl_rw_slow(struct shfl_rw *lock, bool writes, struct shfl_rw_policy policy,
				const struct w_deadline *deadline)
{
	W_OWN_LINE struct shfl_node node;

	/* Refused at once: a reader that enters again must not wait for a writer that waits for it. */
	if (!writes && rw_full(&lock->word))
		return false;
	return shfl_rw_queue(lock, w_waiter_node(&node, deadline), writes, policy, deadline);
}

/* ---- The lock ---- */

/* @again, here and below: the caller may be a reader of @lock already, and passes waiting writers. */
static inline bool shfl_rw_try_read(struct shfl_rw *lock, bool again)
{
	return shfl_rw_try(lock, false, again);
}

/* False if @deadline (NULL: never) passed first, or shfl_rw_full(). */
static inline bool shfl_rw_read(struct shfl_rw *lock, bool again, struct shfl_rw_policy policy,
				const struct w_deadline *deadline)
{
	uint32_t seen;

	return w_likely(rw_enter(&lock->word, false, shfl_rw_against(false, again), 0, &seen)) ||
	       shfl_rw_slow(lock, false, policy, deadline);
}

/* Whether a reader is refused, since there are too many. */
static inline bool shfl_rw_full(struct shfl_rw *lock)
{
	return rw_full(&lock->word);
}

/* Releases. False, and nothing is changed, if there was no reader. */
static inline bool shfl_rw_release_read(struct shfl_rw *lock, struct shfl_rw_policy policy)
{
	(void)policy;
	return rw_leave_read(&lock->word);
}

static inline bool shfl_rw_try_write(struct shfl_rw *lock)
{
	return shfl_rw_try(lock, true, false);
}

static inline bool shfl_rw_write(struct shfl_rw *lock, struct shfl_rw_policy policy, const struct w_deadline *deadline)
{
	uint32_t seen;

	return w_likely(rw_enter(&lock->word, true, shfl_rw_against(true, false), 0, &seen)) ||
	       shfl_rw_slow(lock, true, policy, deadline);
}

/* Releases. False, and nothing is changed, if there was no writer. */
static inline bool shfl_rw_release_write(struct shfl_rw *lock, struct shfl_rw_policy policy)
{
	(void)policy;
	return rw_leave_write(&lock->word, &lock->heir);
}

#endif
