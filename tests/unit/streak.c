/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* world/streak.h: when a streak is over, and how often a thread looks. */
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

int main(void)
{
	RUN(is_over_after_its_time);
	RUN(begins_when_others_wait);
	return 0;
}
