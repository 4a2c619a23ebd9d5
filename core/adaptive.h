/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The adaptive mutex of the Linux kernel: who finds it held spins as long as its owner seems to run, in a queue of which
 * only the first looks at the lock; then sleeps in a list, whose first, woken in vain, has the lock handed to it.
 *
 * From: Bueso, "Scalability techniques for practical synchronization primitives", CACM'15 (fast path, optimistic spinning,
 * slow path), and the Linux mutex, whose flags of the owner word are the ones below.
 * Changed, and why:
 *  - Whether the owner runs only the kernel knows. Here it is taken to run as long as it has not held the lock for a whole
 *    bounded spin of the waiter's; and a spinner gives up its place in the queue after as long.
 *  - So all that is wanted of the owner is whether it is still the same hold: instead of the owner's address the word has
 *    a number, which each acquisition changes.
 *  - Linux unlocks first and looks for a sleeper then, when the next owner may have freed the lock. Here the release looks
 *    first, and from then on the first sleeper neither sleeps nor goes away before the word is free (RELEASING). After
 *    that the release uses an address only.
 *
 * Promises: mutual exclusion. Spinners and newcomers pass sleepers; the first sleeper is passed by nobody once it was
 * woken in vain; the sleepers are first come, first served. Blocking under wait=park; the others only spin. 28 bytes a lock
 * in a frame of 32, of which the embedder has 4; a waiter has a node of the pool while it spins, and another one while it
 * sleeps; a holder none. Atomic read-modify-writes: 2 uncontended.
 *
 *   word = LOCKED | WAITERS | HANDOFF | RELEASING | number
 *     LOCKED   legal to set by anybody if neither it nor HANDOFF is, by the first sleeper if it is not set
 *     WAITERS  the list is not empty, and the release wakes the first: changed with the list locked
 *     HANDOFF  only the first sleeper may take the lock. Legal to set and clear by that one
 *     RELEASING  the holder marks the first sleeper and is about to clear LOCKED. Legal to set and clear by the holder
 *
 *   spinners ──▶ [last] ◀─next─ ... ◀─next─ [first, looks at word]
 *   last ──▶ [last sleeper] ─next─▶ [first sleeper] ─next─▶ ... ─next─▶ [last sleeper]
 *
 *   0 ──▶ LOCKED ──sleeper──▶ LOCKED|WAITERS ──release, unpark──▶ WAITERS ──spinner──▶ LOCKED|WAITERS
 *   LOCKED|WAITERS ──first, woken in vain──▶ LOCKED|WAITERS|HANDOFF ──release, unpark──▶ WAITERS|HANDOFF ──first──▶ LOCKED
 */
#ifndef POUNDLOCK_ADAPTIVE_H
#define POUNDLOCK_ADAPTIVE_H

#include "part/generation.h"
#include "mcs.h"

#define ADAPTIVE_LOCKED 1u
#define ADAPTIVE_WAITERS 2u
#define ADAPTIVE_HANDOFF 4u
#define ADAPTIVE_RELEASING 8u
#define ADAPTIVE_NUMBER 16u

/* A sleeper's status; 0: the node is free. WOKEN: by the holder, with the list locked. */
#define ADAPTIVE_ASLEEP 1u
#define ADAPTIVE_WOKEN 2u

struct adaptive_waiter {
	W_ATOMIC(uint32_t) status;
	struct adaptive_waiter *next;
};

struct adaptive {
	struct mcs spinners;          /* its holder is the one who looks at the word */
	struct adaptive_waiter *last; /* in the circular list of sleepers; NULL: it is empty */
	uint32_t embedder;            /* in a pthread_mutex_t __kind is here */
	W_ATOMIC(uint32_t) word;
	W_ATOMIC(uint32_t) list; /* whether `last` and the links are locked */
	W_ATOMIC(uint32_t) generation;
};

struct adaptive_policy {
	enum wait wait;
};

#define adaptive_settings(S)
/* Without the embedder's. */
#define adaptive_bytes sizeof(struct adaptive) - sizeof(uint32_t), sizeof(struct adaptive_waiter), 0

/* In a forked child: drops the waiters that do not exist here. Whether it did. */
static inline bool adaptive_drop_waiters(struct adaptive *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return false;
	lock->last = NULL;
	/* relaxed, all: [GENERATION-3] publishes them, and nobody waits until then */
	w_store_relaxed(&lock->spinners.tail, NULL);
	w_store_relaxed(&lock->list, 0);
	(void)w_fetch_and_relaxed(&lock->word, ADAPTIVE_LOCKED);
	generation_settle(&lock->generation);
	return true;
}

/* Takes @lock unless a flag of @barred is set; else *@seen is what it was. */
static inline bool adaptive_take(struct adaptive *lock, uint32_t *seen, uint32_t barred)
{
	/* relaxed: the compare-exchange decides */
	*seen = w_load_relaxed(&lock->word);
	while (!(*seen & barred))
		/* [ADAPTIVE-1] acquire: pairs with [ADAPTIVE-9], [ADAPTIVE-8]; the last holder's
		 * critical section */
		if (w_compare_exchange_acquire(&lock->word, seen,
					       ((*seen + ADAPTIVE_NUMBER) | ADAPTIVE_LOCKED) & ~ADAPTIVE_HANDOFF))
			return true;
	return false;
}

/* Takes @lock if it is free. */
static inline bool adaptive_try_acquire(struct adaptive *lock)
{
	uint32_t seen;

	if (w_likely(adaptive_take(lock, &seen, ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF)))
		return true;
	/* It may be kept for a sleeper that does not exist in this child. */
	return !(seen & ADAPTIVE_LOCKED) && adaptive_drop_waiters(lock) &&
	       adaptive_take(lock, &seen, ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF);
}

/* ---- Spinning ---- */

/* Waits with @node to be the first of the spinners. False, and @node is left to its predecessor, if that takes too long. */
static inline bool adaptive_join(struct adaptive *lock, struct mcs_node *node, enum wait wait,
				 const struct w_deadline *deadline)
{
	if (mcs_enter(&lock->spinners, node))
		return true;
	/* [ADAPTIVE-2] acquire: pairs with nothing; to be first orders nothing, [ADAPTIVE-1]
	 * does */
	return w_wait_acquire(&node->status, VAL == NODE_GRANTED, wait_turn(wait), deadline) == NODE_GRANTED ||
	       node_leave(&node->status);
}

/* Takes @lock while its owners seem to run. False if one does not, or the deadline has passed. */
static inline bool adaptive_spin(struct adaptive *lock, enum wait wait, const struct w_deadline *deadline)
{
	static const struct mcs_policy spinners = {WAIT_YIELD};
	struct mcs_node *node = w_node_get();
	uint32_t seen, now;
	bool taken, runs = true;

	if (!adaptive_join(lock, node, wait, deadline))
		return false;
	while (!(taken = adaptive_take(lock, &seen, ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF)) && runs) {
		/* [ADAPTIVE-3] acquire: pairs with nothing; adaptive_take reads again */
		now = w_wait_acquire(&lock->word,
				     !(VAL & (ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF)) ||
					     VAL / ADAPTIVE_NUMBER != seen / ADAPTIVE_NUMBER,
				     wait_turn(wait), deadline);
		runs = now / ADAPTIVE_NUMBER != seen / ADAPTIVE_NUMBER || !(now & (ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF));
		runs = runs && !w_expired(deadline);
	}
	mcs_release(&lock->spinners, node, spinners);
	return taken;
}

/* ---- Sleeping ---- */

static inline void adaptive_list_lock(struct adaptive *lock)
{
	/* [ADAPTIVE-4] acquire: pairs with [ADAPTIVE-6]; the list */
	while (w_exchange_acquire(&lock->list, 1))
		/* [ADAPTIVE-5] acquire: pairs with nothing; [ADAPTIVE-4] reads again */
		(void)w_wait_acquire(&lock->list, !VAL, W_YIELD, NULL);
}

static inline void adaptive_list_unlock(struct adaptive *lock)
{
	/* [ADAPTIVE-6] release: pairs with [ADAPTIVE-4]; the list */
	w_store_release(&lock->list, 0);
}

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
 * As @waiter, with the list locked: takes @lock, or changes the word of the held lock by @set and @clear; but not as the
 * first of the list while a release is not over, which may have looked for the first already.
 */
static inline enum adaptive_turn adaptive_try_turn(struct adaptive *lock, struct adaptive_waiter *waiter, uint32_t set,
						   uint32_t clear)
{
	bool first = lock->last->next == waiter;
	uint32_t seen;

	do {
		if (adaptive_take(lock, &seen, first ? ADAPTIVE_LOCKED : ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF))
			return ADAPTIVE_TAKEN;
		if (first && (seen & ADAPTIVE_RELEASING))
			return ADAPTIVE_SOON_FREE;
		/* relaxed: publishes nothing; a release that comes after it finds us in the list. Also where it changes
		 * nothing: what it reads is the newest word */
	} while (!w_compare_exchange_relaxed(&lock->word, &seen, (seen | set) & ~clear));
	return ADAPTIVE_HELD;
}

/* Takes @waiter, who has @lock if @taken, out of the list. */
static inline void adaptive_end_sleep(struct adaptive *lock, struct adaptive_waiter *waiter, bool taken)
{
	adaptive_remove(lock, waiter);
	if (taken && !lock->last)
		/* relaxed: nobody is there to be woken */
		(void)w_fetch_and_relaxed(&lock->word, ~ADAPTIVE_WAITERS);
	adaptive_list_unlock(lock);
	node_free(&waiter->status);
}

/* Sleeps until a release has marked @waiter, or to the deadline. The list is locked before and after. */
static inline void adaptive_park(struct adaptive *lock, struct adaptive_waiter *waiter,
				 const struct w_deadline *deadline)
{
	/* relaxed: with the list locked */
	w_store_relaxed(&waiter->status, ADAPTIVE_ASLEEP);
	adaptive_list_unlock(lock);
	w_event(park);
	w_park(&waiter->status, ADAPTIVE_ASLEEP, deadline);
	adaptive_list_lock(lock);
}

/* Waits until a release that has begun is over. The list is locked before and after. */
static inline void adaptive_await_release(struct adaptive *lock)
{
	adaptive_list_unlock(lock);
	/* [ADAPTIVE-7] acquire: pairs with nothing; adaptive_try_turn reads again */
	(void)w_wait_acquire(&lock->word, !(VAL & ADAPTIVE_RELEASING), W_YIELD, NULL);
	adaptive_list_lock(lock);
}

/* What the first sleeper undoes of the word when it goes without the lock; the others nothing. */
static inline uint32_t adaptive_undo(struct adaptive *lock, struct adaptive_waiter *waiter)
{
	if (lock->last->next != waiter)
		return 0;
	return waiter->next == waiter ? ADAPTIVE_HANDOFF | ADAPTIVE_WAITERS : ADAPTIVE_HANDOFF;
}

/* Sleeps for @lock. False if the deadline has passed. */
static inline bool adaptive_sleep(struct adaptive *lock, const struct w_deadline *deadline)
{
	struct adaptive_waiter on_stack, *waiter = w_waiter_node(&on_stack, false);
	uint32_t handoff = 0;
	enum adaptive_turn turn;
	bool expired = false;

	/* relaxed: the list's lock publishes it */
	w_store_relaxed(&waiter->status, ADAPTIVE_ASLEEP);
	adaptive_list_lock(lock);
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
			/* relaxed: with the list locked */
			handoff = w_load_relaxed(&waiter->status) == ADAPTIVE_WOKEN ? ADAPTIVE_HANDOFF : handoff;
		} else {
			adaptive_await_release(lock);
		}
	}
	adaptive_end_sleep(lock, waiter, turn == ADAPTIVE_TAKEN);
	return turn == ADAPTIVE_TAKEN;
}

/* Takes @lock, which was not free a moment ago. False if @deadline (NULL: never) passed first. */
static W_SLOW bool adaptive_acquire_slow(struct adaptive *lock, struct adaptive_policy policy,
					 const struct w_deadline *deadline)
{
	w_event(contended);
	(void)adaptive_drop_waiters(lock);
	if (adaptive_spin(lock, policy.wait, deadline) || (policy.wait == WAIT_PARK && adaptive_sleep(lock, deadline)))
		return true;
	w_event(abandon);
	return false;
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool adaptive_acquire(struct adaptive *lock, struct adaptive_policy policy,
				    const struct w_deadline *deadline)
{
	uint32_t seen;

	return w_likely(adaptive_take(lock, &seen, ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF)) ||
	       adaptive_acquire_slow(lock, policy, deadline);
}

/* ---- Release ---- */

/* Marks the first sleeper as woken. Whom to unpark; NULL: nobody. */
static inline W_ATOMIC(uint32_t) *adaptive_mark_first(struct adaptive *lock)
{
	struct adaptive_waiter *first;

	adaptive_list_lock(lock);
	first = lock->last ? lock->last->next : NULL;
	if (first)
		/* relaxed: it is looked at with the list locked, or asleep */
		w_store_relaxed(&first->status, ADAPTIVE_WOKEN);
	adaptive_list_unlock(lock);
	return first ? &first->status : NULL;
}

/* Releases @lock, which is held and may have sleepers. */
static W_SLOW void adaptive_release_slow(struct adaptive *lock)
{
	W_ATOMIC(uint32_t) *sleeper;
	uint32_t seen;

	(void)adaptive_drop_waiters(lock);
	/* relaxed: what counts is that the list is looked at after it */
	(void)w_fetch_or_relaxed(&lock->word, ADAPTIVE_RELEASING);
	sleeper = adaptive_mark_first(lock);
	/* [ADAPTIVE-8] release: pairs with [ADAPTIVE-1]; our critical section */
	seen = w_fetch_and_release(&lock->word, ~(ADAPTIVE_LOCKED | ADAPTIVE_RELEASING));
	if (seen & ADAPTIVE_HANDOFF)
		w_event(handoff);
	if (sleeper) {
		w_event(wake_late);
		w_unpark(sleeper);
	}
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool adaptive_release(struct adaptive *lock, struct adaptive_policy policy)
{
	/* relaxed: only the holder can clear LOCKED, so the holder reads its own doing; the compare-exchange decides */
	uint32_t seen = w_load_relaxed(&lock->word);

	(void)policy;
	if (w_unlikely(!(seen & ADAPTIVE_LOCKED)))
		return false;
	while (w_likely(!(seen & ADAPTIVE_WAITERS)))
		/* [ADAPTIVE-9] release: pairs with [ADAPTIVE-1]; our critical section */
		if (w_compare_exchange_release(&lock->word, &seen, seen - ADAPTIVE_LOCKED))
			return true;
	adaptive_release_slow(lock);
	return true;
}

#endif
