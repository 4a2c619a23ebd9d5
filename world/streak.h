/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rules by which a thread counts its releases: when it has taken locks for too long, how long
 * it races for one, and how rarely it reads one while it spins. world/user and the simulator
 * (world/sim) follow them. Most releases only count. A look, which reads the time, is at one of
 * STREAK_LOOK.
 *
 * A streak is the time during which a thread takes locks and never finds one held, although others
 * wait. The head of a queue may be awake, but wait for the CPU of this thread until the time slice
 * ends. So a lock that newcomers may take before the head is left to the head at the end of a
 * streak: then the thread has to wait, and the head gets the CPU.
 *
 * The thread's pace is the time from one of its releases to the next, on average, while it does not
 * wait. While a thread is away from locks for long, many others can take turns without a queue, if
 * only each of them stays awake. So a thread that finds a lock held races for as long as its pace.
 * The pace is measured after one of STREAK_MEASURED waits, until the next wait or look. Reading the
 * time at all waits would cost more than a short section.
 *
 * A thread with a very short pace usually waits for threads that are as fast. While it spins, it
 * reads the lock's word rarely, so that they can hold the lock many times in a row. So does each
 * thread that waits where turns are long, and more rarely.
 *
 * A thread with a long pace looks more often, and yields its CPU instead of leaving the lock, since
 * threads that find a lock left to the head queue and sleep. The pace of such a thread is measured
 * from look to look as well, since it may never wait again.
 *
 * Plain functions: no atomics, and no clock.
 */
#ifndef POUNDLOCK_STREAK_H
#define POUNDLOCK_STREAK_H

#include <stdbool.h>
#include <stdint.h>

#include "spin.h"

/* The longest streak: many times what it takes to wake a thread, and part of a time slice. */
#define STREAK_NANOSECONDS 500000
#define STREAK_LONG_TURN 2u /* the factor by which it is longer where turns are long */
#define STREAK_LOOK 64u     /* releases between two looks */
#define STREAK_IDLE 1024u   /* the same, if nobody waits */

/*
 * The pace from which on a thread races. One that comes back sooner would mostly take the cache
 * line from a thread that could hold the lock again and again.
 */
#define STREAK_AWAY_NANOSECONDS 1000
#define STREAK_MEASURED 16u /* waits per measurement of the pace */

/*
 * The pace below which a thread is soon back: about the time in which a cache line moves to another
 * CPU. The first pause of its polite spins is 1 / STREAK_SOON_PART of the spin.
 */
#define STREAK_SOON_NANOSECONDS 64
#define STREAK_SOON_PART 4u

/* The least pace that is long: many times what it takes to yield. */
#define STREAK_LONG_NANOSECONDS 5000
#define STREAK_LONG_LOOK 4u /* releases between two looks of a thread with such a pace */

static inline bool streak_is_long(uint64_t pace)
{
	return pace >= STREAK_LONG_NANOSECONDS;
}

/* The number of releases of a thread with @pace from a wait to the first look. */
static inline uint32_t streak_first_look(uint64_t pace)
{
	return streak_is_long(pace) ? STREAK_LONG_LOOK : STREAK_LOOK;
}

/* The number of releases until the next look. */
static inline uint32_t streak_next_look(uint64_t pace, bool others_wait)
{
	return others_wait || streak_is_long(pace) ? streak_first_look(pace) : STREAK_IDLE;
}

/*
 * At a look at @now: returns whether the streak of a thread with @pace is over; if the pace is
 * long, it never is. Then a new one begins. @long_turns: whether turns are. *@since: when a look
 * first found that others wait; 0: never since the thread itself had to.
 */
static inline bool streak_is_over(uint64_t *since, uint64_t now, uint64_t pace, bool others_wait,
				  bool long_turns)
{
	const uint64_t longest = STREAK_NANOSECONDS * (long_turns ? STREAK_LONG_TURN : 1u);
	const bool over = others_wait && *since && now - *since >= longest;

	if (streak_is_long(pace))
		return false;
	if (over || (others_wait && !*since))
		*since = now;
	return over;
}

/*
 * The pace of a thread with @releases in @nanoseconds, in nanoseconds; @before if there were no
 * releases. 0: unknown.
 */
static inline uint64_t streak_pace(uint64_t before, uint64_t nanoseconds, uint32_t releases)
{
	return releases ? nanoseconds / releases : before;
}

/*
 * For how many nanoseconds a newcomer with @pace races: as long, but no longer than it takes to
 * sleep and be woken. 0: not at all.
 */
static inline uint64_t streak_race(uint64_t pace)
{
	if (pace < STREAK_AWAY_NANOSECONDS)
		return 0;
	return pace < W_SPIN_NANOSECONDS ? pace : W_SPIN_NANOSECONDS;
}

/* The pauses before the second read in a counted spin of @how and @pauses, at @pace. */
static inline uint32_t streak_first_pauses(enum w_how how, uint64_t pace, uint32_t pauses)
{
	if (how == W_RARE)
		return pauses;
	if (how != W_POLITE)
		return 1;
	return pace && pace < STREAK_SOON_NANOSECONDS ? pauses / STREAK_SOON_PART + 1 : 1;
}

#endif
