/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Exponential back-off (Anderson, TPDS'90): a thread that loses a race pauses, twice as long each time. tas.h,
 * ttas.h, hbo.h and others share it.
 */
#ifndef POUNDLOCK_BACKOFF_H
#define POUNDLOCK_BACKOFF_H

#include "part/wait.h"

/* Pauses for @pauses, at most @most; how long the next time. @most of 0: no pause at all. */
static inline uint32_t backoff_pause(uint32_t pauses, uint32_t most)
{
	uint32_t now = pauses < most ? pauses : most;

	if (!now)
		return pauses;
	w_pause_for(now);
	return now * 2;
}

/*
 * Gives the CPU up as @wait has it, after a failed try and about @pauses; *@spun: how many since it last did. A waiter that
 * spins does so too after W_SPIN_ROW: it may be a real-time thread on the CPU of the holder.
 */
static inline void backoff_give_way(enum wait wait, uint32_t *spun, uint32_t pauses)
{
	*spun += pauses;
	if (wait == WAIT_PARK || (wait == WAIT_SPIN && *spun < W_SPIN_ROW))
		return;
	*spun = 0;
	w_yield();
}

#endif
