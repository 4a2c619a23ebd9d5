/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * u-SCL, the scheduler-cooperative lock. Each thread gets the lock for its share of time, by
 * weight. A thread that takes the lock owns it for a slice, in which it may take and release it
 * repeatedly. A thread that has used more than its share is banned until its share has caught up.
 *
 * From: Patel, Yang, Arulraj, Arpaci-Dusseau, Arpaci-Dusseau, Swift, "Avoiding scheduler subversion
 * using scheduler-cooperative locks", EuroSys'20, section 4 (u-SCL).
 *
 * Order: by share of time, in slices; a thread over its share is banned.
 *
 * Promise: mutual exclusion; in the long run no thread gets more than its share of time while
 * others want theirs. Slices are granted first come, first served. The slice's owner, trylock and
 * timed waiters overtake waiters. Not work-conserving: the lock may be free while threads wait for
 * the end of a slice or of their ban. Waiters sleep under wait=park. 88 bytes per lock, boxed; one
 * pool node per waiter, none per holder. Atomic read-modify-writes: 2 uncontended and within a
 * slice, 6 as the head.
 *
 *   word   = HELD | SLEEPER: the head sleeps on it
 *   slice  = count | SLEEPER: the head sleeps on it. Changes when a slice begins or is given up
 *   begun, owner: of the slice; begun == 0: there is none
 *
 *   word:  0 ──owner in its slice; head if there is none; trylock──▶ HELD ──head──▶ HELD|SLEEPER
 *          HELD, HELD|SLEEPER ──release──▶ 0
 *
 *   a thread's account: `until`   end of its ban, minus its credit
 *                       `since`   its last release
 *                       `recent`  the period that counts it
 *
 *   a waiter:   ban ──▶ queue ──▶ head ──end of the slice──▶ word
 *               word ──▶ owner of a new slice, and out of the queue
 *   a release:  until += held * (weight of all) / (own weight); if that is later than now, the
 *               slice is given up
 *
 * Departures from the paper:
 *  - The paper adds up the weights of all threads that ever used the lock, so threads that have
 *    ended keep others banned. Here they are added up again in each period. A period lasts a
 *    second, after which the paper's k-SCL forgets a thread, and at least until every user of the
 *    lock has had a turn, including those that were banned when it began.
 *  - A thread that was away from the lock returns with credit for at most one slice, plus the time
 *    that it waits from then on. Without this bound, as in the paper, a thread that was idle for
 *    long would keep the lock for long.
 *  - A thread's state is in its account (w_account()), not in memory of its own per lock.
 *  - The owner of a slice takes a word, and the head leaves the queue when it takes the lock; the
 *    paper keeps the head's node in the lock.
 *  - trylock and timed waiters own no slice: they take a free lock in another thread's slice. A
 *    timed waiter polls.
 */
#ifndef POUNDLOCK_SCL_H
#define POUNDLOCK_SCL_H

#include "part/generation.h"
#include "part/hold.h"
#include "mcs.h"

#define SCL_HELD 1u
#define SCL_SLEEPER 2u /* in word and in slice */
#define SCL_SLICE 4u
#define SCL_PERIOD UINT64_C(1000000000) /* nanoseconds */
/* interval between checks of the deadline, in nanoseconds */
#define SCL_NAP UINT64_C(50000)

struct scl {
	struct mcs queue;
	W_ATOMIC(uint64_t) begun;
	W_ATOMIC(uint32_t) word;
	W_ATOMIC(uint32_t) slice;
	W_ATOMIC(uint32_t) owner; /* w_self_id() of the owner */
	W_ATOMIC(uint32_t) generation;
	/* Written only by the holder, from here on. */
	uint32_t period;  /* its number */
	uint32_t turns;   /* since the period's time was over */
	uint32_t users;   /* threads counted in this period */
	uint32_t counted; /* which of them: one bit each, by w_self_id() */
	uint64_t weights; /* the sum of their weights */
	uint64_t last_weights;
	uint64_t period_end;
	uint64_t bans_end; /* the latest end of any ban so far */
	uint64_t since;    /* when the lock was taken */
};

struct scl_policy {
	enum wait wait;
	uint32_t slice; /* in microseconds */
};

#define scl_settings(S) S(scl, slice, 2000, 1, 1000000)
#define scl_bytes 0, sizeof(struct mcs_node), 0

static inline size_t scl_size(void)
{
	return sizeof(struct scl);
}

static inline void scl_init(struct scl *lock, size_t size)
{
	(void)lock, (void)size;
}

/*
 * In a forked child, discards the parent's waiters. Their slice ends by time, and a stale SLEEPER
 * costs one wake-up.
 */
static inline void scl_drop_waiters(struct scl *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return;
	/* relaxed: [GENERATION-3] publishes it; nobody waits before that */
	w_store_relaxed(&lock->queue.tail, NULL);
	generation_settle(&lock->generation);
}

/* ---- Shares ---- */

/* The weight of all users of the lock. */
static inline uint64_t scl_total(const struct scl *lock)
{
	return lock->weights > lock->last_weights ? lock->weights : lock->last_weights;
}

/*
 * Returns whether the period is over at @time: its time is, and as many turns as it has users have
 * followed. Users take turns, so each of them has had one, unless it has left.
 */
static inline bool scl_period_over(struct scl *lock, uint64_t time)
{
	if ((int64_t)(time - lock->period_end) < 0)
		lock->turns = 0;
	return lock->turns > lock->users;
}

/* Begins a new period at @time. */
static inline void scl_begin_period(struct scl *lock, uint64_t time)
{
	lock->period++;
	lock->period_end = time + SCL_PERIOD;
	if ((int64_t)(lock->bans_end - lock->period_end) > 0)
		lock->period_end = lock->bans_end;
	lock->turns = 0;
	lock->last_weights = lock->weights;
	lock->users = 0;
	lock->counted = 0;
	lock->weights = 0;
}

/* As the new holder, counts @account's thread among the users of the lock. */
static inline void scl_count_in(struct scl *lock, struct w_account *account)
{
	uint32_t bit = UINT32_C(1) << w_self_id() % 32;
	bool was_new;

	if (w_unlikely(!lock->period || scl_period_over(lock, lock->since)))
		scl_begin_period(lock, lock->since);
	if (account->recent == lock->period)
		return;
	was_new = !account->recent;
	account->recent = lock->period;
	/* A new account may be one that was forgotten. */
	if (was_new && (lock->counted & bit))
		return;
	lock->counted |= bit;
	lock->users++;
	lock->weights += w_weight();
}

/* @time, multiplied by the weight of all users and divided by the caller's. */
static inline uint64_t scl_price(const struct scl *lock, uint64_t time)
{
	uint64_t ratio = scl_total(lock) * HOLD_WEIGHT / w_weight();

	return time / HOLD_WEIGHT * ratio + time % HOLD_WEIGHT * ratio / HOLD_WEIGHT;
}

static inline uint64_t scl_nanoseconds(struct scl_policy policy)
{
	return policy.slice * UINT64_C(1000);
}

/* As the holder, charges @account for its hold until now. Returns whether its thread is banned. */
static inline bool scl_charge(struct scl *lock, struct w_account *account)
{
	uint64_t now = w_now();

	account->since = now;
	account->until += scl_price(lock, hold_time(lock->since, now));
	if ((int64_t)(account->until - lock->bans_end) > 0)
		lock->bans_end = account->until;
	return (int64_t)(account->until - now) > 0;
}

/* Opens @account if it is new or was forgotten: no credit and no ban as of @since (0: now). */
static inline struct w_account *scl_open(struct w_account *account, uint64_t since)
{
	if (w_unlikely(!account->until))
		account->until = since ? since : w_now();
	return account;
}

/* As @account's thread arrives, limits the credit from its absence to one slice. */
static inline void scl_limit_credit(struct w_account *account, uint64_t now,
				    struct scl_policy policy)
{
	int64_t more = (int64_t)(now - scl_nanoseconds(policy) - account->until);
	uint64_t away = hold_time(account->since, now);

	if (more > 0)
		account->until += away < (uint64_t)more ? away : (uint64_t)more;
}

/* ---- Timed waits ---- */

/* Waits while @word is @seen, until w_now() is @time. Returns whether that time has come. */
static inline bool scl_wait_until(W_ATOMIC(uint32_t) *word, uint32_t seen, uint64_t time,
				  enum wait wait)
{
	struct w_deadline end = w_deadline_at(time);

	if (wait == WAIT_PARK)
		w_park(word, seen, &end);
	else
		/* [SCL-1] acquire: pairs with nothing; the caller reads again */
		(void)w_wait_acquire(word, VAL != seen, wait_soon(wait), &end);
	return w_expired(&end);
}

/* Waits from @now to the end of the ban in @account. Returns false if @deadline passes first. */
static inline bool scl_serve_ban(const struct w_account *account, uint64_t now, enum wait wait,
				 const struct w_deadline *deadline)
{
	W_ATOMIC(uint32_t) nothing;
	uint64_t end;

	if ((int64_t)(account->until - now) <= 0)
		return true;
	w_event(ban);
	w_init(&nothing, 0);
	do {
		if (w_expired(deadline))
			return false;
		end = deadline && account->until - now > SCL_NAP ? now + SCL_NAP : account->until;
		if (scl_wait_until(&nothing, 0, end, wait))
			now = end;
	} while (now != account->until);
	return true;
}

/* ---- The slice ---- */

static inline bool scl_owns_slice(struct scl *lock)
{
	/* relaxed: our own write if it is us */
	return w_load_relaxed(&lock->owner) == w_self_id();
}

/* The end of the slice; 0 if it has ended or there is none. */
static inline uint64_t scl_slice_end(struct scl *lock, struct scl_policy policy)
{
	/* relaxed: a stale value only costs time */
	uint64_t begun = w_load_relaxed(&lock->begun);

	return begun && hold_time(begun, w_now()) < scl_nanoseconds(policy)
		       ? begun + scl_nanoseconds(policy)
		       : 0;
}

/* As the holder, begins a slice. */
static inline void scl_begin_slice(struct scl *lock)
{
	/* relaxed, all: only the head begins a slice; a stale read of it only costs time */
	w_store_relaxed(&lock->slice, (w_load_relaxed(&lock->slice) + SCL_SLICE) & ~SCL_SLEEPER);
	w_store_relaxed(&lock->owner, w_self_id());
	w_store_relaxed(&lock->begun, lock->since | 1);
	lock->turns++;
}

/* As the holder, gives up the slice. Returns whether the head sleeps until its end. */
static inline bool scl_give_up_slice(struct scl *lock)
{
	w_event(slice_given_up);
	/* relaxed, both: a waiter that misses them waits until the end of the slice at most */
	w_store_relaxed(&lock->begun, 0);
	return w_fetch_add_relaxed(&lock->slice, SCL_SLICE) & SCL_SLEEPER;
}

/* slice -> slice|SLEEPER: the head is about to sleep until its end. */
static inline bool scl_mark_sleeper(struct scl *lock, uint32_t *seen)
{
	uint32_t before = *seen;

	*seen |= SCL_SLEEPER;
	/* relaxed: only requests a wake-up */
	return before == *seen || w_compare_exchange_relaxed(&lock->slice, &before, *seen);
}

/* As the head of the queue, the only thread that begins slices, waits for the end of the slice. */
static inline void scl_wait_for_slice(struct scl *lock, struct scl_policy policy)
{
	uint32_t seen;
	uint64_t end;

	for (;;) {
		/* relaxed: read before the slice that it numbers; a mismatch only costs time */
		seen = w_load_relaxed(&lock->slice);
		end = scl_slice_end(lock, policy);
		if (!end)
			return;
		if (policy.wait == WAIT_PARK) {
			if (!scl_mark_sleeper(lock, &seen))
				continue;
			w_event(park);
		}
		if (scl_wait_until(&lock->slice, seen, end, policy.wait))
			return;
	}
}

/* ---- The word ---- */

static inline bool scl_take(struct scl *lock, struct w_account *account)
{
	uint32_t seen = 0;

	/* [SCL-2] acquire: pairs with [SCL-5]; the previous critical section */
	if (!w_compare_exchange_acquire(&lock->word, &seen, SCL_HELD))
		return false;
	lock->since = w_now();
	scl_count_in(lock, account);
	return true;
}

/* As the head of the queue: 0 -> HELD. */
static inline void scl_take_as_head(struct scl *lock, struct w_account *account, enum wait wait)
{
	uint32_t seen;

	while (!scl_take(lock, account)) {
		/* [SCL-3] acquire: pairs with nothing; [SCL-2] reads the word again */
		seen = w_wait_acquire(&lock->word, !(VAL & SCL_HELD), wait_turn(wait), NULL);
		if (!(seen & SCL_HELD) || wait != WAIT_PARK)
			continue;
		/* relaxed: publishes nothing; it only tells the releaser to wake a sleeper */
		if (!(seen & SCL_SLEEPER) &&
		    !w_compare_exchange_relaxed(&lock->word, &seen, seen | SCL_SLEEPER))
			continue;
		w_event(park);
		w_park(&lock->word, SCL_HELD | SCL_SLEEPER, NULL);
	}
}

/* ---- The lock ---- */

/* 0 -> HELD, in another thread's slice. */
static inline bool scl_take_between(struct scl *lock, struct w_account *account)
{
	if (!scl_take(lock, account))
		return false;
	lock->turns++;
	return true;
}

static inline bool scl_try_acquire(struct scl *lock)
{
	return scl_take_between(lock, scl_open(w_account(lock), 0));
}

/* Polls @lock until it is taken, in another thread's slice, or @deadline passes. */
static W_SLOW bool scl_poll(struct scl *lock, struct w_account *account,
			    const struct w_deadline *deadline)
{
	while (!scl_take_between(lock, account)) {
		if (w_expired(deadline))
			return false;
		/* [SCL-4] acquire: pairs with nothing; [SCL-2] reads the word again */
		(void)w_wait_acquire(&lock->word, !VAL, W_YIELD, deadline);
	}
	return true;
}

/* Takes @lock and begins a slice. */
static W_SLOW void scl_acquire_slice(struct scl *lock, struct w_account *account,
				     struct scl_policy policy)
{
	struct mcs_node *node = w_node_get();

	if (!mcs_enter(&lock->queue, node))
		(void)node_wait(&node->status, policy.wait, NULL);
	/* relaxed: only for counting */
	else if (w_load_relaxed(&lock->word) || scl_slice_end(lock, policy))
		w_event(contended);
	scl_wait_for_slice(lock, policy);
	scl_take_as_head(lock, account, policy.wait);
	scl_begin_slice(lock);
	mcs_release(&lock->queue, node, (struct mcs_policy){policy.wait});
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool scl_acquire(struct scl *lock, struct scl_policy policy,
			       const struct w_deadline *deadline)
{
	struct w_account *account = scl_open(w_account(lock), 0);
	uint64_t now;

	if (scl_owns_slice(lock) && scl_slice_end(lock, policy) && scl_take(lock, account))
		return true;
	scl_drop_waiters(lock);
	now = w_now();
	scl_limit_credit(account, now, policy);
	if (!scl_serve_ban(account, now, policy.wait, deadline) ||
	    (deadline && !scl_poll(lock, account, deadline))) {
		w_event(abandon);
		return false;
	}
	if (!deadline)
		scl_acquire_slice(lock, account, policy);
	return true;
}

/*
 * HELD -> 0, and charges the calling thread. Returns false, and changes nothing, if @lock was not
 * held.
 */
static inline bool scl_release(struct scl *lock, struct scl_policy policy)
{
	W_ATOMIC(uint32_t) *word = &lock->word, *slice = &lock->slice;
	bool wakes_head;

	(void)policy;
	/* relaxed: only the holder clears HELD, so it reads its own write */
	if (w_unlikely(!(w_load_relaxed(&lock->word) & SCL_HELD)))
		return false;
	scl_drop_waiters(lock);
	wakes_head = scl_charge(lock, scl_open(w_account(lock), lock->since)) &&
		     scl_owns_slice(lock) && scl_give_up_slice(lock);
	/* [SCL-5] release: pairs with [SCL-2]; our critical section */
	if (w_exchange_release(word, 0) & SCL_SLEEPER) {
		w_event(wake_late);
		w_unpark(word);
	}
	if (wakes_head) {
		w_event(wake_late);
		w_unpark(slice);
	}
	return true;
}

#endif
