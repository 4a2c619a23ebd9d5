/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * MUTEXEE: a futex mutex that saves the energy and the time of wake-ups. Waiters spin for a long
 * time before they sleep, and a release wakes nobody while a waiter spins.
 *
 * From: Falsafi, Guerraoui, Picorel, Trigonakis, "Unlocking energy", USENIX ATC'16, section 5.
 *
 * Order: no order; unbounded bypass of sleepers.
 *
 * Promise: mutual exclusion; no order, and no bound on how often a sleeper is bypassed. Waiters
 * sleep under wait=park. 20 bytes per lock and 4 for the fork generation, none per waiter or
 * holder. Atomic read-modify-writes: 2 uncontended, unbounded contended.
 *
 *   word = LOCKED | SLEEPERS | spinners
 *     LOCKED    the lock is held
 *     SLEEPERS  a waiter may sleep on the word. A release that sees no spinner clears the flag and
 *               wakes one sleeper
 *     spinners  number of spinning waiters. A waiter stops spinning only by taking the lock, or
 *               while the lock is held, so that either it or a later release serves the sleepers
 *
 *   0 ──▶ LOCKED ──▶ 0
 *   LOCKED ──waiter──▶ LOCKED|1 ──release──▶ 1 ──waiter──▶ LOCKED
 *   LOCKED|1 ──waiter, its spinning over──▶ LOCKED|SLEEPERS ──release, unpark──▶ 0
 *   0 ──woken sleeper──▶ LOCKED|SLEEPERS
 *   LOCKED|SLEEPERS|1 ──release──▶ SLEEPERS|1 ──spinner──▶ LOCKED|SLEEPERS
 *
 * The modes: the lock decides after each `window` contended acquisitions how long waiters spin. If
 * more than 30% of these came after a sleep, waiters spin only briefly for the next 8 windows. Then
 * the lock tries long spinning again.
 *
 * Departures from the paper:
 *  - The paper's release frees the lock, watches it for some hundred cycles, and wakes a sleeper
 *    only if nobody took it. That reads the lock after its release, when the next owner may have
 *    freed its memory. Here the word counts the spinners, and a release leaves the hand-over to
 *    them if there are any. This avoids the same wake-ups, except those that a thread arriving just
 *    after the release would have avoided.
 *  - The paper's 8,000 cycles of spinning are the world's bounded spin, and its 256 cycles in the
 *    sleepy mode are a few pauses.
 *  - The optional time-out, after which a sleeper spins until it has the lock, is left out: it
 *    bounds the tail latency, but gives up the purpose of the lock.
 */
#ifndef POUNDLOCK_MUTEXEE_H
#define POUNDLOCK_MUTEXEE_H

#include "part/generation.h"
#include "part/wait.h"

#define MUTEXEE_LOCKED 1u
#define MUTEXEE_SLEEPERS 2u
#define MUTEXEE_SPINNER 4u

/* Per cent of contended acquisitions that may end in a sleep while long spinning still pays off. */
#define MUTEXEE_SLEPT_MOST 30
/* Windows of brief spinning, and its length in pauses. */
#define MUTEXEE_SLEEPY 8
#define MUTEXEE_SHORT 4

struct mutexee {
	W_ATOMIC(uint32_t) word;
	W_ATOMIC(uint32_t) generation;
	uint32_t embedder[3];      /* overlays __owner, __nusers and __kind in a pthread_mutex_t */
	W_ATOMIC(uint32_t) sleepy; /* remaining windows of brief spinning */
	/* written only by the holder: contended acquisitions in this window */
	uint32_t contended;
	uint32_t slept; /* written only by the holder: how many of them slept */
};

struct mutexee_policy {
	enum wait wait;
	uint32_t window; /* contended acquisitions per choice of the mode */
};

#define mutexee_settings(S) S(mutexee, window, 2048, 1, 1000000000)
/* Excludes the embedder's fields. */
#define mutexee_bytes sizeof(struct mutexee) - 3 * sizeof(uint32_t), 0, 0

/* In a forked child, discards the parent's waiters. */
static inline void mutexee_drop_waiters(struct mutexee *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return;
	/* relaxed: [GENERATION-3] publishes it; nobody waits before that */
	(void)w_fetch_and_relaxed(&lock->word, MUTEXEE_LOCKED);
	generation_settle(&lock->generation);
}

/* Sets LOCKED if the lock is free. */
static inline bool mutexee_try_acquire(struct mutexee *lock)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(&lock->word);

	while (!(seen & MUTEXEE_LOCKED))
		/* [MUTEXEE-1] acquire: pairs with [MUTEXEE-5]; the previous critical section */
		if (w_compare_exchange_acquire(&lock->word, &seen, seen | MUTEXEE_LOCKED))
			return true;
	return false;
}

/* Spins for @lock. Returns false if the spin budget is exhausted or @deadline passes. */
static inline bool mutexee_spin(struct mutexee *lock, enum wait wait,
				const struct w_deadline *deadline)
{
	/* relaxed: only tells the release that it can skip a wake-up */
	uint32_t seen = w_fetch_add_relaxed(&lock->word, MUTEXEE_SPINNER) + MUTEXEE_SPINNER;
	bool over = false;

	for (;;) {
		if (!(seen & MUTEXEE_LOCKED)) {
			/* [MUTEXEE-2] acquire: pairs with [MUTEXEE-5], as [MUTEXEE-1] */
			if (w_compare_exchange_acquire(&lock->word, &seen,
						       (seen - MUTEXEE_SPINNER) | MUTEXEE_LOCKED))
				return true;
		} else if (over) {
			/* relaxed: the holder's release reads that we no longer spin */
			if (w_compare_exchange_relaxed(&lock->word, &seen, seen - MUTEXEE_SPINNER))
				return false;
		} else {
			/*
			 * [MUTEXEE-3] acquire: pairs with nothing; [MUTEXEE-2] reads the word again
			 */
			seen = w_wait_acquire(&lock->word, !(VAL & MUTEXEE_LOCKED), wait_race(wait),
					      deadline);
			over = seen & MUTEXEE_LOCKED;
		}
	}
}

/* Sleeps until @lock, which was held, is taken. Returns false if @deadline passes first. */
static inline bool mutexee_sleep(struct mutexee *lock, const struct w_deadline *deadline)
{
	uint32_t seen;

	for (;;) {
		/*
		 * relaxed: only requests a wake-up; if the lock is free by now, [MUTEXEE-4] or the
		 * futex notices
		 */
		seen = w_fetch_or_relaxed(&lock->word, MUTEXEE_SLEEPERS) | MUTEXEE_SLEEPERS;
		while (!(seen & MUTEXEE_LOCKED))
			/* [MUTEXEE-4] acquire: pairs with [MUTEXEE-5], as [MUTEXEE-1] */
			if (w_compare_exchange_acquire(&lock->word, &seen,
						       seen | MUTEXEE_LOCKED | MUTEXEE_SLEEPERS))
				return true;
		if (!(seen & MUTEXEE_SLEEPERS))
			continue;
		/*
		 * A waiter may leave only here: if it consumed a wake-up, the holder now owes one
		 * to the sleepers.
		 */
		if (w_expired(deadline))
			return false;
		w_event(park);
		w_park(&lock->word, seen, deadline);
	}
}

/* As the holder, counts a contended acquisition and chooses how long the next waiters spin. */
static inline void mutexee_note(struct mutexee *lock, bool slept, uint32_t window)
{
	uint32_t sleepy;

	lock->slept += slept;
	if (++lock->contended < window)
		return;
	/* relaxed, both: written only by the holder; a hint to others */
	sleepy = w_load_relaxed(&lock->sleepy);
	if (sleepy) {
		sleepy--;
	} else if (lock->slept * UINT64_C(100) > (uint64_t)lock->contended * MUTEXEE_SLEPT_MOST) {
		w_event(spin_less);
		sleepy = MUTEXEE_SLEEPY;
	}
	w_store_relaxed(&lock->sleepy, sleepy);
	lock->contended = 0;
	lock->slept = 0;
}

/* Slow path: @lock was not free. Returns false if @deadline (NULL: none) passes first. */
static W_SLOW bool mutexee_acquire_slow(struct mutexee *lock, struct mutexee_policy policy,
					const struct w_deadline *deadline)
{
	bool slept = false;

	w_event(contended);
	mutexee_drop_waiters(lock);
	/* relaxed: a hint */
	if (policy.wait == WAIT_PARK && w_load_relaxed(&lock->sleepy)) {
		w_pause_for(MUTEXEE_SHORT);
		slept = !mutexee_try_acquire(lock);
	} else if (!mutexee_spin(lock, policy.wait, deadline)) {
		slept = true;
	}
	if (slept && !(policy.wait == WAIT_PARK && mutexee_sleep(lock, deadline))) {
		w_event(abandon);
		return false;
	}
	mutexee_note(lock, slept, policy.window);
	return true;
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool mutexee_acquire(struct mutexee *lock, struct mutexee_policy policy,
				   const struct w_deadline *deadline)
{
	return w_likely(mutexee_try_acquire(lock)) || mutexee_acquire_slow(lock, policy, deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool mutexee_release(struct mutexee *lock, struct mutexee_policy policy)
{
	/*
	 * relaxed: only the holder clears LOCKED, so it reads its own write; the compare-exchange
	 * decides
	 */
	uint32_t seen = w_load_relaxed(&lock->word), left;

	(void)policy;
	do {
		if (w_unlikely(!(seen & MUTEXEE_LOCKED)))
			return false;
		left = seen - MUTEXEE_LOCKED;
		if (left == MUTEXEE_SLEEPERS)
			left = 0;
		/* [MUTEXEE-5] release: pairs with [MUTEXEE-1], [MUTEXEE-2], [MUTEXEE-4]; our
		 * critical section */
	} while (!w_compare_exchange_release(&lock->word, &seen, left));
	if (left & MUTEXEE_SLEEPERS)
		w_event(wake_spared);
	if (!left && (seen & MUTEXEE_SLEEPERS)) {
		w_event(wake_late);
		w_unpark(&lock->word);
	}
	return true;
}

#endif
