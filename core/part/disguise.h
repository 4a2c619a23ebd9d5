/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Pointers that are never mistaken for a thread's id. While a lock is held, its bytes 8 to 15 belong to the holder, and a
 * debugger, or a thread that asks whether it is the owner, may find the owner's id in the lower half instead of what the
 * lock keeps there (preload/layout.h). So the lock keeps pointers there in disguise: on a 64-bit system the lower half of
 * a disguised user-space pointer is at least 2^31, and a thread's id at most 2^22.
 */
#ifndef POUNDLOCK_DISGUISE_H
#define POUNDLOCK_DISGUISE_H

#include "world.h"

/* The disguised form of @pointer, and the pointer of a disguised form: the halves swapped, every bit inverted. */
static inline void *disguise(const void *pointer)
{
	const unsigned half = sizeof(uintptr_t) * 4;
	uintptr_t bits = (uintptr_t)pointer;

	return (void *)~(bits << half | bits >> half);
}

/* Whether @word is a disguised pointer, and not what the holder has there instead. */
static inline bool is_disguised(const void *word)
{
	return (uintptr_t)word >> (sizeof(uintptr_t) * 4 - 1) & 1;
}

#endif
