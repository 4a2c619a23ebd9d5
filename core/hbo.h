/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * HBO: hierarchical back-off. The lock word contains the holder's domain. Waiters of that domain
 * retry soon and others late, so that the lock tends to stay near its data.
 *
 * From: Radovic and Hagersten, "Hierarchical backoff locks for nonuniform communication
 * architectures", HPCA'03: HBO, and from HBO_GT_SD the measure against starvation that a starving
 * waiter takes on its own: after `angry` failed attempts it retries as often as a local one.
 *
 * Order: no order; unbounded bypass, more of remote waiters.
 *
 * Promise: mutual exclusion; no order, and no bound on bypass. Waiters of other domains than the
 * holder's are bypassed more often. Under wait=park, waiters sleep after `tries` failed attempts. 4
 * bytes per lock, none per waiter or holder. Atomic read-modify-writes: 1 uncontended (2 under
 * wait=park), unbounded contended.
 *
 *   bits  31         30 .. 0
 *         sleepers   domain of the holder + 1
 *
 *   0             free
 *   d + 1         held by a thread that was in domain d when it took the lock
 *   d + 1 | bit   held, and a waiter sleeps until the lock is free   (wait=park only)
 *
 *   0 ──acquire──▶ d + 1 ──release──▶ 0
 *                    │ a waiter is about to sleep
 *                    └──▶ d + 1 | sleepers ──release, unpark──▶ 0
 *
 * Departure from the paper: its other measures use an array, indexed by domain, that all locks of a
 * process share (one remote spinner per domain; an angry waiter stops the holder's domain through
 * it). They are left out: the lock remains a single word. A waiter may yield or sleep.
 */
#ifndef POUNDLOCK_HBO_H
#define POUNDLOCK_HBO_H

#include "part/backoff.h"
#include "part/wait.h"

struct hbo {
	W_ATOMIC(uint32_t) word;
};

#define HBO_FREE 0u
#define HBO_SLEEPERS (1u << 31)

struct hbo_policy {
	enum wait wait;
	/* longest pause while the holder is in the waiter's domain, in pause instructions */
	uint32_t local;
	uint32_t remote; /* longest pause while the holder is in another domain */
	uint32_t angry;  /* failed attempts after which a waiter pauses like a local one */
	uint32_t tries;  /* under wait=park, failed attempts before a waiter sleeps; at least 1 */
};

#define hbo_settings(S)                  \
	S(hbo, local, 64, 1, 1000000)    \
	S(hbo, remote, 1024, 1, 1000000) \
	S(hbo, angry, 50, 1, 1000000000) \
	S(hbo, tries, 100, 1, 1000000000)
#define hbo_bytes sizeof(struct hbo), 0, 0

/* The word of a lock that the caller holds. */
static inline uint32_t hbo_mine(void)
{
	return 1 + (uint32_t)w_domain();
}

/* FREE -> @held. On failure, *@seen is the word that was read. */
static inline bool hbo_take(struct hbo *lock, uint32_t held, uint32_t *seen)
{
	*seen = HBO_FREE;
	/* [HBO-1] acquire: pairs with [HBO-2], [HBO-3]; the previous critical section */
	return w_compare_exchange_acquire(&lock->word, seen, held);
}

/* FREE -> the caller's domain + 1. */
static inline bool hbo_try_acquire(struct hbo *lock)
{
	uint32_t seen;

	return hbo_take(lock, hbo_mine(), &seen);
}

/* Sleeps until @lock, last seen as @seen, is taken. Returns false if @deadline passes first. */
static inline bool hbo_park(struct hbo *lock, uint32_t mine, uint32_t seen,
			    const struct w_deadline *deadline)
{
	/* There may be other sleepers: a holder that has slept owes them a wake-up. */
	while (!hbo_take(lock, mine | HBO_SLEEPERS, &seen)) {
		/*
		 * relaxed: only requests a wake-up. Also done if the bit was seen set: the failed
		 * compare-exchange above may have read an old value
		 */
		if (!w_compare_exchange_relaxed(&lock->word, &seen, seen | HBO_SLEEPERS))
			continue;
		/*
		 * A waiter may leave only here: if it consumed a wake-up, the holder now owes one
		 * to the sleepers.
		 */
		if (w_expired(deadline)) {
			w_event(abandon);
			return false;
		}
		w_event(park);
		w_park(&lock->word, seen | HBO_SLEEPERS, deadline);
	}
	return true;
}

/*
 * Returns whether a waiter that saw the lock held as @seen should retry late. *@patience: attempts
 * left until it is angry.
 */
static inline bool hbo_stays_away(uint32_t mine, uint32_t seen, uint32_t *patience)
{
	if (!*patience || (seen & ~HBO_SLEEPERS) == mine)
		return false;
	if (!--*patience)
		w_event(angry);
	return true;
}

static W_SLOW bool hbo_acquire_contended(struct hbo *lock, uint32_t mine, uint32_t seen,
					 struct hbo_policy policy,
					 const struct w_deadline *deadline)
{
	uint32_t pauses = 1, patience = policy.angry, tries = policy.tries, spun = 0;
	bool away, was_away = false;

	w_event(contended);
	for (; !w_expired(deadline); was_away = away) {
		away = hbo_stays_away(mine, seen, &patience);
		pauses = backoff_pause(away == was_away ? pauses : 1,
				       away ? policy.remote : policy.local);
		backoff_yield(policy.wait, &spun, pauses);
		if (hbo_take(lock, mine, &seen))
			return true;
		if (policy.wait == WAIT_PARK && !--tries)
			return hbo_park(lock, mine, seen, deadline);
	}
	w_event(abandon);
	return false;
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool hbo_acquire(struct hbo *lock, struct hbo_policy policy,
			       const struct w_deadline *deadline)
{
	uint32_t mine = hbo_mine(), seen;

	return w_likely(hbo_take(lock, mine, &seen)) ||
	       hbo_acquire_contended(lock, mine, seen, policy, deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool hbo_release(struct hbo *lock, struct hbo_policy policy)
{
	/* relaxed: only the holder writes FREE, so it reads its own write */
	if (w_unlikely(w_load_relaxed(&lock->word) == HBO_FREE))
		return false;
	if (policy.wait != WAIT_PARK) {
		/* [HBO-2] release: pairs with [HBO-1]; our critical section */
		w_store_release(&lock->word, HBO_FREE);
		/* [HBO-3] release: pairs with [HBO-1]; our critical section */
	} else if (w_exchange_release(&lock->word, HBO_FREE) & HBO_SLEEPERS) {
		w_event(wake_late);
		w_unpark(&lock->word);
	}
	return true;
}

#endif
