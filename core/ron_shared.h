/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * RON in constant space: a lock of 4 bytes, and an array of slots shared by the waiters of all
 * locks of the process.
 *
 * From: Lo et al., "RON", OSDI'23, section 7.1. The departures from algorithm 1 that part/tour.h
 * lists apply to the array as well.
 *
 * Order: the next on a tour of the CPUs, while there are free slots.
 *
 * Promise: mutual exclusion; each other slot is served at most once before a waiter's slot is
 * served. A waiter that finds all slots taken, because more threads of the process wait than there
 * are slots, has no place in this order and no bound on bypass: it yields until a slot or the lock
 * is free (in section 7.1 it waits on InUse). Other waiters sleep under wait=park. 4 bytes per
 * lock, none per waiter or holder; 16 bytes per slot and process. Atomic read-modify-writes: 2
 * uncontended; contended 3 to wait (the slot, the mark, the word), 1 to leave the slot and 3 to
 * hand over.
 *
 *   word = HELD | WAITERS | at << 2
 *     HELD      the lock is held. Set if the word is 0, or together with WAITERS by an arriving
 *               waiter; cleared with all other bits by the holder
 *     WAITERS   a thread may have a slot. Set by a waiter after it has marked its slot; cleared by
 *               the holder, which then looks again
 *     at        the slot that the lock was last given to. Written only by the holder
 *
 *   0 ──▶ HELD ──waiter──▶ HELD | WAITERS ──holder that finds no slot──▶ HELD ──▶ 0
 *
 *   slot = address of the lock, shifted left by one | state of its waiter
 *   0 ──waiter──▶ WAITING ──waiter──▶ PARKED
 *   either ──holder──▶ GRANTED ──waiter──▶ 0
 *   either ──waiter, at its deadline──▶ LEAVING ──▶ 0
 *
 * Only the thread that owns a slot sets and clears its mark, and only while it owns the slot.
 *
 * In a world with urgent waiters there are two sets of marks: of all slots in use, and of those of
 * urgent waiters. A holder that is not urgent itself hands over to the next urgent waiter, and `at`
 * keeps its value: at most every other hand-over leaves the tour. So each other slot is served at
 * most twice, plus once, before a waiter's slot is served.
 *
 * Departures from the paper:
 *  - A slot holds the lock's address and the waiter's state in one word, so that a release cannot
 *    give its lock to another lock's waiter that has taken the slot in the meantime. Section 7.1
 *    compares the address and then writes.
 *  - Slots in use are marked, 64 to a word, and a search only looks at marked slots.
 *  - A thread whose own slots are taken uses the next free one on the route. There are at least
 *    RON_SHARED_SLOTS.
 *  - The word holds the place where the lock was taken, where the next search begins (see
 *    part/tour.h). 16 bits suffice for up to RON_SHARED_MOST slots, for a world that has no more
 *    room.
 *  - A holder that has time may choose its successor before the release: the head of the queue of
 *    the kernel's spin lock.
 *  - In user space a waiter may sleep. A release that finds no waiter clears WAITERS, looks again,
 *    and frees the lock by a compare-exchange that fails if a waiter has come. All of this precedes
 *    its last access to the lock's memory.
 */
#ifndef POUNDLOCK_RON_SHARED_H
#define POUNDLOCK_RON_SHARED_H

#include "part/generation.h"
#include "part/wait.h"

#define RON_SHARED_SLOTS 64u
#define RON_SHARED_MARKS 64u /* slots per word */
#define RON_SHARED_NONE UINT32_MAX

#define RON_SHARED_HELD 1u
#define RON_SHARED_WAITERS 2u
#define RON_SHARED_AT 4u
#define RON_SHARED_MOST ((W_SHORT)~0 / RON_SHARED_AT + 1ull) /* slots */

enum { RON_SHARED_IN_USE, RON_SHARED_URGENT }; /* sets of marks */

enum { RON_SHARED_WAITING, RON_SHARED_PARKED, RON_SHARED_GRANTED, RON_SHARED_LEAVING };

struct ron_shared {
	W_ATOMIC(W_SHORT) word;
};

struct ron_shared_slot {
	W_ATOMIC(uint64_t) lock;
	W_ATOMIC(uint32_t) wake; /* changes when a sleeper is granted */
};

struct ron_shared_array {
	W_ATOMIC(uint32_t) generation;
};

struct ron_shared_policy {
	enum wait wait;
};

#define ron_shared_settings(S)
#define ron_shared_bytes sizeof(struct ron_shared), 0, 0

/* ---- The array ---- */

/* Slots per place: at least one for each waiter there that cannot yield the CPU to the others. */
static inline uint32_t ron_shared_each(void)
{
	uint32_t each = (RON_SHARED_SLOTS + w_cpu_count() - 1) / w_cpu_count();

	return each > W_CONTEXTS ? each : W_CONTEXTS;
}

static inline uint32_t ron_shared_slots(void)
{
	return ron_shared_each() * w_cpu_count();
}

/* Words of a set of marks. */
static inline uint32_t ron_shared_words(void)
{
	return (ron_shared_slots() + RON_SHARED_MARKS - 1) / RON_SHARED_MARKS;
}

static inline uint32_t ron_shared_sets(void)
{
	return W_URGENCY ? 2 : 1;
}

#define RON_SHARED_HEAD 64 /* bytes before the marks */

static inline struct ron_shared_array *ron_shared_array(void)
{
	return w_common(RON_SHARED_HEAD +
			ron_shared_sets() * ron_shared_words() * sizeof(uint64_t) +
			ron_shared_slots() * sizeof(struct ron_shared_slot));
}

/* Of all sets: those of @set begin at word @set * ron_shared_words(). */
static inline W_ATOMIC(uint64_t) *ron_shared_marks(struct ron_shared_array *array, uint32_t word)
{
	return (W_ATOMIC(uint64_t) *)((char *)array + RON_SHARED_HEAD) + word;
}

static inline W_ATOMIC(uint64_t) *ron_shared_urgent_marks(struct ron_shared_array *array,
							  uint32_t word)
{
	return ron_shared_marks(array, RON_SHARED_URGENT * ron_shared_words() + word);
}

static inline struct ron_shared_slot *ron_shared_slot(struct ron_shared_array *array, uint32_t slot)
{
	return (struct ron_shared_slot *)ron_shared_marks(array,
							  ron_shared_sets() * ron_shared_words()) +
	       slot;
}

/*
 * In a forked child, discards the parent's waiters. A lock's WAITERS may remain set: the next
 * search finds no waiter.
 */
static inline void ron_shared_drop_waiters(struct ron_shared_array *array)
{
	if (w_likely(!generation_claim(&array->generation)))
		return;
	/* relaxed, both: [GENERATION-3] publishes them; nobody has a slot before that */
	for (uint32_t word = 0; word < ron_shared_sets() * ron_shared_words(); word++)
		w_store_relaxed(ron_shared_marks(array, word), 0);
	for (uint32_t slot = 0; slot < ron_shared_slots(); slot++)
		w_store_relaxed(&ron_shared_slot(array, slot)->lock, 0);
	generation_settle(&array->generation);
}

/*
 * The content of a slot whose waiter wants @lock. A lock's address is even, and its highest bit is
 * the same for all locks: 0 in user space, 1 in the kernel.
 */
static inline uint64_t ron_shared_of(struct ron_shared *lock, uint32_t state)
{
	return (uint64_t)(uintptr_t)lock << 1 | state;
}

/* ---- Waiters ---- */

/* The slot after which a holder that runs here begins its search: the last one of its place. */
static inline uint32_t ron_shared_here(void)
{
	return (w_route_position() + 1) * ron_shared_each() - 1;
}

/* 0 -> HELD. */
static inline bool ron_shared_try_acquire(struct ron_shared *lock)
{
	W_SHORT seen = 0;

	/* relaxed: a hint that avoids taking the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->word))
		return false;
	/* [RON_SHARED-1] acquire: pairs with [RON_SHARED-12]; the previous critical section */
	return w_compare_exchange_acquire(&lock->word, &seen,
					  RON_SHARED_HELD | ron_shared_here() * RON_SHARED_AT);
}

/*
 * 0 -> WAITING for @lock, in the first free slot from @from on. Returns RON_SHARED_NONE if none is
 * free.
 */
static inline uint32_t ron_shared_claim(struct ron_shared_array *array, struct ron_shared *lock,
					uint32_t from)
{
	uint32_t slots = ron_shared_slots(), slot;
	uint64_t seen;

	for (uint32_t step = 0; step < slots; step++) {
		slot = (from + step) % slots;
		/* relaxed: a hint for a free slot; the compare-exchange decides */
		seen = w_load_relaxed(&ron_shared_slot(array, slot)->lock);
		if (seen)
			continue;
		/*
		 * [RON_SHARED-2] acquire: pairs with [RON_SHARED-3]; the previous owner has cleared
		 * its mark
		 */
		if (w_compare_exchange_acquire(&ron_shared_slot(array, slot)->lock, &seen,
					       ron_shared_of(lock, RON_SHARED_WAITING)))
			return slot;
	}
	return RON_SHARED_NONE;
}

/* * -> 0: returns @slot, in which nobody else writes any more. */
static inline void ron_shared_leave(struct ron_shared_array *array, uint32_t slot, bool urgent)
{
	/*
	 * relaxed, both: a mark without a waiter costs one look; [RON_SHARED-3] orders it before
	 * the next owner's
	 */
	if (urgent)
		(void)w_fetch_and_relaxed(ron_shared_urgent_marks(array, slot / RON_SHARED_MARKS),
					  ~(1ull << slot % RON_SHARED_MARKS));
	(void)w_fetch_and_relaxed(ron_shared_marks(array, slot / RON_SHARED_MARKS),
				  ~(1ull << slot % RON_SHARED_MARKS));
	/* [RON_SHARED-3] release: pairs with [RON_SHARED-2]; the cleared mark */
	w_store_release(&ron_shared_slot(array, slot)->lock, 0);
}

/*
 * WAITING -> PARKED, then sleeps until @slot is granted. Returns false if @deadline passes first.
 */
static inline bool ron_shared_park(struct ron_shared_slot *slot, struct ron_shared *lock,
				   const struct w_deadline *deadline)
{
	uint64_t seen = ron_shared_of(lock, RON_SHARED_WAITING),
		 granted = ron_shared_of(lock, RON_SHARED_GRANTED);
	/*
	 * relaxed: if it is stale, the sleep ends at once; a granter changes it after it has seen
	 * PARKED
	 */
	uint32_t before = w_load_relaxed(&slot->wake);

	/*
	 * [RON_SHARED-4] release: pairs with [RON_SHARED-10]; our read of wake comes before its
	 * change
	 */
	if (w_compare_exchange_release(&slot->lock, &seen,
				       ron_shared_of(lock, RON_SHARED_PARKED))) {
		w_event(park);
		do {
			w_park(&slot->wake, before, deadline);
			/*
			 * [RON_SHARED-5] acquire: pairs with [RON_SHARED-11]; if our granter
			 * changed it, it has granted
			 */
			before = w_load_acquire(&slot->wake);
			/* relaxed: [RON_SHARED-6] reads it again */
		} while (w_load_relaxed(&slot->lock) != granted && !w_expired(deadline));
	}
	/* [RON_SHARED-6] acquire: pairs with [RON_SHARED-10]; the previous critical section */
	return w_load_acquire(&slot->lock) == granted;
}

/*
 * Waits in @slot until @lock is given to it. At the deadline, returns false: WAITING or PARKED ->
 * LEAVING, and the caller has to return the slot.
 */
static inline bool ron_shared_wait(struct ron_shared_slot *slot, struct ron_shared *lock,
				   enum wait wait, const struct w_deadline *deadline)
{
	uint64_t granted = ron_shared_of(lock, RON_SHARED_GRANTED), seen;

	w_event(contended);
	/* [RON_SHARED-7] acquire: pairs with [RON_SHARED-10], as [RON_SHARED-6] */
	if (w_wait_acquire(&slot->lock, VAL == granted, wait_ordered(wait), deadline) == granted)
		return true;
	if (wait == WAIT_PARK && ron_shared_park(slot, lock, deadline))
		return true;
	/* relaxed: the compare-exchange decides */
	seen = w_load_relaxed(&slot->lock);
	while (seen != granted)
		/* relaxed: a leaving waiter neither reads nor publishes anything */
		if (w_compare_exchange_relaxed(&slot->lock, &seen,
					       ron_shared_of(lock, RON_SHARED_LEAVING))) {
			w_event(abandon);
			return false;
		}
	/* [RON_SHARED-8] acquire: pairs with [RON_SHARED-10], as [RON_SHARED-6] */
	return w_load_acquire(&slot->lock) == granted;
}

/*
 * * -> HELD|WAITERS: announces @slot to @lock. Returns true if @lock was free: the caller then
 * holds it.
 */
static inline bool ron_shared_announce(struct ron_shared_array *array, struct ron_shared *lock,
				       uint32_t slot, bool urgent)
{
	/* relaxed, both: [RON_SHARED-9] publishes them */
	(void)w_fetch_or_relaxed(ron_shared_marks(array, slot / RON_SHARED_MARKS),
				 1ull << slot % RON_SHARED_MARKS);
	if (urgent)
		(void)w_fetch_or_relaxed(ron_shared_urgent_marks(array, slot / RON_SHARED_MARKS),
					 1ull << slot % RON_SHARED_MARKS);
	/*
	 * [RON_SHARED-9] acq_rel: acquire pairs with [RON_SHARED-12]: the previous critical
	 * section. Release pairs with [RON_SHARED-13]: our slot and mark
	 */
	if (w_fetch_or_acq_rel(&lock->word, RON_SHARED_HELD | RON_SHARED_WAITERS) & RON_SHARED_HELD)
		return false;
	/* relaxed: written only by the holder */
	(void)w_fetch_add_relaxed(&lock->word, slot * RON_SHARED_AT);
	return true;
}

static W_SLOW bool ron_shared_acquire_slow(struct ron_shared *lock, enum wait wait,
					   const struct w_deadline *deadline)
{
	struct ron_shared_array *array = ron_shared_array();
	uint32_t first = w_route_position() * ron_shared_each(), slot;
	const bool urgent = w_urgent();
	bool taken;

	ron_shared_drop_waiters(array);
	while ((slot = ron_shared_claim(array, lock, first)) == RON_SHARED_NONE) {
		if (ron_shared_try_acquire(lock))
			return true;
		if (w_expired(deadline))
			return false;
		w_event(overflow);
		w_yield();
	}
	taken = ron_shared_announce(array, lock, slot, urgent);
	if (!taken && urgent)
		w_event(urgent);
	taken = taken || ron_shared_wait(ron_shared_slot(array, slot), lock, wait, deadline);
	ron_shared_leave(array, slot, urgent);
	return taken;
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool ron_shared_acquire(struct ron_shared *lock, struct ron_shared_policy policy,
				      const struct w_deadline *deadline)
{
	return w_likely(ron_shared_try_acquire(lock)) ||
	       ron_shared_acquire_slow(lock, policy.wait, deadline);
}

/* ---- The holder ---- */

/*
 * Returns the first of @lock's waiters in the slots in [@from, @end) that are marked in @set, or
 * RON_SHARED_NONE.
 */
static inline uint32_t ron_shared_find(struct ron_shared_array *array, struct ron_shared *lock,
				       uint32_t set, uint32_t from, uint32_t end)
{
	uint64_t marks, seen;
	uint32_t slot;

	for (uint32_t word = from / RON_SHARED_MARKS;
	     word < (end + RON_SHARED_MARKS - 1) / RON_SHARED_MARKS; word++) {
		/*
		 * relaxed: a mark is a hint for the search; [RON_SHARED-13] orders the search that
		 * counts
		 */
		for (marks = w_load_relaxed(
			     ron_shared_marks(array, set * ron_shared_words() + word));
		     marks; marks &= marks - 1) {
			slot = word * RON_SHARED_MARKS + (uint32_t)__builtin_ctzll(marks);
			if (slot < from || slot >= end)
				continue;
			/* relaxed: the granting compare-exchange decides */
			seen = w_load_relaxed(&ron_shared_slot(array, slot)->lock);
			if (seen == ron_shared_of(lock, RON_SHARED_WAITING) ||
			    seen == ron_shared_of(lock, RON_SHARED_PARKED))
				return slot;
		}
	}
	return RON_SHARED_NONE;
}

/*
 * Returns the next of @lock's waiters with a mark in @set, starting behind the slot that the lock
 * was last given to on the tour.
 */
static inline uint32_t ron_shared_next(struct ron_shared_array *array, struct ron_shared *lock,
				       uint32_t set)
{
	/* relaxed: `at` is written only by the holder */
	uint32_t from = w_load_relaxed(&lock->word) / RON_SHARED_AT + 1;
	uint32_t slot = ron_shared_find(array, lock, set, from, ron_shared_slots());

	return slot == RON_SHARED_NONE ? ron_shared_find(array, lock, set, 0, from) : slot;
}

/* Returns the urgent waiter that is served ahead of the tour, or RON_SHARED_NONE. */
static inline uint32_t ron_shared_ahead(struct ron_shared_array *array, struct ron_shared *lock)
{
	return W_URGENCY && !w_urgent() ? ron_shared_next(array, lock, RON_SHARED_URGENT)
					: RON_SHARED_NONE;
}

/*
 * WAITING or PARKED -> GRANTED. Returns false if the waiter in @slot has left. @ahead: it is served
 * ahead of the tour.
 */
static inline bool ron_shared_grant(struct ron_shared_array *array, struct ron_shared *lock,
				    uint32_t slot, bool ahead)
{
	struct ron_shared_slot *waiter = ron_shared_slot(array, slot);
	uint64_t seen = ron_shared_of(lock, RON_SHARED_WAITING);

	/*
	 * relaxed, both: `at` is written only by the holder. The last access to the lock if the
	 * waiter is still there
	 */
	if (!ahead)
		(void)w_fetch_add_relaxed(&lock->word,
					  (slot - w_load_relaxed(&lock->word) / RON_SHARED_AT) *
						  RON_SHARED_AT);
	do
		if (seen != ron_shared_of(lock, RON_SHARED_WAITING) &&
		    seen != ron_shared_of(lock, RON_SHARED_PARKED))
			return false;
	/* [RON_SHARED-10] acq_rel: release pairs with [RON_SHARED-6], [RON_SHARED-7],
	 * [RON_SHARED-8]: our critical section. Acquire pairs with [RON_SHARED-4] */
	while (!w_compare_exchange_acq_rel(&waiter->lock, &seen,
					   ron_shared_of(lock, RON_SHARED_GRANTED)));
	if (seen == ron_shared_of(lock, RON_SHARED_PARKED)) {
		w_event(wake_in_cs);
		/*
		 * [RON_SHARED-11] release: pairs with [RON_SHARED-5]; the grant. By now the slot
		 * may belong to another waiter, which then wakes spuriously
		 */
		(void)w_fetch_add_release(&waiter->wake, 1);
		w_unpark(&waiter->wake);
	}
	return true;
}

/* A holder's choice of its successor. */
struct ron_shared_choice {
	uint32_t slot; /* RON_SHARED_NONE: none */
	bool ahead;    /* it is served ahead of the tour */
};

/*
 * Chooses the waiter to hand @lock to before the release. Called by the holder, any number of
 * times: an urgent waiter that arrives later replaces a choice, and no other does.
 */
static inline void ron_shared_look_ahead(struct ron_shared *lock, struct ron_shared_choice *choice)
{
	struct ron_shared_array *array = ron_shared_array();
	uint32_t urgent = ron_shared_ahead(array, lock);

	if (urgent != RON_SHARED_NONE)
		*choice = (struct ron_shared_choice){urgent, true};
	else if (choice->slot == RON_SHARED_NONE)
		choice->slot = ron_shared_next(array, lock, RON_SHARED_IN_USE);
}

/* HELD -> 0 unless a waiter has announced itself. */
static inline bool ron_shared_free(struct ron_shared *lock)
{
	/* relaxed: the compare-exchange decides */
	W_SHORT seen = w_load_relaxed(&lock->word) & (W_SHORT)~RON_SHARED_WAITERS;

	/* [RON_SHARED-12] release: pairs with [RON_SHARED-1], [RON_SHARED-9]; our critical
	 * section */
	return w_compare_exchange_release(&lock->word, &seen, 0);
}

static W_SLOW void ron_shared_hand_over(struct ron_shared *lock)
{
	struct ron_shared_array *array = ron_shared_array();
	uint32_t slot;

	ron_shared_drop_waiters(array);
	slot = ron_shared_ahead(array, lock);
	if (slot != RON_SHARED_NONE && ron_shared_grant(array, lock, slot, true))
		return;
	do {
		slot = ron_shared_next(array, lock, RON_SHARED_IN_USE);
		if (slot == RON_SHARED_NONE) {
			/*
			 * [RON_SHARED-13] acquire: pairs with [RON_SHARED-9]; the slots and marks
			 * of the waiters that had set it
			 */
			(void)w_fetch_and_acquire(&lock->word, ~RON_SHARED_WAITERS);
			slot = ron_shared_next(array, lock, RON_SHARED_IN_USE);
			if (slot == RON_SHARED_NONE)
				continue;
			w_event(recheck);
			/* relaxed: only holders act on it, and each hand-over orders it */
			(void)w_fetch_or_relaxed(&lock->word, RON_SHARED_WAITERS);
		}
		if (ron_shared_grant(array, lock, slot, false))
			return;
	} while (!ron_shared_free(lock));
}

/* As ron_shared_release(), after ron_shared_look_ahead(). Only holders call it. */
static inline void ron_shared_release_to(struct ron_shared *lock, struct ron_shared_choice choice)
{
	if (choice.slot != RON_SHARED_NONE &&
	    ron_shared_grant(ron_shared_array(), lock, choice.slot, choice.ahead))
		return;
	if (!ron_shared_free(lock))
		ron_shared_hand_over(lock);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool ron_shared_release(struct ron_shared *lock, struct ron_shared_policy policy)
{
	(void)policy;
	/* relaxed: only the holder clears HELD, so it reads its own write */
	if (w_unlikely(!(w_load_relaxed(&lock->word) & RON_SHARED_HELD)))
		return false;
	if (w_unlikely(!ron_shared_free(lock)))
		ron_shared_hand_over(lock);
	return true;
}

#endif
