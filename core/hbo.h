/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * HBO: hierarchical back-off. The lock word says which domain holds it; waiters of that domain come back soon, those of
 * others late, so that the lock more often stays where its data is.
 *
 * From: Radovic and Hagersten, "Hierarchical backoff locks for nonuniform communication architectures", HPCA'03: HBO,
 * and of HBO_GT_SD the measure against starvation that the starving waiter takes itself: after `angry` tries in vain it
 * comes back as soon as the local ones.
 * Changed: the paper's other measures lie in an array by domain that all locks of a process share (one remote spinner
 * a domain; an angry waiter stops the holder's domain by it). They are left out: the lock stays one word, and knows
 * nothing of others. A waiter may yield or sleep.
 *
 * Promises: mutual exclusion, and nothing about order: a waiter may be passed without bound, one of another domain than
 * the holder's more often. Blocking under wait=park, after `tries` vain tries. 4 bytes a lock, none a waiter or holder.
 * Atomic read-modify-writes: 1 uncontended (2 under wait=park), unbounded contended.
 *
 *   31         30                    0
 *   sleepers   domain of the holder + 1
 *
 *   0             free
 *   d + 1         held by a thread that was in domain d when it came
 *   d + 1 | bit   the same, and somebody sleeps until it is free   (wait=park only)
 *
 *   0 ──acquire──▶ d + 1 ──release──▶ 0
 *                    │ a waiter is about to sleep
 *                    └──▶ d + 1 | sleepers ──release, unpark──▶ 0
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
	uint32_t local;  /* the longest pause while the lock is held in the waiter's domain, in pause instructions */
	uint32_t remote; /* the same while it is held elsewhere */
	uint32_t angry;  /* vain tries after which a waiter pauses as a local one wherever it is */
	uint32_t tries;  /* under wait=park, the vain tries before it sleeps; at least 1 */
};

#define hbo_settings(S)                     \
	S(hbo, local, 64, 1, 1000000, 1)    \
	S(hbo, remote, 1024, 1, 1000000, 1) \
	S(hbo, angry, 50, 1, 1000000000, 1) \
	S(hbo, tries, 100, 1, 1000000000, 2)
#define hbo_bytes sizeof(struct hbo), 0, 0

/* The word of a lock that the caller holds. */
static inline uint32_t hbo_mine(void)
{
	return 1 + (uint32_t)w_domain();
}

/* Takes @lock with the word @held if it is free; else *@seen is what it was. */
static inline bool hbo_take(struct hbo *lock, uint32_t held, uint32_t *seen)
{
	*seen = HBO_FREE;
	/* [HBO-1] acquire: pairs with [HBO-2], [HBO-3]; the last holder's critical section */
	return w_compare_exchange_acquire(&lock->word, seen, held);
}

/* Takes @lock if it is free. */
static inline bool hbo_try_acquire(struct hbo *lock)
{
	uint32_t seen;

	return hbo_take(lock, hbo_mine(), &seen);
}

/* Takes @lock, asleep while it is held, last seen as @seen. False if the deadline passed first. */
static inline bool hbo_park(struct hbo *lock, uint32_t mine, uint32_t seen, const struct w_deadline *deadline)
{
	/* There may be other sleepers: the holder that has slept owes them a wake-up. */
	while (!hbo_take(lock, mine | HBO_SLEEPERS, &seen)) {
		/*
		 * relaxed: the bit says only that there is somebody to wake. Also where it was seen to be set: what failed
		 * above may have read a value of long ago
		 */
		if (!w_compare_exchange_relaxed(&lock->word, &seen, seen | HBO_SLEEPERS))
			continue;
		/* Only here may a waiter go: a wake-up that it took is now owed to the sleepers by the holder. */
		if (w_expired(deadline)) {
			w_event(abandon);
			return false;
		}
		w_event(park);
		w_park(&lock->word, seen | HBO_SLEEPERS, deadline);
	}
	return true;
}

/* Whether the waiter should come back late, having seen the lock held as @seen; *@patience: until it is angry. */
static inline bool hbo_stays_away(uint32_t mine, uint32_t seen, uint32_t *patience)
{
	if (!*patience || (seen & ~HBO_SLEEPERS) == mine)
		return false;
	if (!--*patience)
		w_event(angry);
	return true;
}

static W_SLOW bool hbo_acquire_contended(struct hbo *lock, uint32_t mine, uint32_t seen, struct hbo_policy policy,
					 const struct w_deadline *deadline)
{
	uint32_t pauses = 1, patience = policy.angry, tries = policy.tries, spun = 0;
	bool away, was_away = false;

	w_event(contended);
	for (; !w_expired(deadline); was_away = away) {
		away = hbo_stays_away(mine, seen, &patience);
		pauses = backoff_pause(away == was_away ? pauses : 1, away ? policy.remote : policy.local);
		backoff_give_way(policy.wait, &spun, pauses);
		if (hbo_take(lock, mine, &seen))
			return true;
		if (policy.wait == WAIT_PARK && !--tries)
			return hbo_park(lock, mine, seen, deadline);
	}
	w_event(abandon);
	return false;
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool hbo_acquire(struct hbo *lock, struct hbo_policy policy, const struct w_deadline *deadline)
{
	uint32_t mine = hbo_mine(), seen;

	return w_likely(hbo_take(lock, mine, &seen)) || hbo_acquire_contended(lock, mine, seen, policy, deadline);
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool hbo_release(struct hbo *lock, struct hbo_policy policy)
{
	/* relaxed: only the holder can make it FREE, so the holder reads its own doing */
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
