/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Memory for locks that are larger than the object in which they are embedded. Boxes are zeroed and
 * aligned to 64 bytes. box_get() and box_put() take constant time, and use neither malloc nor a
 * lock. A box stays mapped indefinitely; one that is given back is used for the next lock, so there
 * are never more boxes of a size than were in use at one time.
 */
#ifndef POUNDLOCK_BOX_H
#define POUNDLOCK_BOX_H

#include <stddef.h>

#include "world.h"

/* The header before a box, in a cache line of its own. */
struct box {
	W_ATOMIC(const void *) owner; /* NULL: given back */
	W_ATOMIC(uint32_t) next;      /* in the stack of free boxes: box.c */
	uint32_t number;              /* among those of its size */
	uint32_t size_class;
};

#define BOX_HEADER 64

_Static_assert(sizeof(struct box) <= BOX_HEADER, "a line of its own");

/* Returns @size zeroed bytes for @owner. Waits while the system has no memory. */
W_HIDDEN void *box_get(size_t size, const void *owner);

/* Gives back @box, which box_get() returned and no thread uses any more. */
W_HIDDEN void box_put(void *box);

/* The owner of @box; NULL if it has been given back. */
static inline const void *box_owner(void *box)
{
	/* relaxed: compared only with the caller's own lock, which wrote it */
	return atomic_load_explicit(&((struct box *)((char *)box - BOX_HEADER))->owner,
				    memory_order_relaxed);
}

#endif
