/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The non-blocking ShflLock: a test-and-set word that only the head of a shuffled queue competes
 * for.
 *
 * From: Kashyap et al., "Scalable and practical locking with shuffling" (ShflLock), SOSP'19,
 * section 4.2.1, figure 4.
 *
 * Order: same domain first, in bounded batches.
 *
 * Promise: mutual exclusion. A newcomer overtakes a queued waiter only if it read the tail before
 * that waiter entered an empty queue, at most once. Within the queue, the bound is `batch`
 * (part/shuffle.h). The head never sleeps; the waiters behind it do under wait=park. 16 bytes per
 * lock and 4 for the fork generation; one node per waiter, none per holder. Atomic
 * read-modify-writes: 1 uncontended, 4 contended (two exchanges: the tail, the next head's status;
 * two compare-exchanges: locked, the tail).
 *
 *   tail ─────────────────────────────────────┐
 *   locked 0/1                                ▼
 *                   [head] ─next─▶ ... ─▶ [waiter]
 *
 *   tail   locked   meaning
 *   NULL   0        free: any thread may take the lock
 *   NULL   1        held, no waiters
 *   n      1        held; the head waits for locked to become 0
 *   n      0        the head, or a newcomer that read an empty tail, is about to take the lock
 *
 * Departure from the paper: figure 4 closes the lock to newcomers by a second byte of the word
 * while there is a queue. It sets and clears that byte apart from the tail (lines 17 and 34-36), so
 * between the two steps of line 36 a newcomer finds the lock open although a waiter is queued. Here
 * the queue itself closes the lock: tail != NULL. part/shuffle.h lists the rest.
 */
#ifndef POUNDLOCK_SHFL_SPIN_H
#define POUNDLOCK_SHFL_SPIN_H

#include "part/generation.h"
#include "part/shuffle.h"

struct shfl_spin {
	shfl_tail tail;
	uint32_t embedder[3]; /* overlays __owner, __nusers and __kind in a pthread_mutex_t */
	W_ATOMIC(uint32_t) locked;
	W_ATOMIC(uint32_t) generation;
};

struct shfl_spin_policy {
	enum wait wait;
	enum policy policy; /* what orders the waiters */
	/* most waiters in one batch, and most times that one waiter is bypassed */
	uint32_t batch;
};

#define shfl_spin_settings(S)                                              \
	S(shfl_spin, policy, POLICY_NUMA, 0, POLICY_OWN - 1, POLICY_NAMES) \
	S(shfl_spin, batch, SHFL_MAX_BATCH, 1, 1000000)
/* Excludes the embedder's fields. */
#define shfl_spin_bytes sizeof(shfl_tail) + 2 * sizeof(uint32_t), sizeof(struct shfl_node), 0

/* Takes the word even if threads wait. */
static inline bool shfl_spin_take(struct shfl_spin *lock)
{
	uint32_t seen = 0;

	/* [SHFL_SPIN-1] acquire: pairs with [SHFL_SPIN-3]; the previous critical section */
	return w_compare_exchange_acquire(&lock->locked, &seen, 1);
}

/* In a forked child, discards the parent's waiters. Returns true if it did. */
static inline bool shfl_spin_drop_waiters(struct shfl_spin *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return false;
	/* relaxed: [GENERATION-3] publishes it; nobody queues before that */
	w_store_relaxed(&lock->tail, NULL);
	generation_settle(&lock->generation);
	return true;
}

/* Takes @lock if it is free and nobody waits. Figure 4, line 6. */
static inline bool shfl_spin_try_acquire(struct shfl_spin *lock)
{
	/*
	 * relaxed: a stale NULL lets us bypass one waiter once; [SHFL_SPIN-1] orders the critical
	 * sections
	 */
	if (w_load_relaxed(&lock->tail) && !shfl_spin_drop_waiters(lock))
		return false;
	return shfl_spin_take(lock);
}

/*
 * As the head of the queue: 0 -> 1. Returns false if @deadline passes first. Figure 4, lines 20-30.
 */
static inline bool shfl_spin_take_as_head(struct shfl_spin *lock, struct shfl_node *node,
					  struct shfl_spin_policy policy,
					  const struct w_deadline *deadline)
{
	while (!shfl_spin_take(lock)) {
		if (shfl_head_shuffles(node))
			shfl_shuffle(node, (struct shfl_stop){&lock->locked, ~0u, 0},
				     policy.wait == WAIT_PARK,
				     shfl_by(&policy.policy, policy.batch));
		/* [SHFL_SPIN-2] acquire: pairs with nothing; [SHFL_SPIN-1] reads the word again */
		if (w_wait_acquire(&lock->locked, !VAL, wait_soon(policy.wait), deadline)) {
			w_event(abandon);
			return false;
		}
	}
	return true;
}

static inline bool shfl_spin_acquire_queued(struct shfl_spin *lock, struct shfl_node *node,
					    struct shfl_spin_policy policy,
					    const struct w_deadline *deadline)
{
	W_ATOMIC(uint32_t) *sleeper;
	bool taken, slept = false;

	(void)shfl_spin_drop_waiters(lock);
	if (!shfl_enter(&lock->tail, node, policy_note(policy.policy, lock)) &&
	    !shfl_wait_turn(node, wait_ordered(policy.wait), policy.wait, deadline, &slept,
			    shfl_by(&policy.policy, policy.batch)))
		return false;
	taken = shfl_spin_take_as_head(lock, node, policy, deadline);
	sleeper = shfl_leave(&lock->tail, node, policy.wait);
	if (sleeper) {
		w_event(wake_in_cs);
		w_unpark(sleeper);
	}
	return taken;
}

/* Slow path: @lock was not free. Returns false if @deadline (NULL: none) passes first. */
static W_SLOW bool shfl_spin_acquire_slow(struct shfl_spin *lock, struct shfl_spin_policy policy,
					  const struct w_deadline *deadline)
{
	W_OWN_LINE struct shfl_node node;

	return shfl_spin_acquire_queued(lock, w_waiter_node(&node, deadline), policy, deadline);
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool shfl_spin_acquire(struct shfl_spin *lock, struct shfl_spin_policy policy,
				     const struct w_deadline *deadline)
{
	return w_likely(shfl_spin_try_acquire(lock)) ||
	       shfl_spin_acquire_slow(lock, policy, deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. Figure 4, line 53. */
static inline bool shfl_spin_release(struct shfl_spin *lock, struct shfl_spin_policy policy)
{
	(void)policy;
	/* relaxed: only the holder writes 0, so it reads its own write */
	if (w_unlikely(!w_load_relaxed(&lock->locked)))
		return false;
	/* [SHFL_SPIN-3] release: pairs with [SHFL_SPIN-1]; our critical section */
	w_store_release(&lock->locked, 0);
	return true;
}

#endif
