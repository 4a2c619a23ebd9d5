/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Exponential back-off (Anderson, TPDS'90): a thread pauses after a failed attempt, twice as long
 * each time. Shared by tas.h, ttas.h, hbo.h and others.
 */
#ifndef POUNDLOCK_BACKOFF_H
#define POUNDLOCK_BACKOFF_H

#include "part/wait.h"

/* Pauses for @pauses, at most @most (0: not at all). Returns the length of the next pause. */
static inline uint32_t backoff_pause(uint32_t pauses, uint32_t most)
{
	uint32_t now = pauses < most ? pauses : most;

	if (!now)
		return pauses;
	w_pause_for(now);
	return now * 2;
}

/*
 * Yields the CPU as @wait requires, after a failed attempt and a pause of @pauses. *@spun: pauses
 * since the last yield. A waiter with WAIT_SPIN also yields, after W_SPIN_ROW pauses: it may be a
 * real-time thread on the holder's CPU.
 */
static inline void backoff_yield(enum wait wait, uint32_t *spun, uint32_t pauses)
{
	*spun += pauses;
	if (wait == WAIT_PARK || (wait == WAIT_SPIN && *spun < W_SPIN_ROW))
		return;
	*spun = 0;
	w_yield();
}

#endif
