/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Locks that are larger than the caller's memory: a pointer there leads to a box (box.h), which
 * holds the lock from its first use until it is destroyed.
 */
#ifndef POUNDLOCK_BOXED_H
#define POUNDLOCK_BOXED_H

#include "box.h"

/*
 * Whether @boxed belongs to @lock. The copy of a free lock leads to the original's box, and gets
 * one of its own.
 */
static inline bool boxed_is_own(void *boxed, void *lock)
{
	return boxed && box_owner(boxed) == lock;
}

/*
 * The lock in the box of @lock. The first use makes it: init() is passed zeroed memory of size()
 * bytes.
 */
static inline void *boxed_get(void *lock, size_t (*size)(void),
			      void (*init)(void *boxed, size_t bytes))
{
	W_ATOMIC(void *) *box = lock;
	void *seen, *made;
	size_t bytes;

	/* acquire: pairs with the release below; the lock as init() made it */
	seen = w_load_acquire(box);
	if (w_likely(boxed_is_own(seen, lock)))
		return seen;
	bytes = size();
	made = box_get(bytes, lock);
	init(made, bytes);
	/* release: pairs with the acquire above and below */
	if (w_compare_exchange_release(box, &seen, made))
		return made;
	box_put(made);
	/*
	 * acquire: pairs with the release of the faster thread; a failed compare-exchange acquires
	 * nothing
	 */
	return w_load_acquire(box);
}

/* Gives back the box of @lock, which nobody uses any more. */
static inline void boxed_destroy(void *lock)
{
	W_ATOMIC(void *) *box = lock;
	/* relaxed, both: no other thread uses a lock that is being destroyed */
	void *boxed = w_load_relaxed(box);

	w_store_relaxed(box, NULL);
	if (boxed_is_own(boxed, lock))
		box_put(boxed);
}

#endif
