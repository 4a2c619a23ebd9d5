/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * RON in constant space: a lock of 4 bytes, and one array of slots that the waiters of all locks of the process share.
 *
 * From: RON (OSDI'23) section 7.1. tour.h says what else is changed from algorithm 1; here the same holds of the array.
 * Changed, and why:
 *  - A slot has the lock's address and how its waiter fares in one word, so that a release cannot give its lock to the
 *    waiter of another one which took the slot meanwhile. Section 7.1 compares the address and then writes.
 *  - Slots in use are marked, 64 to a word, and a search looks at those marked only.
 *  - Whose own slots are taken uses the next free one on the route. There are RON_SHARED_SLOTS at least.
 *  - The word has the place that the lock was taken at, where the next search begins (tour.h says why). 16 bits are enough
 *    for up to RON_SHARED_MOST slots: where a world has no more room, it is so short.
 *  - In user space a waiter may sleep. A release that finds nobody takes WAITERS back, looks again, and frees the lock by
 *    a compare-exchange that fails if somebody came: all before its last access to the lock's memory.
 *
 * Promises: mutual exclusion; a waiter that has a slot is passed by each other slot once at most. Who finds all slots
 * taken, since more threads of the process wait than there are, has no place in this order and may be passed without
 * bound: it yields until a slot or the lock is free (section 7.1: it waits on InUse). Blocking under wait=park but for
 * these. 4 bytes a lock, none a waiter or holder; 16 bytes a slot a process. Atomic read-modify-writes: 2 uncontended;
 * contended 3 to wait (the slot, the mark, the word), 1 to leave the slot and 3 to hand over.
 *
 *   word = HELD | WAITERS | at << 2
 *     HELD      legal to set if the word is 0, or, with WAITERS, by who comes to wait; cleared with all others by the
 *               holder
 *     WAITERS   somebody may have a slot. Legal to set by a waiter after it has marked its slot; to clear by the
 *               holder, who then looks again
 *     at        the slot that the lock was last given to. The holder's
 *
 *   0 ──▶ HELD ──waiter──▶ HELD | WAITERS ──holder, who finds no slot──▶ HELD ──▶ 0
 *
 *   slot = the lock's address, twice | its waiter's state
 *   0 ──waiter──▶ WAITING ──waiter──▶ PARKED       holder: either ──▶ GRANTED ──waiter──▶ 0
 *                                                  waiter, at its deadline: either ──▶ LEAVING ──▶ 0
 *
 * Only the thread that a slot belongs to sets and clears its mark, and it does so while the slot is its own.
 */
#ifndef POUNDLOCK_RON_SHARED_H
#define POUNDLOCK_RON_SHARED_H

#include "part/generation.h"
#include "part/wait.h"

#define RON_SHARED_SLOTS 64u
#define RON_SHARED_MARKS 64u /* slots a word */
#define RON_SHARED_NONE UINT32_MAX

#define RON_SHARED_HELD 1u
#define RON_SHARED_WAITERS 2u
#define RON_SHARED_AT 4u
#define RON_SHARED_MOST ((W_SHORT)~0 / RON_SHARED_AT + 1ull) /* slots */

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

/* How many slots a place has: one at least for each that may wait there and not give the CPU up to the others. */
static inline uint32_t ron_shared_each(void)
{
	uint32_t each = (RON_SHARED_SLOTS + w_cpu_count() - 1) / w_cpu_count();

	return each > W_CONTEXTS ? each : W_CONTEXTS;
}

static inline uint32_t ron_shared_slots(void)
{
	return ron_shared_each() * w_cpu_count();
}

static inline uint32_t ron_shared_words(void)
{
	return (ron_shared_slots() + RON_SHARED_MARKS - 1) / RON_SHARED_MARKS;
}

#define RON_SHARED_HEAD 64 /* bytes before the marks */

static inline struct ron_shared_array *ron_shared_array(void)
{
	return w_common(RON_SHARED_HEAD + ron_shared_words() * sizeof(uint64_t) +
			ron_shared_slots() * sizeof(struct ron_shared_slot));
}

static inline W_ATOMIC(uint64_t) *ron_shared_marks(struct ron_shared_array *array, uint32_t word)
{
	return (W_ATOMIC(uint64_t) *)((char *)array + RON_SHARED_HEAD) + word;
}

static inline struct ron_shared_slot *ron_shared_slot(struct ron_shared_array *array, uint32_t slot)
{
	return (struct ron_shared_slot *)ron_shared_marks(array, ron_shared_words()) + slot;
}

/* In a forked child: drops the waiters that do not exist here. A lock's WAITERS may stay: nobody is found. */
static inline void ron_shared_drop_waiters(struct ron_shared_array *array)
{
	if (w_likely(!generation_claim(&array->generation)))
		return;
	/* relaxed, both: [GENERATION-3] publishes them, and nobody has a slot until then */
	for (uint32_t word = 0; word < ron_shared_words(); word++)
		w_store_relaxed(ron_shared_marks(array, word), 0);
	for (uint32_t slot = 0; slot < ron_shared_slots(); slot++)
		w_store_relaxed(&ron_shared_slot(array, slot)->lock, 0);
	generation_settle(&array->generation);
}

/* A lock is at an even address, whose highest bit tells no two of them apart: it is 0 of those of user space, 1 of the kernel's. */
static inline uint64_t ron_shared_of(struct ron_shared *lock, uint32_t state)
{
	return (uint64_t)(uintptr_t)lock << 1 | state;
}

/* ---- Waiters ---- */

/* The slot after which a holder that runs here begins its search: the last of its place. */
static inline uint32_t ron_shared_here(void)
{
	return (w_route_position() + 1) * ron_shared_each() - 1;
}

/* Takes @lock if it is free. */
static inline bool ron_shared_try_acquire(struct ron_shared *lock)
{
	W_SHORT seen = 0;

	/* relaxed: only a hint that spares the line; the compare-exchange decides */
	if (w_load_relaxed(&lock->word))
		return false;
	/* [RON_SHARED-1] acquire: pairs with [RON_SHARED-12]; the last holder's critical section */
	return w_compare_exchange_acquire(&lock->word, &seen, RON_SHARED_HELD | ron_shared_here() * RON_SHARED_AT);
}

/* The first free slot from @from on, taken for @lock; or RON_SHARED_NONE. */
static inline uint32_t ron_shared_claim(struct ron_shared_array *array, struct ron_shared *lock, uint32_t from)
{
	uint32_t slots = ron_shared_slots(), slot;
	uint64_t seen;

	for (uint32_t step = 0; step < slots; step++) {
		slot = (from + step) % slots;
		/* relaxed: which slot is free is only a hint; the compare-exchange decides */
		seen = w_load_relaxed(&ron_shared_slot(array, slot)->lock);
		if (seen)
			continue;
		/* [RON_SHARED-2] acquire: pairs with [RON_SHARED-3]; the last owner has taken its
		 * mark away */
		if (w_compare_exchange_acquire(&ron_shared_slot(array, slot)->lock, &seen,
					       ron_shared_of(lock, RON_SHARED_WAITING)))
			return slot;
	}
	return RON_SHARED_NONE;
}

/* Gives back @slot, in which nobody else writes any more. */
static inline void ron_shared_leave(struct ron_shared_array *array, uint32_t slot)
{
	/* relaxed: a mark without a waiter costs a look; [RON_SHARED-3] orders it before the next
	 * owner's */
	(void)w_fetch_and_relaxed(ron_shared_marks(array, slot / RON_SHARED_MARKS), ~(1ull << slot % RON_SHARED_MARKS));
	/* [RON_SHARED-3] release: pairs with [RON_SHARED-2]; the mark is away */
	w_store_release(&ron_shared_slot(array, slot)->lock, 0);
}

/* Sleeps until @slot is granted (true) or the deadline passes (false). */
static inline bool ron_shared_park(struct ron_shared_slot *slot, struct ron_shared *lock,
				   const struct w_deadline *deadline)
{
	uint64_t seen = ron_shared_of(lock, RON_SHARED_WAITING), granted = ron_shared_of(lock, RON_SHARED_GRANTED);
	/* relaxed: if it is stale the sleep ends at once; who grants changes it after it has seen PARKED */
	uint32_t before = w_load_relaxed(&slot->wake);

	/* [RON_SHARED-4] release: pairs with [RON_SHARED-10]; our look at wake is before its
	 * change */
	if (w_compare_exchange_release(&slot->lock, &seen, ron_shared_of(lock, RON_SHARED_PARKED))) {
		w_event(park);
		do {
			w_park(&slot->wake, before, deadline);
			/* [RON_SHARED-5] acquire: pairs with [RON_SHARED-11]; who changed it for us
			 * has granted before */
			before = w_load_acquire(&slot->wake);
			/* relaxed: [RON_SHARED-6] reads again */
		} while (w_load_relaxed(&slot->lock) != granted && !w_expired(deadline));
	}
	/* [RON_SHARED-6] acquire: pairs with [RON_SHARED-10]; the last holder's critical section */
	return w_load_acquire(&slot->lock) == granted;
}

/* Waits in @slot until @lock is given to it: true. At the deadline false, and the slot is left to be given back. */
static inline bool ron_shared_wait(struct ron_shared_slot *slot, struct ron_shared *lock, enum wait wait,
				   const struct w_deadline *deadline)
{
	uint64_t granted = ron_shared_of(lock, RON_SHARED_GRANTED), seen;

	w_event(contended);
	/* [RON_SHARED-7] acquire: pairs with [RON_SHARED-10], as [RON_SHARED-6] */
	if (w_wait_acquire(&slot->lock, VAL == granted, wait_turn(wait), deadline) == granted)
		return true;
	if (wait == WAIT_PARK && ron_shared_park(slot, lock, deadline))
		return true;
	/* relaxed: the compare-exchange decides */
	seen = w_load_relaxed(&slot->lock);
	while (seen != granted)
		/* relaxed: who gives up learns nothing, and tells nothing */
		if (w_compare_exchange_relaxed(&slot->lock, &seen, ron_shared_of(lock, RON_SHARED_LEAVING))) {
			w_event(abandon);
			return false;
		}
	/* [RON_SHARED-8] acquire: pairs with [RON_SHARED-10], as [RON_SHARED-6] */
	return w_load_acquire(&slot->lock) == granted;
}

/* Says that @slot waits for @lock. True if the lock was free: it is the caller's. */
static inline bool ron_shared_announce(struct ron_shared_array *array, struct ron_shared *lock, uint32_t slot)
{
	/* relaxed: [RON_SHARED-9] publishes it */
	(void)w_fetch_or_relaxed(ron_shared_marks(array, slot / RON_SHARED_MARKS), 1ull << slot % RON_SHARED_MARKS);
	/* [RON_SHARED-9] acq_rel: acquire pairs with [RON_SHARED-12]: the last holder's critical
	 * section. Release pairs with [RON_SHARED-13]: our slot and mark */
	if (w_fetch_or_acq_rel(&lock->word, RON_SHARED_HELD | RON_SHARED_WAITERS) & RON_SHARED_HELD)
		return false;
	/* relaxed: the holder's */
	(void)w_fetch_add_relaxed(&lock->word, slot * RON_SHARED_AT);
	return true;
}

static W_SLOW bool ron_shared_acquire_slow(struct ron_shared *lock, enum wait wait, const struct w_deadline *deadline)
{
	struct ron_shared_array *array = ron_shared_array();
	uint32_t first = w_route_position() * ron_shared_each(), slot;
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
	taken = ron_shared_announce(array, lock, slot) ||
		ron_shared_wait(ron_shared_slot(array, slot), lock, wait, deadline);
	ron_shared_leave(array, slot);
	return taken;
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool ron_shared_acquire(struct ron_shared *lock, struct ron_shared_policy policy,
				      const struct w_deadline *deadline)
{
	return w_likely(ron_shared_try_acquire(lock)) || ron_shared_acquire_slow(lock, policy.wait, deadline);
}

/* ---- The holder ---- */

/* The first of @lock's waiters in the marked slots from @from to @end, or RON_SHARED_NONE. */
static inline uint32_t ron_shared_find(struct ron_shared_array *array, struct ron_shared *lock, uint32_t from,
				       uint32_t end)
{
	uint64_t marks, seen;
	uint32_t slot;

	for (uint32_t word = from / RON_SHARED_MARKS; word < (end + RON_SHARED_MARKS - 1) / RON_SHARED_MARKS; word++) {
		/* relaxed: a mark says only where to look; [RON_SHARED-13] orders the look that
		 * counts */
		for (marks = w_load_relaxed(ron_shared_marks(array, word)); marks; marks &= marks - 1) {
			slot = word * RON_SHARED_MARKS + (uint32_t)__builtin_ctzll(marks);
			if (slot < from || slot >= end)
				continue;
			/* relaxed: the compare-exchange that grants decides */
			seen = w_load_relaxed(&ron_shared_slot(array, slot)->lock);
			if (seen == ron_shared_of(lock, RON_SHARED_WAITING) ||
			    seen == ron_shared_of(lock, RON_SHARED_PARKED))
				return slot;
		}
	}
	return RON_SHARED_NONE;
}

/* The next of @lock's waiters, those behind the slot that it was last given to first. */
static inline uint32_t ron_shared_next(struct ron_shared_array *array, struct ron_shared *lock)
{
	/* relaxed: its place is the holder's */
	uint32_t from = w_load_relaxed(&lock->word) / RON_SHARED_AT + 1;
	uint32_t slot = ron_shared_find(array, lock, from, ron_shared_slots());

	return slot == RON_SHARED_NONE ? ron_shared_find(array, lock, 0, from) : slot;
}

/* Gives @lock to the waiter in @slot. False if it has gone. */
static inline bool ron_shared_grant(struct ron_shared_array *array, struct ron_shared *lock, uint32_t slot)
{
	struct ron_shared_slot *waiter = ron_shared_slot(array, slot);
	uint64_t seen = ron_shared_of(lock, RON_SHARED_WAITING);

	/* relaxed, both: the place is the holder's. The last access to the lock if the waiter is there */
	(void)w_fetch_add_relaxed(&lock->word, (slot - w_load_relaxed(&lock->word) / RON_SHARED_AT) * RON_SHARED_AT);
	do
		if (seen != ron_shared_of(lock, RON_SHARED_WAITING) && seen != ron_shared_of(lock, RON_SHARED_PARKED))
			return false;
	/* [RON_SHARED-10] acq_rel: release pairs with [RON_SHARED-6], [RON_SHARED-7],
	 * [RON_SHARED-8]: our critical section. Acquire pairs with [RON_SHARED-4] */
	while (!w_compare_exchange_acq_rel(&waiter->lock, &seen, ron_shared_of(lock, RON_SHARED_GRANTED)));
	if (seen == ron_shared_of(lock, RON_SHARED_PARKED)) {
		w_event(wake_in_cs);
		/* [RON_SHARED-11] release: pairs with [RON_SHARED-5]; the grant. By now the slot
		 * may be another's, who then wakes for no reason */
		(void)w_fetch_add_release(&waiter->wake, 1);
		w_unpark(&waiter->wake);
	}
	return true;
}

/* Makes @lock free if nobody has come to wait. */
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
	do {
		slot = ron_shared_next(array, lock);
		if (slot == RON_SHARED_NONE) {
			/* [RON_SHARED-13] acquire: pairs with [RON_SHARED-9]; the slots and marks
			 * of those that set it before */
			(void)w_fetch_and_acquire(&lock->word, ~RON_SHARED_WAITERS);
			slot = ron_shared_next(array, lock);
			if (slot == RON_SHARED_NONE)
				continue;
			w_event(recheck);
			/* relaxed: for holders, and each hand-over orders it */
			(void)w_fetch_or_relaxed(&lock->word, RON_SHARED_WAITERS);
		}
		if (ron_shared_grant(array, lock, slot))
			return;
	} while (!ron_shared_free(lock));
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool ron_shared_release(struct ron_shared *lock, struct ron_shared_policy policy)
{
	(void)policy;
	/* relaxed: only the holder clears HELD, so the holder reads its own doing */
	if (w_unlikely(!(w_load_relaxed(&lock->word) & RON_SHARED_HELD)))
		return false;
	if (w_unlikely(!ron_shared_free(lock)))
		ron_shared_hand_over(lock);
	return true;
}

#endif
