/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * MUTEXEE: a futex mutex that spares the energy and the time of wake-ups: waiters spin for long before they sleep, and a
 * release wakes nobody as long as somebody spins.
 *
 * From: Falsafi, Guerraoui, Picorel, Trigonakis, "Unlocking energy", USENIX ATC'16, section 5.
 * Changed: the paper's release frees the lock, watches it for some hundred cycles, and wakes a sleeper only if nobody took
 * it. That reads the lock after its release, when the next owner may have freed its memory. Here spinners are counted in
 * the word, and a release leaves the hand-over to them if there is one: the same wake-ups are spared, but for those of
 * threads that come right after the release. The paper's spinning of 8,000 cycles is the world's bounded spin, its
 * 256 cycles of the sleepy mode are a few pauses. The paper's optional time-out of sleepers is left out.
 *
 * Promises: mutual exclusion, and nothing about order: a sleeper may be passed without bound. Blocking under wait=park. 20
 * bytes a lock and 4 for the fork generation, none a waiter or holder. Atomic read-modify-writes: 2 uncontended,
 * unbounded contended.
 *
 *   word = LOCKED | SLEEPERS | spinners
 *     LOCKED    held
 *     SLEEPERS  somebody may sleep on the word: the release that sees no spinner clears it and wakes one
 *     spinners  how many waiters spin. One leaves it only by taking the lock, or while the lock is held: so that
 *               either it or a later release takes care of the sleepers
 *
 *   0 ──▶ LOCKED ──▶ 0
 *   LOCKED ──waiter──▶ LOCKED|1 ──release──▶ 1 ──waiter──▶ LOCKED
 *   LOCKED|1 ──waiter, its spinning over──▶ LOCKED|SLEEPERS ──release, unpark──▶ 0 ──sleeper──▶ LOCKED|SLEEPERS
 *   LOCKED|SLEEPERS|1 ──release──▶ SLEEPERS|1 ──spinner──▶ LOCKED|SLEEPERS
 *
 * The mode: a lock whose waiters mostly end up asleep lets them spin only shortly, for MUTEXEE_SLEEPY windows of `window`
 * contended acquisitions each; then it tries again.
 */
#ifndef POUNDLOCK_MUTEXEE_H
#define POUNDLOCK_MUTEXEE_H

#include "part/generation.h"
#include "part/wait.h"

#define MUTEXEE_LOCKED 1u
#define MUTEXEE_SLEEPERS 2u
#define MUTEXEE_SPINNER 4u

#define MUTEXEE_SLEPT_MOST \
	30               /* per cent of contended acquisitions after a sleep with which spinning is worth its while */
#define MUTEXEE_SLEEPY 8 /* windows of short spinning */
#define MUTEXEE_SHORT 4  /* pauses of short spinning */

struct mutexee {
	W_ATOMIC(uint32_t) word;
	W_ATOMIC(uint32_t) generation;
	uint32_t embedder[3];      /* in a pthread_mutex_t __owner, __nusers and __kind are here */
	W_ATOMIC(uint32_t) sleepy; /* for how many windows more spinning is short */
	uint32_t contended;        /* the holder's: contended acquisitions in this window */
	uint32_t slept;            /* the holder's: those of them after a sleep */
};

struct mutexee_policy {
	enum wait wait;
	uint32_t window; /* contended acquisitions from one choice of the mode to the next */
};

#define mutexee_settings(S) S(mutexee, window, 2048, 1, 1000000000, 1)
/* Without the embedder's. */
#define mutexee_bytes sizeof(struct mutexee) - 3 * sizeof(uint32_t), 0, 0

/* In a forked child: drops the waiters that do not exist here. */
static inline void mutexee_drop_waiters(struct mutexee *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return;
	/* relaxed: [GENERATION-3] publishes it, and nobody waits until then */
	(void)w_fetch_and_relaxed(&lock->word, MUTEXEE_LOCKED);
	generation_settle(&lock->generation);
}

/* Takes @lock if it is free. */
static inline bool mutexee_try_acquire(struct mutexee *lock)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(&lock->word);

	while (!(seen & MUTEXEE_LOCKED))
		/* [MUTEXEE-1] acquire: pairs with [MUTEXEE-5]; the last holder's critical
		 * section */
		if (w_compare_exchange_acquire(&lock->word, &seen, seen | MUTEXEE_LOCKED))
			return true;
	return false;
}

/* Spins for @lock. False if the spinning is over, or the deadline has passed. */
static inline bool mutexee_spin(struct mutexee *lock, enum wait wait, const struct w_deadline *deadline)
{
	/* relaxed: says only that a wake-up can be spared */
	uint32_t seen = w_fetch_add_relaxed(&lock->word, MUTEXEE_SPINNER) + MUTEXEE_SPINNER;
	bool over = false;

	for (;;) {
		if (!(seen & MUTEXEE_LOCKED)) {
			/* [MUTEXEE-2] acquire: pairs with [MUTEXEE-5], as [MUTEXEE-1] */
			if (w_compare_exchange_acquire(&lock->word, &seen, (seen - MUTEXEE_SPINNER) | MUTEXEE_LOCKED))
				return true;
		} else if (over) {
			/* relaxed: the holder's release sees that we do not spin any more */
			if (w_compare_exchange_relaxed(&lock->word, &seen, seen - MUTEXEE_SPINNER))
				return false;
		} else {
			/* [MUTEXEE-3] acquire: pairs with nothing; [MUTEXEE-2] reads again */
			seen = w_wait_acquire(&lock->word, !(VAL & MUTEXEE_LOCKED), wait_race(wait), deadline);
			over = seen & MUTEXEE_LOCKED;
		}
	}
}

/* Sleeps for @lock, which was held. False if the deadline has passed. */
static inline bool mutexee_sleep(struct mutexee *lock, const struct w_deadline *deadline)
{
	uint32_t seen;

	for (;;) {
		/* relaxed: says only that there is somebody to wake; where it is wrong to,
		 * [MUTEXEE-4] or the futex notices */
		seen = w_fetch_or_relaxed(&lock->word, MUTEXEE_SLEEPERS) | MUTEXEE_SLEEPERS;
		while (!(seen & MUTEXEE_LOCKED))
			/* [MUTEXEE-4] acquire: pairs with [MUTEXEE-5], as [MUTEXEE-1] */
			if (w_compare_exchange_acquire(&lock->word, &seen, seen | MUTEXEE_LOCKED | MUTEXEE_SLEEPERS))
				return true;
		if (!(seen & MUTEXEE_SLEEPERS))
			continue;
		/* Only here may a waiter go: a wake-up that it took is now owed to the sleepers by the holder. */
		if (w_expired(deadline))
			return false;
		w_event(park);
		w_park(&lock->word, seen, deadline);
	}
}

/* As the holder: counts a contended acquisition, and chooses how long the next waiters spin. */
static inline void mutexee_note(struct mutexee *lock, bool slept, uint32_t window)
{
	uint32_t sleepy;

	lock->slept += slept;
	if (++lock->contended < window)
		return;
	/* relaxed, both: the holder's, and to others a hint */
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

/* Takes @lock, which was not free a moment ago. False if @deadline (NULL: never) passed first. */
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

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool mutexee_acquire(struct mutexee *lock, struct mutexee_policy policy,
				   const struct w_deadline *deadline)
{
	return w_likely(mutexee_try_acquire(lock)) || mutexee_acquire_slow(lock, policy, deadline);
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool mutexee_release(struct mutexee *lock, struct mutexee_policy policy)
{
	/* relaxed: only the holder can clear LOCKED, so the holder reads its own doing; the compare-exchange decides */
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
