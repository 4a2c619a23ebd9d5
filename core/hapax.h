/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Hapax lock: a ticket lock whose numbers are never used again, anywhere. Who arrives leaves a number of its own, and waits
 * until the one found there has departed; far from the lock, at a slot that the number leads to.
 *
 * From: Dice and Kogan, "Hapax locks: value-based mutual exclusion", PPoPP'26 (arXiv 2511.14608): arrive, depart, numbers
 * in blocks for each thread, and the waiting array that all locks share.
 * Changed, and why:
 *  - A slot counts changes instead of holding the number that departed last: it is 4 bytes, so that a waiter can sleep on
 *    it, and says only that it is time to look at the lock again.
 *  - As a number cannot be taken back, a timed waiter polls for a free lock.
 *  - The holder's number lies in the lock, so that any thread may unlock.
 *
 * Promises: mutual exclusion; first come, first served, but for timed waiters. Blocking under wait=park. 28 bytes a lock in
 * a frame of 32, of which the embedder has 4; nothing a waiter or holder. Atomic read-modify-writes: 2 uncontended and
 * contended (the exchange, the slot).
 *
 *   arrive   the number of the last to arrive
 *   depart   the number of the last to depart
 *
 *   arrive == depart    free
 *   arrive == a holder's, depart == its predecessor's    held, nobody waits
 *
 *   slot = count | SLEEPERS: bumped after each departure whose number leads to it, of whichever lock; SLEEPERS: somebody
 *   sleeps on it
 */
#ifndef POUNDLOCK_HAPAX_H
#define POUNDLOCK_HAPAX_H

#include "part/generation.h"
#include "part/wait.h"

struct hapax {
	W_ATOMIC(uint64_t) arrive;
	W_ATOMIC(uint64_t) depart;
	uint32_t embedder; /* in a pthread_mutex_t __kind is here */
	W_ATOMIC(uint32_t) generation;
	uint64_t holder; /* the holder's number */
};

struct hapax_policy {
	enum wait wait;
};

#define hapax_settings(S)
/* Without the embedder's. */
#define hapax_bytes sizeof(struct hapax) - sizeof(uint32_t), 0, 0

#define HAPAX_SLEEPERS 1u
#define HAPAX_COUNT 2u

/* In a forked child: takes back the numbers of those who do not exist here. */
static inline void hapax_drop_waiters(struct hapax *lock)
{
	if (w_likely(!generation_claim(&lock->generation)))
		return;
	/* relaxed: [GENERATION-3] publishes it; a holder from before the fork waits in
	 * generation_claim() too. Of a holder that had not come to noting its number there was no
	 * critical section yet */
	w_store_relaxed(&lock->arrive, lock->holder);
	generation_settle(&lock->generation);
}

/* Takes @lock if it is free. */
static inline bool hapax_try_acquire(struct hapax *lock)
{
	uint64_t departed, number;

	hapax_drop_waiters(lock);
	/* [HAPAX-1] acquire: pairs with [HAPAX-8]; the last holder's critical section */
	departed = w_load_acquire(&lock->depart);
	/* relaxed: only a hint that spares a number */
	if (w_load_relaxed(&lock->arrive) != departed)
		return false;
	number = w_unique();
	/* relaxed: the acquire above has the last holder's doing; a number publishes nothing */
	if (!w_compare_exchange_relaxed(&lock->arrive, &departed, number))
		return false;
	lock->holder = number;
	return true;
}

/* Takes @lock by polling until the deadline. */
static W_SLOW bool hapax_poll(struct hapax *lock, const struct w_deadline *deadline)
{
	uint64_t seen;

	do {
		/* relaxed: read before the try, so that a departure that the try missed ends the wait below at once */
		seen = w_load_relaxed(&lock->depart);
		if (hapax_try_acquire(lock))
			return true;
		/* [HAPAX-2] acquire: pairs with nothing; hapax_try_acquire reads again */
		(void)w_wait_acquire(&lock->depart, VAL != seen, W_YIELD, deadline);
	} while (!w_expired(deadline));
	w_event(abandon);
	return false;
}

/* Sleeps until @slot, last seen as @seen, has changed. */
static inline void hapax_park(W_ATOMIC(uint32_t) *slot, uint32_t seen)
{
	/* relaxed: says only that there is somebody to wake */
	if (!(seen & HAPAX_SLEEPERS) && !w_compare_exchange_relaxed(slot, &seen, seen | HAPAX_SLEEPERS))
		return;
	w_event(park);
	w_park(slot, seen | HAPAX_SLEEPERS, NULL);
}

/* Waits until the one of number @before has departed. */
static W_SLOW void hapax_wait(struct hapax *lock, uint64_t before, enum wait wait)
{
	W_ATOMIC(uint32_t) *slot = w_slot(before);
	uint32_t seen, now;

	w_event(contended);
	for (;;) {
		/* [HAPAX-3] acquire: pairs with [HAPAX-7]; the departure that bumped it */
		seen = w_load_acquire(slot);
		/* [HAPAX-4] acquire: pairs with [HAPAX-8], as [HAPAX-1] */
		if (w_load_acquire(&lock->depart) == before)
			return;
		/* [HAPAX-5] acquire: pairs with nothing; [HAPAX-3] reads again */
		now = w_wait_acquire(slot, (VAL | HAPAX_SLEEPERS) != (seen | HAPAX_SLEEPERS), wait_turn(wait), NULL);
		if (wait == WAIT_PARK && (now | HAPAX_SLEEPERS) == (seen | HAPAX_SLEEPERS))
			hapax_park(slot, now);
	}
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool hapax_acquire(struct hapax *lock, struct hapax_policy policy, const struct w_deadline *deadline)
{
	uint64_t number, before;

	if (deadline)
		return hapax_poll(lock, deadline);
	hapax_drop_waiters(lock);
	number = w_unique();
	/* relaxed: order comes from depart */
	before = w_exchange_relaxed(&lock->arrive, number);
	/* [HAPAX-6] acquire: pairs with [HAPAX-8], as [HAPAX-1] */
	if (w_unlikely(w_load_acquire(&lock->depart) != before))
		hapax_wait(lock, before, policy.wait);
	lock->holder = number;
	return true;
}

/* Says at @slot that somebody has departed. */
static inline void hapax_bump(W_ATOMIC(uint32_t) *slot)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(slot);

	/* [HAPAX-7] release: pairs with [HAPAX-3]; the departure before it */
	while (!w_compare_exchange_release(slot, &seen, (seen + HAPAX_COUNT) & ~HAPAX_SLEEPERS))
		;
	if (w_unlikely(seen & HAPAX_SLEEPERS)) {
		w_event(wake_late);
		w_unpark_all(slot);
	}
}

/* Releases @lock. False, and nothing is changed, if it was not held. The slot is not the lock's memory. */
static inline bool hapax_release(struct hapax *lock, struct hapax_policy policy)
{
	W_ATOMIC(uint32_t) *slot;

	(void)policy;
	hapax_drop_waiters(lock);
	/* relaxed, both: only the holder moves depart on, and its own arrival is before it */
	if (w_unlikely(w_load_relaxed(&lock->arrive) == w_load_relaxed(&lock->depart)))
		return false;
	slot = w_slot(lock->holder);
	/* [HAPAX-8] release: pairs with [HAPAX-1], [HAPAX-4], [HAPAX-6]; our critical section */
	w_store_release(&lock->depart, lock->holder);
	hapax_bump(slot);
	return true;
}

#endif
