/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Memory for the locks that do not fit where they are embedded. Neither malloc nor a lock is used, and a get or put takes
 * the same few steps however many boxes there are. A box is zeroed, aligned to 64 bytes, and stays mapped for ever: one
 * that is given back is the next lock's, so that there are no more of a size than were in use at a time.
 */
#ifndef POUNDLOCK_BOX_H
#define POUNDLOCK_BOX_H

#include <stddef.h>

#include "world.h"

/* Lies before a box, in a cache line of its own. */
struct box {
	W_ATOMIC(const void *) owner; /* NULL: given back */
	W_ATOMIC(uint32_t) next;      /* while it is given back: the box below it, as box.c has it */
	uint32_t number;              /* among those of its size */
	uint32_t size_class;
};

#define BOX_HEADER 64

_Static_assert(sizeof(struct box) <= BOX_HEADER, "a line of its own");

/* A box of at least @size bytes, all zero, for @owner. Without memory it waits until there is some. */
W_HIDDEN void *box_get(size_t size, const void *owner);

/* Gives back @box, which box_get() returned and nobody uses any more. */
W_HIDDEN void box_put(void *box);

/* Whose @box it is, which may have been given back. */
static inline const void *box_owner(void *box)
{
	/* relaxed: the owner itself wrote it, or it is another's */
	return atomic_load_explicit(&((struct box *)((char *)box - BOX_HEADER))->owner, memory_order_relaxed);
}

#endif
