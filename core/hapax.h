/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Hapax lock: a ticket lock whose numbers are never reused, by any lock. An arriving thread
 * exchanges its number for its predecessor's, and waits until that number has departed, at a slot
 * outside the lock that the number selects.
 *
 * From: Dice and Kogan, "Hapax locks: value-based mutual exclusion", PPoPP'26 (arXiv 2511.14608):
 * arrive, depart, numbers in blocks for each thread, and the waiting array shared by all locks.
 *
 * Order: FIFO.
 *
 * Promise: mutual exclusion; first come, first served, except for timed waiters, which poll.
 * Waiters sleep under wait=park. 28 bytes per lock in a frame of 32, of which the embedder uses 4;
 * none per waiter or holder. Atomic read-modify-writes: 2, uncontended and contended (the exchange,
 * the slot).
 *
 *   arrive   number of the last thread to arrive
 *   depart   number of the last thread to depart
 *
 *   arrive == depart                                        free
 *   arrive == the holder's, depart == its predecessor's     held, no waiters
 *
 *   slot = count | SLEEPERS
 *     count     incremented after each departure whose number selects the slot, of any lock
 *     SLEEPERS  a thread sleeps on the slot
 *
 * Departures from the paper:
 *  - A slot counts changes instead of holding the number that departed last. It is 4 bytes, so that
 *    a waiter can sleep on it, and it only tells a waiter to look at the lock again. A release has
 *    one more atomic instruction, where the paper stores.
 *  - A number cannot be taken back, so a timed waiter polls for a free lock.
 *  - The holder's number is stored in the lock, so that any thread may unlock.
 */
#ifndef POUNDLOCK_HAPAX_H
#define POUNDLOCK_HAPAX_H

#include "part/generation.h"
#include "part/slot.h"
#include "part/wait.h"

struct hapax {
	W_ATOMIC(uint64_t) arrive;
	W_ATOMIC(uint64_t) depart;
	uint32_t embedder; /* overlays __kind in a pthread_mutex_t */
	W_ATOMIC(uint32_t) generation;
	uint64_t holder; /* number of the holder */
};

struct hapax_policy {
	enum wait wait;
};

#define hapax_settings(S)
/* Excludes the embedder's fields. */
#define hapax_bytes sizeof(struct hapax) - sizeof(uint32_t), 0, 0

/* In a forked child, takes back the numbers of threads that exist only in the parent. */
static inline void hapax_drop_waiters(struct hapax *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return;
	/*
	 * relaxed: [GENERATION-3] publishes it; a holder from before the fork also waits in
	 * generation_claim(). A holder that had not stored its number yet had no critical section
	 */
	w_store_relaxed(&lock->arrive, lock->holder);
	generation_settle(&lock->generation);
}

/* arrive == depart: arrive -> a new number. */
static inline bool hapax_try_acquire(struct hapax *lock)
{
	uint64_t departed, number;

	hapax_drop_waiters(lock);
	/* [HAPAX-1] acquire: pairs with [HAPAX-8]; the previous critical section */
	departed = w_load_acquire(&lock->depart);
	/* relaxed: a hint that avoids using up a number */
	if (w_load_relaxed(&lock->arrive) != departed)
		return false;
	number = w_unique();
	/*
	 * relaxed: the acquire above orders the previous holder's writes; a number publishes
	 * nothing
	 */
	if (!w_compare_exchange_relaxed(&lock->arrive, &departed, number))
		return false;
	lock->holder = number;
	return true;
}

/* Polls @lock until the deadline. */
static W_SLOW bool hapax_poll(struct hapax *lock, const struct w_deadline *deadline)
{
	uint64_t seen;

	do {
		/*
		 * relaxed: read before the attempt, so that a departure during it ends the wait
		 * below at once
		 */
		seen = w_load_relaxed(&lock->depart);
		if (hapax_try_acquire(lock))
			return true;
		/*
		 * [HAPAX-2] acquire: pairs with nothing; hapax_try_acquire() reads the word again
		 */
		(void)w_wait_acquire(&lock->depart, VAL != seen, W_YIELD, deadline);
	} while (!w_expired(deadline));
	w_event(abandon);
	return false;
}

/* Waits until the number @before has departed. */
static W_SLOW void hapax_wait(struct hapax *lock, uint64_t before, enum wait wait)
{
	W_ATOMIC(uint32_t) *slot = w_slot(before);
	uint32_t seen, now;

	w_event(contended);
	for (;;) {
		/* [HAPAX-3] acquire: pairs with [SLOT-1]; the departure that changed it */
		seen = w_load_acquire(slot);
		/* [HAPAX-4] acquire: pairs with [HAPAX-8], as [HAPAX-1] */
		if (w_load_acquire(&lock->depart) == before)
			return;
		/* [HAPAX-5] acquire: pairs with nothing; [HAPAX-3] reads the slot again */
		now = w_wait_acquire(slot, (VAL | SLOT_SLEEPERS) != (seen | SLOT_SLEEPERS),
				     wait_ordered(wait), NULL);
		if (wait == WAIT_PARK && (now | SLOT_SLEEPERS) == (seen | SLOT_SLEEPERS) &&
		    slot_announce_if(slot, now))
			slot_sleep(slot, now | SLOT_SLEEPERS);
	}
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool hapax_acquire(struct hapax *lock, struct hapax_policy policy,
				 const struct w_deadline *deadline)
{
	uint64_t number, before;

	if (deadline)
		return hapax_poll(lock, deadline);
	hapax_drop_waiters(lock);
	number = w_unique();
	/* relaxed: depart orders the critical sections */
	before = w_exchange_relaxed(&lock->arrive, number);
	/* [HAPAX-6] acquire: pairs with [HAPAX-8], as [HAPAX-1] */
	if (w_unlikely(w_load_acquire(&lock->depart) != before))
		hapax_wait(lock, before, policy.wait);
	lock->holder = number;
	return true;
}

/* Announces a departure at @slot and wakes its sleepers. */
static inline void hapax_bump(W_ATOMIC(uint32_t) *slot)
{
	if (w_unlikely(slot_bump(slot))) {
		w_event(wake_late);
		w_unpark_all(slot);
	}
}

/*
 * depart -> the holder's number. Returns false, and changes nothing, if @lock was not held. The
 * slot is not in the lock's memory.
 */
static inline bool hapax_release(struct hapax *lock, struct hapax_policy policy)
{
	W_ATOMIC(uint32_t) *slot;

	(void)policy;
	hapax_drop_waiters(lock);
	/* relaxed, both: only the holder changes depart, and its own arrival is visible to it */
	if (w_unlikely(w_load_relaxed(&lock->arrive) == w_load_relaxed(&lock->depart)))
		return false;
	slot = w_slot(lock->holder);
	/* [HAPAX-8] release: pairs with [HAPAX-1], [HAPAX-4], [HAPAX-6]; our critical section */
	w_store_release(&lock->depart, lock->holder);
	hapax_bump(slot);
	return true;
}

#endif
