/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A recursive lock: the owner and the depth beside any lock that is not. 8 bytes.
 *
 * Promise: of the lock that it is made of. The thread that holds it may lock it again, up to
 * RECURSIVE_MOST times more, without an atomic read-modify-write, and must unlock it as often. A
 * forked child's only thread still owns what it had locked.
 *
 *   recursive_enter() ──NEW──▶ lock ──▶ recursive_own() ... recursive_leave() ──true──▶ unlock
 *                     ──AGAIN──▶                        ... recursive_leave() ──false──▶
 */
#ifndef POUNDLOCK_RECURSIVE_H
#define POUNDLOCK_RECURSIVE_H

#include "world.h"

#define RECURSIVE_MOST UINT32_MAX

struct recursive {
	W_ATOMIC(uint32_t) owner; /* 0: none */
	uint32_t depth;           /* how often the owner has locked it again; for the owner alone */
};

enum recursive_entry { RECURSIVE_NEW, RECURSIVE_AGAIN, RECURSIVE_FULL };

/*
 * NEW: the caller does not own it, and must lock the lock, then call recursive_own(). AGAIN: the
 * caller owned it, and has it once more. FULL: the same, but too often; nothing has changed.
 */
static inline enum recursive_entry recursive_enter(struct recursive *recursive)
{
	/* relaxed: only the caller stores its own number, and what it stored last it sees */
	if (w_load_relaxed(&recursive->owner) != w_self_id())
		return RECURSIVE_NEW;
	if (recursive->depth == RECURSIVE_MOST)
		return RECURSIVE_FULL;
	recursive->depth++;
	return RECURSIVE_AGAIN;
}

/* 0 -> the caller, which has locked the lock. */
static inline void recursive_own(struct recursive *recursive)
{
	/* relaxed: other threads only compare it with their own numbers */
	w_store_relaxed(&recursive->owner, w_self_id());
}

/* Returns whether the caller, the owner, must unlock the lock: owner -> 0. */
static inline bool recursive_leave(struct recursive *recursive)
{
	if (recursive->depth) {
		recursive->depth--;
		return false;
	}
	/* relaxed: as in recursive_own() */
	w_store_relaxed(&recursive->owner, 0);
	return true;
}

#endif
