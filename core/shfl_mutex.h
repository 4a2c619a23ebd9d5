/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The blocking ShflLock: a word that newcomers may take at once, and a shuffled queue of waiters that sleep.
 *
 * From: ShflLock (SOSP'19) section 4.2.2, figures 6 and 7.
 * Changed, and why:
 *  - Lock and flags are one word, always used whole (figures 3 and 4 use its bytes apart).
 *  - The head of the queue sleeps too, on that word (PARKED): a head that only spins takes a CPU that the holder needs
 *    when threads outnumber CPUs, and wastes one when critical sections are long.
 *  - Section 4.2.2 leaves the lock open to newcomers without end. Here a head that has tried `patience` times in vain
 *    (each time after it was woken, or saw the lock free or its spinning over) closes the lock to them (CLOSED) and is the next to hold it.
 *  - A newcomer that finds nobody spinning on the word, since the head sleeps, spins there for a while before it queues.
 *    Behind sleepers it would only fall asleep too, and the program would run on fewer CPUs than it has.
 *  - A head that takes the lock with a sleeping successor makes it the head at once, but leaves its wake-up to its own
 *    release (HEIR), after the word is free: nobody ever waits for a wake-up with the lock held. Figure 7's earlier
 *    wake-up is kept where it pays: by a head that has not slept itself, since then there are CPUs to run on.
 *
 * Promises: mutual exclusion. Newcomers pass waiters until the head has tried `patience` times in vain; a head is
 * passed by nobody after that; in the queue the bound is shuffle.h's, `batch`. Blocking. 28 bytes a lock in a
 * frame of 32, of which the embedder has 4; a node a waiter, none a holder. Atomic read-modify-writes: 2
 * uncontended; contended 5: two exchanges (tail, the next head's status), three compare-exchanges (the word twice,
 * tail).
 *
 *   state = LOCKED | PARKED | HEIR | CLOSED
 *     LOCKED  legal to set by a newcomer if state == 0, by the head if !LOCKED; to clear by the holder
 *     PARKED  the head sleeps on state. Legal to set by the head if LOCKED; cleared by the release, which wakes it
 *     HEIR    the head sleeps on its own status, at `heir`. Legal to set by the holder; cleared by the release, which
 *             wakes it
 *     CLOSED  only the head may take the lock. Legal to set and clear by the head
 *
 *   0 ──newcomer──▶ LOCKED ──release──▶ 0
 *   LOCKED ──head──▶ LOCKED|PARKED ──release, unpark──▶ 0
 *   LOCKED ──head──▶ LOCKED|CLOSED ──head──▶ LOCKED|CLOSED|PARKED ──release, unpark──▶ CLOSED ──head──▶ LOCKED
 *   LOCKED ──head that became the holder──▶ LOCKED|HEIR ──release, unpark──▶ 0
 */
#ifndef POUNDLOCK_SHFL_MUTEX_H
#define POUNDLOCK_SHFL_MUTEX_H

#include "part/disguise.h"
#include "part/generation.h"
#include "part/shuffle.h"

#define SHFL_MUTEX_LOCKED 1u
#define SHFL_MUTEX_PARKED 2u
#define SHFL_MUTEX_HEIR 4u
#define SHFL_MUTEX_CLOSED 8u

/* Who embeds it in a frame of another form declares that, with the same fields. */
#ifndef SHFL_MUTEX_FRAME
struct shfl_mutex {
	shfl_tail tail;
	W_ATOMIC(uint32_t) *heir; /* the holder's; an address to unpark, never to read; disguised */
	uint32_t embedder;        /* in a pthread_mutex_t __kind is here */
	W_ATOMIC(uint32_t) state;
	W_ATOMIC(uint32_t) generation;
	W_ATOMIC(uint32_t) spinner; /* whether somebody spins on state, about: the head, or a newcomer in its stead */
};
#endif

struct shfl_mutex_policy {
	enum wait wait;
	uint32_t patience;  /* how often a head tries in vain before it closes the lock to newcomers */
	enum policy policy; /* what orders the waiters in the queue */
	uint32_t batch;     /* how many may follow one another, and pass another, because of it */
};

#define shfl_mutex_settings(S)                                                       \
	S(shfl_mutex, patience, 4, 0, 1000000000, 1)                                 \
	S(shfl_mutex, policy, POLICY_NUMA, 0, POLICY_OWN, POLICY_NUMA, POLICY_NAMES) \
	S(shfl_mutex, batch, SHFL_MAX_BATCH, 1, 1000000, 4)
/* Without the embedder's. */
#define shfl_mutex_bytes sizeof(struct shfl_mutex) - sizeof(uint32_t), sizeof(struct shfl_node), 0

/* In a forked child: drops the waiters that do not exist here. Whether it did. */
static inline bool shfl_mutex_drop_waiters(struct shfl_mutex *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return false;
	/* relaxed, all: [GENERATION-3] publishes them, and nobody queues until then */
	w_store_relaxed(&lock->tail, NULL);
	w_store_relaxed(&lock->spinner, 0);
	(void)w_fetch_and_relaxed(&lock->state, SHFL_MUTEX_LOCKED);
	generation_settle(&lock->generation);
	return true;
}

/* Takes @lock if it is free and open; else *@seen is what it was. */
static inline bool shfl_mutex_take_free(struct shfl_mutex *lock, uint32_t *seen)
{
	*seen = 0;
	/* [SHFL_MUTEX-1] acquire: pairs with [SHFL_MUTEX-5], [SHFL_MUTEX-4]; the last holder's
	 * critical section */
	return w_compare_exchange_acquire(&lock->state, seen, SHFL_MUTEX_LOCKED);
}

/* Takes @lock, last seen as @seen, if it was closed for a head that does not exist in this child. */
static inline bool shfl_mutex_try_acquire_slow(struct shfl_mutex *lock, uint32_t seen)
{
	return !(seen & SHFL_MUTEX_LOCKED) && shfl_mutex_drop_waiters(lock) && shfl_mutex_take_free(lock, &seen);
}

/* Takes @lock if it is free. Figure 4, line 6. */
static inline bool shfl_mutex_try_acquire(struct shfl_mutex *lock)
{
	uint32_t seen;

	return w_likely(shfl_mutex_take_free(lock, &seen)) || shfl_mutex_try_acquire_slow(lock, seen);
}

/* As the head, takes the word once, if it is not held. */
static inline bool shfl_mutex_take(struct shfl_mutex *lock, uint32_t *seen)
{
	/* relaxed: the compare-exchange decides */
	*seen = w_load_relaxed(&lock->state);
	/* [SHFL_MUTEX-2] acquire: pairs with [SHFL_MUTEX-5], [SHFL_MUTEX-4], as [SHFL_MUTEX-1].
	 * What it clears is CLOSED, ours */
	while (!(*seen & SHFL_MUTEX_LOCKED))
		if (w_compare_exchange_acquire(&lock->state, seen, SHFL_MUTEX_LOCKED))
			return true;
	return false;
}

/* As the head, sleeps until a release, having last seen @seen. */
static inline void shfl_mutex_park(struct shfl_mutex *lock, uint32_t seen, const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; the releaser learns only that there is somebody to wake */
	if (!(seen & SHFL_MUTEX_PARKED) && !w_compare_exchange_relaxed(&lock->state, &seen, seen | SHFL_MUTEX_PARKED))
		return;
	w_event(park);
	w_park(&lock->state, seen | SHFL_MUTEX_PARKED, deadline);
}

/* Waits until the word is not held, or @until of its flags is set: its value. Ends early as @policy waits. */
static inline uint32_t shfl_mutex_watch(struct shfl_mutex *lock, uint32_t until, struct shfl_mutex_policy policy,
					const struct w_deadline *deadline)
{
	uint32_t seen;

	/* relaxed, both: a hint to newcomers, which may be wrong */
	w_store_relaxed(&lock->spinner, 1);
	/* [SHFL_MUTEX-3] acquire: pairs with nothing; [SHFL_MUTEX-1] and [SHFL_MUTEX-2] read
	 * again */
	seen = w_wait_acquire(&lock->state, !(VAL & SHFL_MUTEX_LOCKED) || (VAL & until),
			      policy.wait == WAIT_PARK ? W_POLITE : wait_soon(policy.wait), deadline);
	w_store_relaxed(&lock->spinner, 0);
	return seen;
}

/* As the head of the queue, takes @lock. False if the deadline passed first. */
static inline bool shfl_mutex_take_as_head(struct shfl_mutex *lock, struct shfl_node *node,
					   struct shfl_mutex_policy policy, const struct w_deadline *deadline,
					   bool slept)
{
	uint32_t seen, in_vain = 0;

	while (!shfl_mutex_take(lock, &seen)) {
		if (shfl_head_shuffles(node))
			shfl_shuffle(node, (struct shfl_stop){&lock->state, SHFL_MUTEX_LOCKED, 0}, !slept,
				     shfl_by(&policy.policy, policy.batch));
		if (in_vain++ == policy.patience) {
			/* relaxed: closes to newcomers, publishes nothing */
			(void)w_fetch_or_relaxed(&lock->state, SHFL_MUTEX_CLOSED);
			w_event(close);
		}
		seen = shfl_mutex_watch(lock, 0, policy, deadline);
		if (!(seen & SHFL_MUTEX_LOCKED))
			continue;
		if (w_expired(deadline)) {
			w_event(abandon);
			/* relaxed: opens to newcomers, publishes nothing. The next head closes for itself */
			(void)w_fetch_and_relaxed(&lock->state, ~SHFL_MUTEX_CLOSED);
			return false;
		}
		slept = true;
		shfl_mutex_park(lock, seen, deadline);
	}
	return true;
}

static inline bool shfl_mutex_acquire_queued(struct shfl_mutex *lock, struct shfl_node *node,
					     struct shfl_mutex_policy policy, const struct w_deadline *deadline)
{
	W_ATOMIC(uint32_t) *sleeper;
	bool taken, slept = false;

	(void)shfl_mutex_drop_waiters(lock);
	if (!shfl_enter(&lock->tail, node, policy_note(policy.policy, lock)) &&
	    !shfl_wait_turn(node, policy.wait, deadline, &slept, shfl_by(&policy.policy, policy.batch)))
		return false;
	taken = shfl_mutex_take_as_head(lock, node, policy, deadline, slept);
	sleeper = shfl_leave(&lock->tail, node, policy.wait);
	if (!sleeper)
		return taken;
	if (!taken) {
		w_unpark(sleeper);
		return false;
	}
	lock->heir = disguise(sleeper);
	/* relaxed: only our own release, or that of a thread we synchronise with, acts on it */
	(void)w_fetch_or_relaxed(&lock->state, SHFL_MUTEX_HEIR);
	return true;
}

/* As a newcomer, spins for @lock for a while, unless somebody does so already. Whether it got it. */
static inline bool shfl_mutex_spin(struct shfl_mutex *lock, struct shfl_mutex_policy policy,
				   const struct w_deadline *deadline)
{
	/* relaxed: a hint, which may be wrong */
	if (policy.wait != WAIT_PARK || w_load_relaxed(&lock->spinner))
		return false;
	(void)shfl_mutex_watch(lock, SHFL_MUTEX_CLOSED, policy, deadline);
	return shfl_mutex_try_acquire(lock);
}

/* Takes @lock, which was not free a moment ago. False if @deadline (NULL: never) passed first. */
static W_SLOW bool shfl_mutex_acquire_slow(struct shfl_mutex *lock, struct shfl_mutex_policy policy,
					   const struct w_deadline *deadline)
{
	W_OWN_LINE struct shfl_node node;

	if (shfl_mutex_spin(lock, policy, deadline))
		return true;
	return shfl_mutex_acquire_queued(lock, w_waiter_node(&node, deadline), policy, deadline);
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool shfl_mutex_acquire(struct shfl_mutex *lock, struct shfl_mutex_policy policy,
				      const struct w_deadline *deadline)
{
	uint32_t seen;

	return w_likely(shfl_mutex_take_free(lock, &seen)) || shfl_mutex_acquire_slow(lock, policy, deadline);
}

/* Releases @lock, which has flags set. False, and nothing is changed, if it was not held. */
static W_SLOW bool shfl_mutex_release_slow(struct shfl_mutex *lock)
{
	/* relaxed: only the holder can clear LOCKED, so the holder reads its own doing; the compare-exchange decides */
	uint32_t seen = w_load_relaxed(&lock->state);
	W_ATOMIC(uint32_t) *heir = NULL;

	do {
		if (!(seen & SHFL_MUTEX_LOCKED))
			return false;
		if (seen & SHFL_MUTEX_HEIR)
			heir = disguise(lock->heir);
		/* [SHFL_MUTEX-4] release: pairs with [SHFL_MUTEX-1], [SHFL_MUTEX-2]; our critical
		 * section */
	} while (!w_compare_exchange_release(&lock->state, &seen, seen & SHFL_MUTEX_CLOSED));
	if (heir) {
		w_event(wake_late);
		w_unpark(heir);
	}
	if (seen & SHFL_MUTEX_PARKED) {
		w_event(wake_late);
		w_unpark(&lock->state);
	}
	return true;
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool shfl_mutex_release(struct shfl_mutex *lock, struct shfl_mutex_policy policy)
{
	uint32_t seen = SHFL_MUTEX_LOCKED;

	(void)policy;
	/* [SHFL_MUTEX-5] release: pairs with [SHFL_MUTEX-1], [SHFL_MUTEX-2]; our critical
	 * section */
	return w_likely(w_compare_exchange_release(&lock->state, &seen, 0)) || shfl_mutex_release_slow(lock);
}

#endif
