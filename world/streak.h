/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A thread's streak: the time during which it takes locks and never finds one held, although others
 * wait. The head of a queue may be awake, but wait for the CPU of this thread until the time slice
 * ends. So a lock that newcomers may take before the head is left to the head at the end of a
 * streak: then the thread has to wait, and the head gets the CPU. world/user and the simulator
 * (world/sim) follow these rules.
 *
 * Most releases only count. A look, which reads the time, is at one of STREAK_LOOK.
 *
 * Plain functions: no atomics, and no clock.
 */
#ifndef POUNDLOCK_STREAK_H
#define POUNDLOCK_STREAK_H

#include <stdbool.h>
#include <stdint.h>

/* The longest streak: many times what it takes to wake a thread, and part of a time slice. */
#define STREAK_NANOSECONDS 500000
#define STREAK_LOOK 64u   /* releases between two looks */
#define STREAK_IDLE 1024u /* the same, if nobody waits */

/* The number of releases until the next look. */
static inline uint32_t streak_next_look(bool others_wait)
{
	return others_wait ? STREAK_LOOK : STREAK_IDLE;
}

/*
 * At a look at @now: returns whether the streak is over. Then a new one begins. *@since: when a
 * look first found that others wait; 0: never since the thread itself had to.
 */
static inline bool streak_is_over(uint64_t *since, uint64_t now, bool others_wait)
{
	const bool over = others_wait && *since && now - *since >= STREAK_NANOSECONDS;

	if (over || (others_wait && !*since))
		*since = now;
	return over;
}

#endif
