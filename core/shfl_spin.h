/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The non-blocking ShflLock: a test-and-set word that only the head of a shuffled queue competes for.
 *
 * From: ShflLock (SOSP'19) section 4.2.1, figure 4.
 * Changed: the second byte of the lock word, which closes the lock to newcomers while there is a queue, is gone: the
 * queue itself, tail != NULL, says it. Figure 4 sets and clears the byte apart from the tail (lines 17 and 34-36), and
 * between the two steps of line 36 a newcomer finds the lock open although a waiter is queued. See shuffle.h for the
 * rest.
 *
 * Promises: mutual exclusion. A queued waiter is passed by newcomers that had found the queue empty before it entered,
 * each once; and as often as shuffle.h's bound, `batch`, allows. The head never
 * sleeps; those behind it do under wait=park. 12 bytes a lock and 4 for the fork generation, a node a waiter, none
 * a holder. Atomic read-modify-writes: 1 uncontended; contended 4: two exchanges (tail, the next head's status) and
 * two compare-exchanges (locked, tail).
 *
 *   tail ─────────────────────────────────────┐
 *   locked 0/1                                ▼
 *                   [head] ─next─▶ ... ─▶ [waiter]
 *
 *   tail   locked   means
 *   NULL   0        free: any thread may take it
 *   NULL   1        held, nobody waits
 *   n      1        held; the head waits for locked to become 0
 *   n      0        the head is about to take it (or a newcomer that saw an empty queue)
 */
#ifndef POUNDLOCK_SHFL_SPIN_H
#define POUNDLOCK_SHFL_SPIN_H

#include "part/generation.h"
#include "part/shuffle.h"

struct shfl_spin {
	shfl_tail tail;
	uint32_t embedder[3]; /* in a pthread_mutex_t __owner, __nusers and __kind are here */
	W_ATOMIC(uint32_t) locked;
	W_ATOMIC(uint32_t) generation;
};

struct shfl_spin_policy {
	enum wait wait;
	enum policy policy; /* what orders the waiters */
	uint32_t batch;     /* how many may follow one another, and pass another, because of it */
};

#define shfl_spin_settings(S)                                                       \
	S(shfl_spin, policy, POLICY_NUMA, 0, POLICY_OWN, POLICY_NUMA, POLICY_NAMES) \
	S(shfl_spin, batch, SHFL_MAX_BATCH, 1, 1000000, 4)
/* Without the embedder's. */
#define shfl_spin_bytes sizeof(shfl_tail) + 2 * sizeof(uint32_t), sizeof(struct shfl_node), 0

/* Takes the word, whoever waits. */
static inline bool shfl_spin_take(struct shfl_spin *lock)
{
	uint32_t seen = 0;

	/* [SHFL_SPIN-1] acquire: pairs with [SHFL_SPIN-3]; the last holder's critical section */
	return w_compare_exchange_acquire(&lock->locked, &seen, 1);
}

/* In a forked child: drops the waiters that do not exist here. Whether it did. */
static inline bool shfl_spin_drop_waiters(struct shfl_spin *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return false;
	/* relaxed: [GENERATION-3] publishes it, and nobody queues until then */
	w_store_relaxed(&lock->tail, NULL);
	generation_settle(&lock->generation);
	return true;
}

/* Takes @lock if it is free. Figure 4, line 6. */
static inline bool shfl_spin_try_acquire(struct shfl_spin *lock)
{
	/* relaxed: a stale NULL lets us pass one waiter, once; [SHFL_SPIN-1] orders what matters */
	if (w_load_relaxed(&lock->tail) && !shfl_spin_drop_waiters(lock))
		return false;
	return shfl_spin_take(lock);
}

/* As the head of the queue, takes the word. False if the deadline passed first. Figure 4, lines 20-30. */
static inline bool shfl_spin_take_as_head(struct shfl_spin *lock, struct shfl_node *node,
					  struct shfl_spin_policy policy, const struct w_deadline *deadline)
{
	while (!shfl_spin_take(lock)) {
		if (shfl_head_shuffles(node))
			shfl_shuffle(node, (struct shfl_stop){&lock->locked, ~0u, 0}, policy.wait == WAIT_PARK,
				     shfl_by(&policy.policy, policy.batch));
		/* [SHFL_SPIN-2] acquire: pairs with nothing; [SHFL_SPIN-1] reads again */
		if (w_wait_acquire(&lock->locked, !VAL, wait_soon(policy.wait), deadline)) {
			w_event(abandon);
			return false;
		}
	}
	return true;
}

static inline bool shfl_spin_acquire_queued(struct shfl_spin *lock, struct shfl_node *node,
					    struct shfl_spin_policy policy, const struct w_deadline *deadline)
{
	W_ATOMIC(uint32_t) *sleeper;
	bool taken, slept = false;

	(void)shfl_spin_drop_waiters(lock);
	if (!shfl_enter(&lock->tail, node, policy_note(policy.policy, lock)) &&
	    !shfl_wait_turn(node, policy.wait, deadline, &slept, shfl_by(&policy.policy, policy.batch)))
		return false;
	taken = shfl_spin_take_as_head(lock, node, policy, deadline);
	sleeper = shfl_leave(&lock->tail, node, policy.wait);
	if (sleeper) {
		w_event(wake_in_cs);
		w_unpark(sleeper);
	}
	return taken;
}

/* Takes @lock, which was not free a moment ago. */
static W_SLOW bool shfl_spin_acquire_slow(struct shfl_spin *lock, struct shfl_spin_policy policy,
					  const struct w_deadline *deadline)
{
	W_OWN_LINE struct shfl_node node;

	return shfl_spin_acquire_queued(lock, w_waiter_node(&node, deadline), policy, deadline);
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool shfl_spin_acquire(struct shfl_spin *lock, struct shfl_spin_policy policy,
				     const struct w_deadline *deadline)
{
	return w_likely(shfl_spin_try_acquire(lock)) || shfl_spin_acquire_slow(lock, policy, deadline);
}

/* Releases @lock. False, and nothing is changed, if it was not held. Figure 4, line 53. */
static inline bool shfl_spin_release(struct shfl_spin *lock, struct shfl_spin_policy policy)
{
	(void)policy;
	/* relaxed: only the holder can make it 0, so the holder reads its own doing */
	if (w_unlikely(!w_load_relaxed(&lock->locked)))
		return false;
	/* [SHFL_SPIN-3] release: pairs with [SHFL_SPIN-1]; our critical section */
	w_store_release(&lock->locked, 0);
	return true;
}

#endif
