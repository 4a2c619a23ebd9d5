/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Repair after fork(). A parent's waiters may leave a lock in a state that only they could resolve.
 * In the child, the first thread that meets such a lock repairs it, once. The lock stores the fork
 * generation in which it was last sound:
 *
 *   2 * w_fork_generation()       sound
 *   2 * w_fork_generation() + 1   one thread repairs the lock; others wait for it
 *   any other value               left by a parent, possibly during the parent's own repair
 */
#ifndef POUNDLOCK_GENERATION_H
#define POUNDLOCK_GENERATION_H

#include "world.h"

/*
 * Returns true if the caller must repair the lock and then call generation_settle(). Waits while
 * another thread repairs it.
 */
static inline bool generation_claim(W_ATOMIC(uint32_t) *generation)
{
	uint32_t sound = 2 * w_fork_generation();
	/* [GENERATION-1] acquire: pairs with [GENERATION-3]; the repaired lock */
	uint32_t seen = w_load_acquire(generation);

	if (w_likely(seen == sound))
		return false;
	/* relaxed: claims are ordered by the object itself, and an ancestor's repair by fork() */
	if (seen != sound + 1 && w_compare_exchange_relaxed(generation, &seen, sound + 1)) {
		w_event(fork_repair);
		return true;
	}
	/* [GENERATION-2] acquire: pairs with [GENERATION-3]; the repaired lock */
	(void)w_wait_acquire(generation, VAL == sound, W_YIELD, NULL);
	return false;
}

static inline void generation_settle(W_ATOMIC(uint32_t) *generation)
{
	/* [GENERATION-3] release: pairs with [GENERATION-1], [GENERATION-2]; the repaired lock */
	w_store_release(generation, 2 * w_fork_generation());
}

#endif
