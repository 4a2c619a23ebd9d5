/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Hints, in which a thread remembers something of a lock on which it had to wait. */
#ifndef POUNDLOCK_HINT_H
#define POUNDLOCK_HINT_H

#include <stdint.h>

#define W_HINTS 4u
#define W_HINT_LINE 64u

/* Locks in neighbouring cache lines have different hints. */
static inline uint32_t w_hint_index(const void *lock)
{
	return (uint32_t)((uintptr_t)lock / W_HINT_LINE % W_HINTS);
}

#endif
