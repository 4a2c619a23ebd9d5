/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * world/streak.h: when a streak is over, how long a newcomer races, and how rarely a thread reads
 * while it spins. Of world/user, which release looks, also on a fast path that leaves the look to
 * the lock's own release; and when a thread yields.
 *
 * Linked with --wrap=w_sched_yield.
 */
#include "unit.h"
#include "world.h"

#define LOOKS (STREAK_NANOSECONDS / 1000)
#define LONG STREAK_LONG_NANOSECONDS
/* A pace that no machine is too slow for. */
#define HOUR UINT64_C(3600000000000)

static uint32_t yields;

void __wrap_w_sched_yield(void);
void __wrap_w_sched_yield(void)
{
	yields++;
}

/* The number of looks, 1 us apart and from @now on, until the streak is over; at most LOOKS + 2. */
static uint32_t looks_until_over(uint64_t *since, uint64_t now)
{
	uint32_t looks = 1;

	while (looks < LOOKS + 2 && !streak_is_over(since, now, 0, true, false)) {
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

static void is_longer_where_turns_are(void)
{
	uint64_t since = 1;

	EXPECT(!streak_is_over(&since, STREAK_LONG_TURN * STREAK_NANOSECONDS, 0, true, true));
	EXPECT(streak_is_over(&since, STREAK_LONG_TURN * STREAK_NANOSECONDS + 1, 0, true, true));
}

static void begins_when_others_wait(void)
{
	uint64_t since = 0;

	EXPECT(!streak_is_over(&since, 1, 0, false, false));
	EXPECT(looks_until_over(&since, 2 * STREAK_NANOSECONDS) == LOOKS + 1);
	EXPECT(!streak_is_over(&since, UINT64_MAX, 0, false, false), "nobody waits");
}

static void races_for_its_pace(void)
{
	const uint64_t away = STREAK_AWAY_NANOSECONDS;

	EXPECT(!streak_race(streak_pace(0, 10 * away, 0)), "no release");
	EXPECT(streak_race(streak_pace(away, 10 * away, 0)) == away, "not either");
	EXPECT(!streak_race(streak_pace(away, 10 * away - 1, 10)), "soon back");
	EXPECT(streak_race(streak_pace(0, 10 * away, 10)) == away);
	EXPECT(streak_race(streak_pace(away, 6 * away, 3)) == 2 * away);
	EXPECT(streak_race(W_SPIN_NANOSECONDS - 1) == W_SPIN_NANOSECONDS - 1);
	EXPECT(streak_race(2 * W_SPIN_NANOSECONDS) == W_SPIN_NANOSECONDS);
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
	EXPECT(!w_streak_is_over(false, false));
	EXPECT(releases(w_streak_counts) == STREAK_IDLE);
	EXPECT(!w_streak_is_over(true, false));
	EXPECT(releases(w_streak_counts) == STREAK_LOOK);
}

static void fast_path_leaves_the_look(void)
{
	w_streak_begin();
	EXPECT(releases(w_streak_counts_first) == STREAK_LOOK);
	EXPECT(w_streak_counts(), "the lock's own release does not look");
}

/* Lets the thread release @count times at @pace. */
static void pass(uint32_t count, uint64_t pace)
{
	for (uint32_t i = 0; i < count; i++)
		(void)w_streak_counts();
	if (atomic_load(&w_self()->pace_since))
		atomic_fetch_sub(&w_self()->pace_since, count * pace);
}

/* The same, so slowly that the thread is to race for the longest time. */
static void pass_slowly(uint32_t count)
{
	pass(count, W_SPIN_NANOSECONDS);
}

/* Begins at a wait that measures the pace. The thread's pace was @before. */
static void begin_measuring(uint64_t before)
{
	atomic_store(&w_self()->pace, before);
	atomic_store(&w_self()->waits, 0);
	w_streak_begin();
}

static uint64_t pace(void)
{
	return atomic_load(&w_self()->pace);
}

/* Whether the thread is to race for the longest time. */
static bool races(void)
{
	const uint64_t before = w_now(), end = w_race_end();

	return end >= before + W_SPIN_NANOSECONDS && end <= w_now() + W_SPIN_NANOSECONDS;
}

static void measures_its_pace_until_it_waits(void)
{
	begin_measuring(0);
	w_streak_end(false);
	EXPECT(!w_race_end(), "no release");
	begin_measuring(0);
	pass_slowly(3);
	w_streak_end(false);
	EXPECT(races());
	w_streak_end(false);
	EXPECT(races(), "it is measured once");
	begin_measuring(HOUR);
	pass(3, 0);
	w_streak_end(false);
	EXPECT(pace() < HOUR, "what it was does not matter");
	atomic_store(&w_self()->pace, 0);
	w_streak_begin();
	pass_slowly(3);
	w_streak_end(false);
	EXPECT(!w_race_end(), "it is measured at some waits only");
}

static void measures_its_pace_until_it_looks(void)
{
	begin_measuring(0);
	pass_slowly(STREAK_LOOK);
	EXPECT(!w_streak_is_over(false, false));
	EXPECT(races());
}

/* Also if nobody waits at a look: others may soon, and the next look would be too late for them. */
static void looks_often_at_a_long_pace(void)
{
	for (int others_wait = 0; others_wait < 2; others_wait++) {
		begin_measuring(LONG);
		EXPECT(releases(w_streak_counts) == STREAK_LONG_LOOK);
		atomic_fetch_sub(&w_self()->pace_since, STREAK_LONG_LOOK * LONG);
		EXPECT(!w_streak_is_over(others_wait, false));
		EXPECT(releases(w_streak_counts) == STREAK_LONG_LOOK);
	}
}

static void is_never_over_at_a_long_pace(void)
{
	atomic_store(&w_self()->pace, LONG);
	w_streak_begin();
	atomic_store(&w_self()->streak_since, w_now() - 2 * STREAK_NANOSECONDS);
	EXPECT(!w_streak_is_over(true, false));
	atomic_store(&w_self()->pace_since, 0);
	atomic_store(&w_self()->pace, LONG - 1);
	atomic_store(&w_self()->streak_since, w_now() - 2 * STREAK_NANOSECONDS);
	EXPECT(w_streak_is_over(true, false), "the pace is short again");
}

/* The thread may wait no more. */
static void measures_a_long_pace_from_look_to_look(void)
{
	begin_measuring(HOUR);
	pass(STREAK_LONG_LOOK, HOUR);
	EXPECT(!w_streak_is_over(false, false) && pace() >= HOUR);
	pass(STREAK_LONG_LOOK, 0);
	EXPECT(!w_streak_is_over(false, false) && pace() < HOUR);
}

static void yields_at_a_long_pace(void)
{
	yields = 0;
	begin_measuring(LONG - 1);
	w_streak_yield();
	EXPECT(!yields);
	begin_measuring(LONG);
	atomic_store(&w_self()->pace_since, 0);
	w_streak_yield();
	EXPECT(yields == 1);
	EXPECT(atomic_load(&w_self()->pace_since), "the time of others is none of its pace");
}

/* In a sandbox. All else is as at a shorter pace: a streak has an end. */
static void does_not_yield_where_that_is_forbidden(void)
{
	begin_measuring(LONG);
	atomic_store(&w_streaks_yield, false);
	yields = 0;
	w_streak_yield();
	EXPECT(!yields);
	atomic_store(&w_self()->pace_since, 0);
	atomic_store(&w_self()->streak_since, w_now() - 2 * STREAK_NANOSECONDS);
	EXPECT(w_streak_is_over(true, false));
	EXPECT(releases(w_streak_counts) == STREAK_LOOK);
	EXPECT(races());
	atomic_store(&w_streaks_yield, true);
	w_streak_yield();
	EXPECT(yields == 1);
}

static void measures_its_pace_now_and_then(void)
{
	uint32_t measured = 0;

	for (uint32_t i = 0; i < 3 * STREAK_MEASURED; i++) {
		w_streak_begin();
		measured += atomic_load(&w_self()->pace_since) != 0;
	}
	EXPECT(measured == 3, "%u", measured);
}

static void reads_rarely_if_soon_back(void)
{
	const uint64_t soon = STREAK_SOON_NANOSECONDS;

	EXPECT(streak_first_pauses(W_POLITE, soon - 1, 400) == 400 / STREAK_SOON_PART + 1);
	EXPECT(streak_first_pauses(W_POLITE, 1, 1) == 1, "a short spin");
	EXPECT(streak_first_pauses(W_POLITE, soon, 400) == 1, "away for longer");
	EXPECT(streak_first_pauses(W_POLITE, 0, 400) == 1, "its pace is unknown");
	EXPECT(streak_first_pauses(W_BRIEF, 1, 400) == 1, "others do not write the word");
}

static void pauses_once_in_a_rare_spin(void)
{
	EXPECT(streak_first_pauses(W_RARE, HOUR, 400) == 400);
	EXPECT(streak_first_pauses(W_RARE, 0, 400) == 400, "its pace is unknown");
}

static void knows_while_it_waits_whether_turns_are_long(void)
{
	w_streak_end(true);
	EXPECT(w_turns_are_long());
	w_turns_shorten();
	EXPECT(!w_turns_are_long());
	w_streak_end(true);
	w_streak_begin();
	EXPECT(!w_turns_are_long(), "the wait is over");
}

static void spins_by_its_pace(void)
{
	struct w_spin spin;

	w_spinners_most = 1; /* on one CPU, waiters do not spin */
	atomic_store(&w_self()->pace, 1);
	spin = w_spin_begin(W_POLITE);
	EXPECT(spin.counted && spin.next == spin.left / STREAK_SOON_PART + 1);
	w_spin_end(&spin, false);
	atomic_store(&w_self()->pace, STREAK_SOON_NANOSECONDS);
	spin = w_spin_begin(W_POLITE);
	EXPECT(spin.counted && spin.next == 1);
	w_spin_end(&spin, false);
}

/* Such a thread may have no record, and its release makes none. */
static void a_thread_that_never_waited_looks_in_vain(void)
{
	struct w_self *const self = w_self_or_null;

	w_self_or_null = NULL;
	EXPECT(!w_streak_is_over(true, false) && !w_self_or_null);
	yields = 0;
	w_streak_yield();
	EXPECT(!yields && !w_self_or_null);
	w_self_or_null = self;
}

int main(void)
{
	RUN(is_over_after_its_time);
	RUN(is_longer_where_turns_are);
	RUN(begins_when_others_wait);
	RUN(races_for_its_pace);
	RUN(looks_rarely_if_nobody_waits);
	RUN(fast_path_leaves_the_look);
	RUN(measures_its_pace_until_it_waits);
	RUN(measures_its_pace_until_it_looks);
	RUN(looks_often_at_a_long_pace);
	RUN(is_never_over_at_a_long_pace);
	RUN(measures_a_long_pace_from_look_to_look);
	RUN(yields_at_a_long_pace);
	RUN(does_not_yield_where_that_is_forbidden);
	RUN(measures_its_pace_now_and_then);
	RUN(reads_rarely_if_soon_back);
	RUN(pauses_once_in_a_rare_spin);
	RUN(knows_while_it_waits_whether_turns_are_long);
	RUN(spins_by_its_pace);
	RUN(a_thread_that_never_waited_looks_in_vain);
	return 0;
}
