/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The adaptive mutex of the Linux kernel: a waiter spins while the owner appears to be running, in
 * a queue of which only the head watches the lock, and then sleeps in a list. A sleeper that wakes
 * and does not get the lock has it handed over next time.
 *
 * From: Bueso, "Scalability techniques for practical synchronization primitives", CACM'15 (fast
 * path, optimistic spinning, slow path), and Linux's mutex, whose owner-word flags are used below.
 *
 * Order: spinners overtake sleepers until the first sleeper has woken once; then that one.
 *
 * Promise: mutual exclusion. Spinners and newcomers overtake sleepers; nobody overtakes the first
 * sleeper once it has woken without getting the lock; sleepers are served first come, first served.
 * Waiters sleep under wait=park and only spin otherwise. 28 bytes per lock in a frame of 32, of
 * which the embedder uses 4. A waiter uses one pool node while it spins and another while it
 * sleeps; a holder uses none. Atomic read-modify-writes: 2 uncontended.
 *
 *   word = LOCKED | WAITERS | HANDOFF | RELEASING | number
 *     LOCKED     the lock is held. Set by any thread if neither LOCKED nor HANDOFF is set, by the
 *                first sleeper if LOCKED is not set
 *     WAITERS    the list is not empty; the release wakes its first. Changed with the list locked
 *     HANDOFF    only the first sleeper may take the lock. Set and cleared by the first sleeper
 *     RELEASING  the holder marks the first sleeper and is about to clear LOCKED. Set and cleared
 *                by the holder
 *     number     changes at each acquisition
 *
 *   spinners ──▶ [last] ◀─next─ ... ◀─next─ [first, watches the word]
 *   last ──▶ [last sleeper] ─next─▶ [first sleeper] ─next─▶ ... ─next─▶ [last sleeper]
 *
 *   0 ──▶ LOCKED ──sleeper──▶ LOCKED|WAITERS ──release, unpark──▶ WAITERS
 *   WAITERS ──spinner──▶ LOCKED|WAITERS
 *   LOCKED|WAITERS ──first, woken but overtaken──▶ LOCKED|WAITERS|HANDOFF
 *   LOCKED|WAITERS|HANDOFF ──release, unpark──▶ WAITERS|HANDOFF ──first──▶ LOCKED
 *
 * Departures from Linux:
 *  - Only the kernel knows whether the owner is running. Here an owner counts as running until it
 *    has held the lock for one whole bounded spin of the waiter. A spinner leaves the queue after
 *    as long.
 *  - Waiters only need to know whether the hold is still the same one. So the word contains a
 *    number that each acquisition changes, instead of the owner's address.
 *  - Linux unlocks first and then looks for a sleeper, when the next owner may have freed the lock.
 *    Here the release looks first. From then until the word is free (RELEASING), the first sleeper
 *    neither sleeps nor leaves. After that the release uses an address only.
 *  - Wound/wait, debugging and real-time variants are left out.
 */
#ifndef POUNDLOCK_ADAPTIVE_H
#define POUNDLOCK_ADAPTIVE_H

#include "part/generation.h"
#include "part/list_lock.h"
#include "mcs.h"

#define ADAPTIVE_LOCKED 1u
#define ADAPTIVE_WAITERS 2u
#define ADAPTIVE_HANDOFF 4u
#define ADAPTIVE_RELEASING 8u
#define ADAPTIVE_NUMBER 16u

/*
 * Status of a sleeper; 0: the node is free. WOKEN is written by the holder, with the list locked.
 */
#define ADAPTIVE_ASLEEP 1u
#define ADAPTIVE_WOKEN 2u

struct adaptive_waiter {
	W_ATOMIC(uint32_t) status;
	struct adaptive_waiter *next;
};

struct adaptive {
	struct mcs spinners;          /* its holder is the spinner that watches the word */
	struct adaptive_waiter *last; /* of the circular list of sleepers; NULL: empty */
	uint32_t embedder;            /* overlays __kind in a pthread_mutex_t */
	W_ATOMIC(uint32_t) word;
	W_ATOMIC(uint32_t) list; /* 1: `last` and the links are locked */
	W_ATOMIC(uint32_t) generation;
};

struct adaptive_policy {
	enum wait wait;
};

#define adaptive_settings(S)
/* Excludes the embedder's fields. */
#define adaptive_bytes sizeof(struct adaptive) - sizeof(uint32_t), sizeof(struct adaptive_waiter), 0

/* In a forked child, discards the parent's waiters. Returns true if it did. */
static inline bool adaptive_drop_waiters(struct adaptive *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return false;
	lock->last = NULL;
	/* relaxed, all: [GENERATION-3] publishes them; nobody waits before that */
	w_store_relaxed(&lock->spinners.tail, NULL);
	w_store_relaxed(&lock->list, 0);
	(void)w_fetch_and_relaxed(&lock->word, ADAPTIVE_LOCKED);
	generation_settle(&lock->generation);
	return true;
}

/*
 * Sets LOCKED and the next number unless a flag in @barred is set. On failure, *@seen is the word.
 */
static inline bool adaptive_take(struct adaptive *lock, uint32_t *seen, uint32_t barred)
{
	/* relaxed: the compare-exchange decides */
	*seen = w_load_relaxed(&lock->word);
	while (!(*seen & barred))
		/*
		 * [ADAPTIVE-1] acquire: pairs with [ADAPTIVE-6], [ADAPTIVE-5]; the previous
		 * critical section
		 */
		if (w_compare_exchange_acquire(&lock->word, seen,
					       ((*seen + ADAPTIVE_NUMBER) | ADAPTIVE_LOCKED) &
						       ~ADAPTIVE_HANDOFF))
			return true;
	return false;
}

/* !LOCKED && !HANDOFF -> LOCKED. */
static inline bool adaptive_try_acquire(struct adaptive *lock)
{
	uint32_t seen;

	if (w_likely(adaptive_take(lock, &seen, ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF)))
		return true;
	/* HANDOFF may be set for a sleeper that exists only in the parent. */
	return !(seen & ADAPTIVE_LOCKED) && adaptive_drop_waiters(lock) &&
	       adaptive_take(lock, &seen, ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF);
}

/* ---- Spinning ---- */

/*
 * Waits until @node is the first spinner. Returns false after a bounded time, and leaves @node to
 * its predecessor.
 */
static inline bool adaptive_join(struct adaptive *lock, struct mcs_node *node, enum wait wait,
				 const struct w_deadline *deadline)
{
	if (mcs_enter(&lock->spinners, node))
		return true;
	/*
	 * [ADAPTIVE-2] acquire: pairs with nothing; the place in the queue orders nothing,
	 * [ADAPTIVE-1] does
	 */
	return w_wait_acquire(&node->status, VAL == NODE_GRANTED, wait_turn(wait), deadline) ==
		       NODE_GRANTED ||
	       node_leave(&node->status);
}

/*
 * Takes @lock while its owners appear to be running. Returns false if one does not, or if @deadline
 * passes.
 */
static inline bool adaptive_spin(struct adaptive *lock, enum wait wait,
				 const struct w_deadline *deadline)
{
	static const struct mcs_policy spinners = {WAIT_YIELD};
	struct mcs_node *node = w_node_get();
	uint32_t seen, now;
	bool taken, runs = true;

	if (!adaptive_join(lock, node, wait, deadline))
		return false;
	while (!(taken = adaptive_take(lock, &seen, ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF)) && runs) {
		/* [ADAPTIVE-3] acquire: pairs with nothing; adaptive_take() reads the word again */
		now = w_wait_acquire(&lock->word,
				     !(VAL & (ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF)) ||
					     VAL / ADAPTIVE_NUMBER != seen / ADAPTIVE_NUMBER,
				     wait_turn(wait), deadline);
		runs = now / ADAPTIVE_NUMBER != seen / ADAPTIVE_NUMBER ||
		       !(now & (ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF));
		runs = runs && !w_expired(deadline);
	}
	mcs_release(&lock->spinners, node, spinners);
	return taken;
}

/* ---- Sleeping ---- */

static inline void adaptive_append(struct adaptive *lock, struct adaptive_waiter *waiter)
{
	if (lock->last) {
		waiter->next = lock->last->next;
		lock->last->next = waiter;
	} else {
		waiter->next = waiter;
	}
	lock->last = waiter;
}

static inline void adaptive_remove(struct adaptive *lock, struct adaptive_waiter *waiter)
{
	struct adaptive_waiter *previous = lock->last;

	while (previous->next != waiter)
		previous = previous->next;
	previous->next = waiter->next;
	if (lock->last == waiter)
		lock->last = previous == waiter ? NULL : previous;
}

enum adaptive_turn { ADAPTIVE_TAKEN, ADAPTIVE_HELD, ADAPTIVE_SOON_FREE };

/*
 * As @waiter, with the list locked: takes @lock, or sets @set and clears @clear in the word of the
 * held lock. The first in the list does neither while a release is in progress, since that release
 * may have looked for the first sleeper already: SOON_FREE.
 */
static inline enum adaptive_turn adaptive_try_turn(struct adaptive *lock,
						   struct adaptive_waiter *waiter, uint32_t set,
						   uint32_t clear)
{
	bool first = lock->last->next == waiter;
	uint32_t seen;

	do {
		if (adaptive_take(lock, &seen,
				  first ? ADAPTIVE_LOCKED : ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF))
			return ADAPTIVE_TAKEN;
		if (first && (seen & ADAPTIVE_RELEASING))
			return ADAPTIVE_SOON_FREE;
		/*
		 * relaxed: publishes nothing; a later release finds us in the list. Done even if it
		 * changes nothing, because it reads the newest word
		 */
	} while (!w_compare_exchange_relaxed(&lock->word, &seen, (seen | set) & ~clear));
	return ADAPTIVE_HELD;
}

/* Removes @waiter from the list and unlocks the list. @taken: it holds @lock. */
static inline void adaptive_end_sleep(struct adaptive *lock, struct adaptive_waiter *waiter,
				      bool taken)
{
	adaptive_remove(lock, waiter);
	if (taken && !lock->last)
		/* relaxed: there is nobody to wake */
		(void)w_fetch_and_relaxed(&lock->word, ~ADAPTIVE_WAITERS);
	list_unlock(&lock->list);
	node_free(&waiter->status);
}

/* Sleeps until a release marks @waiter or @deadline passes. The list is locked before and after. */
static inline void adaptive_park(struct adaptive *lock, struct adaptive_waiter *waiter,
				 const struct w_deadline *deadline)
{
	/* relaxed: the list is locked */
	w_store_relaxed(&waiter->status, ADAPTIVE_ASLEEP);
	list_unlock(&lock->list);
	w_event(park);
	w_park(&waiter->status, ADAPTIVE_ASLEEP, deadline);
	list_lock(&lock->list);
}

/* Waits until the release in progress is over. The list is locked before and after. */
static inline void adaptive_await_release(struct adaptive *lock)
{
	list_unlock(&lock->list);
	/* [ADAPTIVE-4] acquire: pairs with nothing; adaptive_try_turn() reads the word again */
	(void)w_wait_acquire(&lock->word, !(VAL & ADAPTIVE_RELEASING), W_YIELD, NULL);
	list_lock(&lock->list);
}

/* Returns the flags that the first sleeper clears when it leaves without the lock; 0 for others. */
static inline uint32_t adaptive_undo(struct adaptive *lock, struct adaptive_waiter *waiter)
{
	if (lock->last->next != waiter)
		return 0;
	return waiter->next == waiter ? ADAPTIVE_HANDOFF | ADAPTIVE_WAITERS : ADAPTIVE_HANDOFF;
}

/* Sleeps until @lock is taken. Returns false if @deadline passes first. */
static inline bool adaptive_sleep(struct adaptive *lock, const struct w_deadline *deadline)
{
	struct adaptive_waiter on_stack, *waiter = w_waiter_node(&on_stack, false);
	uint32_t handoff = 0;
	enum adaptive_turn turn;
	bool expired = false;

	/* relaxed: published by the list's lock */
	w_store_relaxed(&waiter->status, ADAPTIVE_ASLEEP);
	list_lock(&lock->list);
	adaptive_append(lock, waiter);
	for (;;) {
		if (expired)
			turn = adaptive_try_turn(lock, waiter, 0, adaptive_undo(lock, waiter));
		else
			turn = adaptive_try_turn(lock, waiter, ADAPTIVE_WAITERS | handoff, 0);
		if (turn == ADAPTIVE_TAKEN || (turn == ADAPTIVE_HELD && expired))
			break;
		if (turn == ADAPTIVE_HELD) {
			adaptive_park(lock, waiter, deadline);
			expired = w_expired(deadline);
			/* relaxed: the list is locked */
			handoff = w_load_relaxed(&waiter->status) == ADAPTIVE_WOKEN
					  ? ADAPTIVE_HANDOFF
					  : handoff;
		} else {
			adaptive_await_release(lock);
		}
	}
	adaptive_end_sleep(lock, waiter, turn == ADAPTIVE_TAKEN);
	return turn == ADAPTIVE_TAKEN;
}

/* Slow path: @lock was not free. Returns false if @deadline (NULL: none) passes first. */
static W_SLOW bool adaptive_acquire_slow(struct adaptive *lock, struct adaptive_policy policy,
					 const struct w_deadline *deadline)
{
	w_event(contended);
	(void)adaptive_drop_waiters(lock);
	if (adaptive_spin(lock, policy.wait, deadline) ||
	    (policy.wait == WAIT_PARK && adaptive_sleep(lock, deadline)))
		return true;
	w_event(abandon);
	return false;
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool adaptive_acquire(struct adaptive *lock, struct adaptive_policy policy,
				    const struct w_deadline *deadline)
{
	uint32_t seen;

	return w_likely(adaptive_take(lock, &seen, ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF)) ||
	       adaptive_acquire_slow(lock, policy, deadline);
}

/* ---- Release ---- */

/* Marks the first sleeper as woken. Returns the address to unpark, or NULL. */
static inline W_ATOMIC(uint32_t) *adaptive_mark_first(struct adaptive *lock)
{
	struct adaptive_waiter *first;

	list_lock(&lock->list);
	first = lock->last ? lock->last->next : NULL;
	if (first)
		/* relaxed: the sleeper reads it with the list locked, or is woken */
		w_store_relaxed(&first->status, ADAPTIVE_WOKEN);
	list_unlock(&lock->list);
	return first ? &first->status : NULL;
}

/* LOCKED|WAITERS -> RELEASING -> !LOCKED, then wakes the first sleeper. */
static W_SLOW void adaptive_release_slow(struct adaptive *lock)
{
	W_ATOMIC(uint32_t) *sleeper;
	uint32_t seen;

	(void)adaptive_drop_waiters(lock);
	/* relaxed: it only has to precede the look at the list, which is locked after it */
	(void)w_fetch_or_relaxed(&lock->word, ADAPTIVE_RELEASING);
	sleeper = adaptive_mark_first(lock);
	/* [ADAPTIVE-5] release: pairs with [ADAPTIVE-1]; our critical section */
	seen = w_fetch_and_release(&lock->word, ~(ADAPTIVE_LOCKED | ADAPTIVE_RELEASING));
	if (seen & ADAPTIVE_HANDOFF)
		w_event(handoff);
	if (sleeper) {
		w_event(wake_late);
		w_unpark(sleeper);
	}
}

/* LOCKED -> 0 unless WAITERS is set. Returns false, and changes nothing, if @lock was not held. */
static inline bool adaptive_release(struct adaptive *lock, struct adaptive_policy policy)
{
	/*
	 * relaxed: only the holder clears LOCKED, so it reads its own write; the compare-exchange
	 * decides
	 */
	uint32_t seen = w_load_relaxed(&lock->word);

	(void)policy;
	if (w_unlikely(!(seen & ADAPTIVE_LOCKED)))
		return false;
	while (w_likely(!(seen & ADAPTIVE_WAITERS)))
		/* [ADAPTIVE-6] release: pairs with [ADAPTIVE-1]; our critical section */
		if (w_compare_exchange_release(&lock->word, &seen, seen - ADAPTIVE_LOCKED))
			return true;
	adaptive_release_slow(lock);
	return true;
}

#endif
