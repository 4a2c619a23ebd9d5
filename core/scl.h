/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * u-SCL, the scheduler-cooperative lock: each thread gets the lock for the share of time that its weight gives it. Who
 * takes it owns it for a slice, in which it takes and releases it as it likes; who has used more than its share is
 * banned from it for as long as that takes to even out.
 *
 * From: Patel, Yang, Arulraj, Arpaci-Dusseau, Arpaci-Dusseau, Swift, "Avoiding scheduler subversion using scheduler-
 * cooperative locks", EuroSys'20, section 4 (u-SCL).
 * Changed, and why:
 *  - The paper adds up the weights of all threads that ever used the lock, so that those which have ended ban the others
 *    for ever. Here they are added up anew each period: of a second, as after that the paper's k-SCL forgets a thread, but
 *    not before all who use the lock have had a turn, those too that were banned as it began.
 *  - A thread that was away from the lock comes back with credit for one slice at most, and for what it waits from then
 *    on: without end, as in the paper, a thread that was idle for long gets the lock for long.
 *  - What a thread knows of the lock is in its account (w_account()), not in memory of its own for each lock.
 *  - The owner of a slice takes a word, and a waiter that has come to the head of the queue leaves it as it takes the lock;
 *    the paper keeps the head's node in the lock.
 *  - trylock and timed waiters own no slice: they take a free lock, in whoever's slice; a timed waiter polls.
 *
 * Promises: mutual exclusion; in the long run no thread has more than its share of time while others want theirs. Slices
 * are given first come, first served; a waiter is passed by the slice's owner, and by trylock and timed waiters. Not
 * work-conserving: a lock may be free while threads wait, for a slice's end or their ban's. Blocking under wait=park. 88
 * bytes a lock, in a box; a node of the pool a waiter, none a holder. Atomic read-modify-writes: 2 uncontended and in a
 * slice; 6 as the head.
 *
 *   word   = HELD | SLEEPER: the head sleeps on it
 *   slice  = count | SLEEPER: the head sleeps on it; changes when a slice begins or is given up
 *   begun, owner: of the slice; begun 0: there is none
 *
 *   word:  0 ──owner in its slice; head when there is none; trylock──▶ HELD ──head──▶ HELD|SLEEPER
 *          HELD, HELD|SLEEPER ──release──▶ 0
 *
 *   a thread's account: `until` its ban, less its credit; `since` its last release; `recent` the period that counts it
 *
 *   a thread:  ban ──▶ queue ──▶ head ──end of the slice──▶ word ──▶ owner of a new slice, and out of the queue
 *   its release:  until += held * (weights of all) / (its own); if that is later than now, the slice is given up
 */
#ifndef POUNDLOCK_SCL_H
#define POUNDLOCK_SCL_H

#include "part/generation.h"
#include "part/hold.h"
#include "mcs.h"

#define SCL_HELD 1u
#define SCL_SLEEPER 2u /* of word, and of slice */
#define SCL_SLICE 4u
#define SCL_PERIOD UINT64_C(1000000000) /* nanoseconds */
#define SCL_NAP UINT64_C(50000)         /* from one look at the deadline to the next, in nanoseconds */

struct scl {
	struct mcs queue;
	W_ATOMIC(uint64_t) begun;
	W_ATOMIC(uint32_t) word;
	W_ATOMIC(uint32_t) slice;
	W_ATOMIC(uint32_t) owner; /* its w_self_id() */
	W_ATOMIC(uint32_t) generation;
	/* The holder's, all that follows. */
	uint32_t period;  /* its number */
	uint32_t turns;   /* since the period's time was over */
	uint32_t users;   /* the threads counted in this period */
	uint32_t counted; /* which: a bit each, by its w_self_id() */
	uint64_t weights; /* their weights */
	uint64_t last_weights;
	uint64_t period_end;
	uint64_t bans_end; /* of all bans until now */
	uint64_t since;    /* when the lock was taken */
};

struct scl_policy {
	enum wait wait;
	uint32_t slice; /* in microseconds */
};

#define scl_settings(S) S(scl, slice, 2000, 1, 1000000, 1)
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
 * In a forked child: drops the waiters that do not exist here. Their slice ends by time, and a sleeper that is none is
 * woken in vain once.
 */
static inline void scl_drop_waiters(struct scl *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return;
	/* relaxed: [GENERATION-3] publishes it, and nobody waits until then */
	w_store_relaxed(&lock->queue.tail, NULL);
	generation_settle(&lock->generation);
}

/* ---- Shares ---- */

/* The weights of all who use the lock. */
static inline uint64_t scl_total(const struct scl *lock)
{
	return lock->weights > lock->last_weights ? lock->weights : lock->last_weights;
}

/*
 * Whether the period is over at @time: its time, and then as many turns as it has users. They take turns, so each of them
 * has had one, unless it has gone.
 */
static inline bool scl_period_over(struct scl *lock, uint64_t time)
{
	if ((int64_t)(time - lock->period_end) < 0)
		lock->turns = 0;
	return lock->turns > lock->users;
}

/* Begins another period. */
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

/* As the new holder: counts @account's thread among those who use the lock. */
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
	/* An account that is new may be one that was forgotten. */
	if (was_new && (lock->counted & bit))
		return;
	lock->counted |= bit;
	lock->users++;
	lock->weights += w_weight();
}

/* @time by as many times as all weigh more than the caller. */
static inline uint64_t scl_price(const struct scl *lock, uint64_t time)
{
	uint64_t ratio = scl_total(lock) * HOLD_WEIGHT / w_weight();

	return time / HOLD_WEIGHT * ratio + time % HOLD_WEIGHT * ratio / HOLD_WEIGHT;
}

static inline uint64_t scl_nanoseconds(struct scl_policy policy)
{
	return policy.slice * UINT64_C(1000);
}

/* As the holder: charges @account's thread for its hold until now. Whether it is banned. */
static inline bool scl_charge(struct scl *lock, struct w_account *account)
{
	uint64_t now = w_now();

	account->since = now;
	account->until += scl_price(lock, hold_time(lock->since, now));
	if ((int64_t)(account->until - lock->bans_end) > 0)
		lock->bans_end = account->until;
	return (int64_t)(account->until - now) > 0;
}

/* Opens an account that is new, or was forgotten: it has no credit, and no ban, from @since on (0: now). */
static inline struct w_account *scl_open(struct w_account *account, uint64_t since)
{
	if (w_unlikely(!account->until))
		account->until = since ? since : w_now();
	return account;
}

/* As @account's thread comes: what it did not use while it was away is lost, but for a slice. */
static inline void scl_limit_credit(struct w_account *account, uint64_t now, struct scl_policy policy)
{
	int64_t more = (int64_t)(now - scl_nanoseconds(policy) - account->until);
	uint64_t away = hold_time(account->since, now);

	if (more > 0)
		account->until += away < (uint64_t)more ? away : (uint64_t)more;
}

/* ---- Waiting for a time ---- */

/* Waits while @word is @seen, until w_now() is @time. Whether it is. */
static inline bool scl_wait_until(W_ATOMIC(uint32_t) *word, uint32_t seen, uint64_t time, enum wait wait)
{
	struct w_deadline end = w_deadline_at(time);

	if (wait == WAIT_PARK)
		w_park(word, seen, &end);
	else
		/* [SCL-1] acquire: pairs with nothing; the caller looks again */
		(void)w_wait_acquire(word, VAL != seen, wait_soon(wait), &end);
	return w_expired(&end);
}

/* Waits from @now to the end of the ban of @account's thread. False if the deadline passed first. */
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
	/* relaxed: our own doing, if it is us */
	return w_load_relaxed(&lock->owner) == w_self_id();
}

/* When the slice ends; 0: it has ended, or there is none. */
static inline uint64_t scl_slice_end(struct scl *lock, struct scl_policy policy)
{
	/* relaxed: what is wrong about it costs time */
	uint64_t begun = w_load_relaxed(&lock->begun);

	return begun && hold_time(begun, w_now()) < scl_nanoseconds(policy) ? begun + scl_nanoseconds(policy) : 0;
}

/* As the holder, begins a slice of its own. */
static inline void scl_begin_slice(struct scl *lock)
{
	/* relaxed, all: the slice is the head's to begin, and what is read of it too early or too late costs time */
	w_store_relaxed(&lock->slice, (w_load_relaxed(&lock->slice) + SCL_SLICE) & ~SCL_SLEEPER);
	w_store_relaxed(&lock->owner, w_self_id());
	w_store_relaxed(&lock->begun, lock->since | 1);
	lock->turns++;
}

/* As the holder, gives up its slice. Whether somebody sleeps until its end. */
static inline bool scl_give_up_slice(struct scl *lock)
{
	w_event(slice_given_up);
	/* relaxed, both: who misses them waits to the end of the slice at most */
	w_store_relaxed(&lock->begun, 0);
	return w_fetch_add_relaxed(&lock->slice, SCL_SLICE) & SCL_SLEEPER;
}

/* Says on the number of a slice that the head sleeps until its end. */
static inline bool scl_mark_sleeper(struct scl *lock, uint32_t *seen)
{
	uint32_t before = *seen;

	*seen |= SCL_SLEEPER;
	/* relaxed: says only that there is somebody to wake */
	return before == *seen || w_compare_exchange_relaxed(&lock->slice, &before, *seen);
}

/* As the head of the queue, who alone begins slices, waits for the end of the slice. */
static inline void scl_wait_for_slice(struct scl *lock, struct scl_policy policy)
{
	uint32_t seen;
	uint64_t end;

	for (;;) {
		/* relaxed: read before the slice that it is the number of, as near as matters */
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

	/* [SCL-2] acquire: pairs with [SCL-5]; the last holder's critical section */
	if (!w_compare_exchange_acquire(&lock->word, &seen, SCL_HELD))
		return false;
	lock->since = w_now();
	scl_count_in(lock, account);
	return true;
}

/* As the head of the queue, takes the word. */
static inline void scl_take_as_head(struct scl *lock, struct w_account *account, enum wait wait)
{
	uint32_t seen;

	while (!scl_take(lock, account)) {
		/* [SCL-3] acquire: pairs with nothing; [SCL-2] reads again */
		seen = w_wait_acquire(&lock->word, !(VAL & SCL_HELD), wait_turn(wait), NULL);
		if (!(seen & SCL_HELD) || wait != WAIT_PARK)
			continue;
		/* relaxed: publishes nothing; the releaser learns only that there is somebody to wake */
		if (!(seen & SCL_SLEEPER) && !w_compare_exchange_relaxed(&lock->word, &seen, seen | SCL_SLEEPER))
			continue;
		w_event(park);
		w_park(&lock->word, SCL_HELD | SCL_SLEEPER, NULL);
	}
}

/* ---- The lock ---- */

/* Takes @lock if it is free, in whoever's slice. */
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

/* Takes @lock, in whoever's slice, by polling until the deadline. */
static W_SLOW bool scl_poll(struct scl *lock, struct w_account *account, const struct w_deadline *deadline)
{
	while (!scl_take_between(lock, account)) {
		if (w_expired(deadline))
			return false;
		/* [SCL-4] acquire: pairs with nothing; [SCL-2] reads again */
		(void)w_wait_acquire(&lock->word, !VAL, W_YIELD, deadline);
	}
	return true;
}

/* Takes @lock, in a slice that begins with it. */
static W_SLOW void scl_acquire_slice(struct scl *lock, struct w_account *account, struct scl_policy policy)
{
	struct mcs_node *node = w_node_get();

	if (!mcs_enter(&lock->queue, node))
		(void)node_wait(&node->status, policy.wait, NULL);
	/* relaxed: for the count */
	else if (w_load_relaxed(&lock->word) || scl_slice_end(lock, policy))
		w_event(contended);
	scl_wait_for_slice(lock, policy);
	scl_take_as_head(lock, account, policy.wait);
	scl_begin_slice(lock);
	mcs_release(&lock->queue, node, (struct mcs_policy){policy.wait});
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool scl_acquire(struct scl *lock, struct scl_policy policy, const struct w_deadline *deadline)
{
	struct w_account *account = scl_open(w_account(lock), 0);
	uint64_t now;

	if (scl_owns_slice(lock) && scl_slice_end(lock, policy) && scl_take(lock, account))
		return true;
	scl_drop_waiters(lock);
	now = w_now();
	scl_limit_credit(account, now, policy);
	if (!scl_serve_ban(account, now, policy.wait, deadline) || (deadline && !scl_poll(lock, account, deadline))) {
		w_event(abandon);
		return false;
	}
	if (!deadline)
		scl_acquire_slice(lock, account, policy);
	return true;
}

/* Releases @lock. False, and nothing is changed, if it was not held. Charges the thread that calls. */
static inline bool scl_release(struct scl *lock, struct scl_policy policy)
{
	W_ATOMIC(uint32_t) *word = &lock->word, *slice = &lock->slice;
	bool wakes_head;

	(void)policy;
	/* relaxed: only the holder can clear HELD, so the holder reads its own doing */
	if (w_unlikely(!(w_load_relaxed(&lock->word) & SCL_HELD)))
		return false;
	scl_drop_waiters(lock);
	wakes_head = scl_charge(lock, scl_open(w_account(lock), lock->since)) && scl_owns_slice(lock) &&
		     scl_give_up_slice(lock);
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
