/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Pointers that cannot be mistaken for a thread's id. While a lock is held, its bytes 8 to 15
 * belong to the holder, and a debugger, or a thread that checks whether it is the owner, expects
 * the owner's id in the lower half (preload/layout.h). So a lock stores pointers there in disguise:
 * on a 64-bit system the lower half of a disguised user-space pointer is at least 2^31, and a
 * thread's id is at most 2^22.
 */
#ifndef POUNDLOCK_DISGUISE_H
#define POUNDLOCK_DISGUISE_H

#include "world.h"

/* Swaps the halves of @pointer and inverts every bit; its own inverse. */
static inline void *disguise(const void *pointer)
{
	const unsigned half = sizeof(uintptr_t) * 4;
	uintptr_t bits = (uintptr_t)pointer;

	return (void *)~(bits << half | bits >> half);
}

/* Returns whether @word is a disguised pointer, rather than the holder's data. */
static inline bool is_disguised(const void *word)
{
	return (uintptr_t)word >> (sizeof(uintptr_t) * 4 - 1) & 1;
}

#endif
