/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Memory for the locks that do not fit where they are embedded. Neither malloc nor a lock is used; a box is zeroed,
 * aligned to 64 bytes, and stays mapped for ever, so that a box given back is the next lock's.
 */
#ifndef POUNDLOCK_BOX_H
#define POUNDLOCK_BOX_H

#include <stddef.h>

/* A box of at least @size bytes, all zero. Without memory it waits until there is some. */
void *box_get(size_t size);

/* Gives back @box, which box_get(@size) returned and nobody uses any more. */
void box_put(void *box, size_t size);

#endif
