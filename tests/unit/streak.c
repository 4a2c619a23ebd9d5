/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * world/streak.h: when a streak is over. Of world/user, which release looks, also on a fast path
 * that leaves the look to the lock's own release.
 */
#include "unit.h"
#include "world.h"

#define LOOKS (STREAK_NANOSECONDS / 1000)

/* The number of looks, 1 us apart and from @now on, until the streak is over; at most LOOKS + 2. */
static uint32_t looks_until_over(uint64_t *since, uint64_t now)
{
	uint32_t looks = 1;

	while (looks < LOOKS + 2 && !streak_is_over(since, now, true)) {
		now += 1000;
		looks++;
	}
	return looks;
}

static void is_over_after_its_time(void)
{
	uint64_t since = 0;

	EXPECT(looks_until_over(&since, 1) == LOOKS + 1);
	EXPECT(looks_until_over(&since, 1 + STREAK_NANOSECONDS + 1000) == LOOKS, "a new one");
}

static void begins_when_others_wait(void)
{
	uint64_t since = 0;

	EXPECT(!streak_is_over(&since, 1, false));
	EXPECT(looks_until_over(&since, 2 * STREAK_NANOSECONDS) == LOOKS + 1);
	EXPECT(!streak_is_over(&since, UINT64_MAX, false), "nobody waits");
}

/* Releases until one looks, as @counts says; at most UINT16_MAX + 1. */
static uint32_t releases(bool (*counts)(void))
{
	uint32_t count = 1;

	while (count <= UINT16_MAX && !counts())
		count++;
	return count;
}

static void looks_rarely_if_nobody_waits(void)
{
	w_streak_begin();
	EXPECT(releases(w_streak_counts) == STREAK_LOOK);
	EXPECT(!w_streak_is_over(false));
	EXPECT(releases(w_streak_counts) == STREAK_IDLE);
	EXPECT(!w_streak_is_over(true));
	EXPECT(releases(w_streak_counts) == STREAK_LOOK);
}

static void fast_path_leaves_the_look(void)
{
	w_streak_begin();
	EXPECT(releases(w_streak_counts_first) == STREAK_LOOK);
	EXPECT(w_streak_counts(), "the lock's own release does not look");
}

/* Such a thread may have no record, and its release makes none. */
static void a_thread_that_never_waited_looks_in_vain(void)
{
	struct w_self *const self = w_self_or_null;

	w_self_or_null = NULL;
	EXPECT(!w_streak_is_over(true) && !w_self_or_null);
	w_self_or_null = self;
}

int main(void)
{
	RUN(is_over_after_its_time);
	RUN(begins_when_others_wait);
	RUN(looks_rarely_if_nobody_waits);
	RUN(fast_path_leaves_the_look);
	RUN(a_thread_that_never_waited_looks_in_vain);
	return 0;
}
