/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Slots: words that all locks of the process share, on which waiters for a number sleep (w_slot()).
 * A release wakes the sleepers on the slot of one number: the next holder and, rarely, a thread
 * whose number has the same slot.
 *
 *   slot = count | SLEEPERS   SLEEPERS: a thread is asleep on the slot, or about to be
 *
 *   count ──announce──▶ count | SLEEPERS ──bump──▶ count + 1, then wake all sleepers
 *
 * A sleeper announces itself, checks once more that it has to wait, and then sleeps while the slot
 * is unchanged. The lock ensures that the check sees a release that missed the announcement.
 */
#ifndef POUNDLOCK_SLOT_H
#define POUNDLOCK_SLOT_H

#include "world.h"

#define SLOT_SLEEPERS 1u
#define SLOT_COUNT 2u

/*
 * slot -> slot|SLEEPERS. Returns the new value.
 * relaxed: the lock orders the announcement before the check that follows
 */
static inline uint32_t slot_announce(W_ATOMIC(uint32_t) *slot)
{
	return w_fetch_or_relaxed(slot, SLOT_SLEEPERS) | SLOT_SLEEPERS;
}

/* slot -> slot|SLEEPERS. Returns false if @slot is no longer @seen. */
static inline bool slot_announce_if(W_ATOMIC(uint32_t) *slot, uint32_t seen)
{
	/* relaxed: as above */
	return seen & SLOT_SLEEPERS ||
	       w_compare_exchange_relaxed(slot, &seen, seen | SLOT_SLEEPERS);
}

/* Sleeps until @slot changes from @seen, which has SLEEPERS. */
static inline void slot_sleep(W_ATOMIC(uint32_t) *slot, uint32_t seen)
{
	w_event(park);
	w_park(slot, seen, NULL);
}

/* Changes @slot. Returns whether it had sleepers, which the caller must then wake. */
static inline bool slot_bump(W_ATOMIC(uint32_t) *slot)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(slot);

	/* [SLOT-1] release: pairs with [HAPAX-3]; the departure before it */
	while (!w_compare_exchange_release(slot, &seen, (seen + SLOT_COUNT) & ~SLOT_SLEEPERS))
		;
	return seen & SLOT_SLEEPERS;
}

#endif
