/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Exponential back-off (Anderson, TPDS'90): who loses a race pauses, twice as long each time. tas.h, ttas.h and hbo.h
 * share it.
 */
#ifndef POUNDLOCK_BACKOFF_H
#define POUNDLOCK_BACKOFF_H

#include "world.h"

/* Pauses for @pauses, at most @most; how long the next time. @most of 0: no pause at all. */
static inline uint32_t backoff_pause(uint32_t pauses, uint32_t most)
{
	uint32_t now = pauses < most ? pauses : most;

	if (!now)
		return pauses;
	w_pause_for(now);
	return now * 2;
}

#endif
