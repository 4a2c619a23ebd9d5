/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * part/trial.h with simulated rates: the fastest way is kept and slower ones are left, how much of
 * the time a trial costs, and how many samples are taken.
 */
#include "part/trial.h"
#include "unit.h"

/* A lock that runs in one of three ways. */
struct run {
	struct trial trial;
	double now;                 /* in units of 1,024 ns */
	double spent[TRIAL_WAYS];   /* in each way */
	uint32_t turns[TRIAL_WAYS]; /* acquisitions for each that waits */
	uint64_t acquisitions, waits, samples;
	uint32_t left; /* acquisitions of this turn */
	bool unused;   /* whether nobody waits in the ways above 0 */
	bool settles;  /* whether a trial finds nobody waiting in the former way */
};

static struct run start(void)
{
	struct run run = {.turns = {1, 1, 1}, .settles = true};

	trial_init(&run.trial, 0);
	return run;
}

/* Whether the lock runs in @way, maybe except for a trial. */
static bool keeps(const struct run *run, uint32_t way)
{
	return run->trial.way == way || run->trial.phase != TRIAL_RESTS;
}

/* A thread waits after a turn of @count acquisitions. */
static void wait_once(struct run *run, uint32_t count)
{
	const uint32_t mask = run->trial.mask, drawn = (uint32_t)(run->waits++ * 7) & mask;

	if (drawn >= count)
		return;
	run->samples++;
	(void)trial_step(&run->trial, (uint32_t)(uint64_t)run->now, !run->unused, run->settles,
			 mask, count);
}

/* Lets the lock run for @time, with @rates[way] acquisitions per unit of time. */
static void go_on(struct run *run, double time, const double rates[TRIAL_WAYS])
{
	const double end = run->now + time;

	while (run->now < end) {
		const uint32_t way = run->trial.way;
		const double step = 1 / rates[way];

		run->now += step;
		run->spent[way] += step;
		run->acquisitions++;
		if (++run->left < run->turns[way])
			continue;
		wait_once(run, run->left);
		run->left = 0;
	}
}

/* A second is 976,562 units. */
#define SECOND 976562.

static void keeps_the_faster(void)
{
	static const double slower[] = {5, .5, 2}, alike[] = {1, 1.04, 1.04};
	struct run run = start();

	go_on(&run, SECOND, slower);
	EXPECT(keeps(&run, 0), "the slower way is kept");
	EXPECT(run.spent[1] > 0 && run.spent[2] > 0, "a way is never tried");
	EXPECT(run.spent[1] + run.spent[2] < .1 * SECOND, "trials of slower ways take too long");

	for (uint32_t fastest = 1; fastest < TRIAL_WAYS; fastest++) {
		double rates[TRIAL_WAYS] = {.5, .5, .5};

		rates[fastest] = 1.5;
		run = start();
		go_on(&run, SECOND, rates);
		EXPECT(keeps(&run, fastest), "the fastest way is not kept");
		EXPECT(run.spent[fastest] > .85 * SECOND, "the fastest way is found late");
	}

	run = start();
	go_on(&run, SECOND, alike);
	EXPECT(run.spent[0] > .9 * SECOND, "a gain of a 25th is worth a change");
}

/* Acquisitions that do not wait count as much as those that do. */
static void counts_all(void)
{
	static const double slower[] = {5, 2, 2};
	struct run run = start();

	run.turns[0] = 20;
	go_on(&run, SECOND, slower);
	EXPECT(run.spent[1] > 0, "the other way is never tried");
	EXPECT(run.spent[0] > .9 * SECOND, "acquisitions that did not wait are forgotten");
}

/* Turns of a fifth of a millisecond are measured as well as short ones. */
static void measures_long_turns(void)
{
	static const double faster[] = {4, 5, 2}, slower[] = {5, 4, 2};
	struct run run = start();

	run.turns[1] = 1000;
	go_on(&run, SECOND, faster);
	EXPECT(run.spent[1] > .7 * SECOND, "long turns that are faster are not kept");
	run = start();
	run.turns[1] = 1000;
	go_on(&run, SECOND, slower);
	EXPECT(run.spent[0] > .7 * SECOND, "long turns that are slower are kept");
}

/* A trial that is cancelled leaves the lock in way 0, and later ones find the fastest. */
static void cancels(void)
{
	static const double faster[] = {.5, .5, 1.5};
	struct run run = start();

	while (run.trial.phase != TRIAL_MEASURES)
		go_on(&run, 1, faster);
	trial_cancel(&run.trial, (uint32_t)(uint64_t)run.now);
	EXPECT(run.trial.phase == TRIAL_RESTS && run.trial.began == (uint32_t)(uint64_t)run.now);
	EXPECT(run.trial.way == 0);
	go_on(&run, .1 * SECOND, faster);
	EXPECT(keeps(&run, 2), "the fastest way is not found any more");
}

/* A way that is refused is left, and tried again under another load. */
static void refuses(void)
{
	static const double faster[] = {.5, 1.5, .6}, then[] = {5, 15, 6};
	struct run run = start();

	go_on(&run, .05 * SECOND, faster);
	EXPECT(keeps(&run, 1), "the fastest way is not kept");
	while (run.trial.way != 1 || run.trial.phase != TRIAL_RESTS)
		go_on(&run, 1, faster);
	trial_refuse(&run.trial, (uint32_t)(uint64_t)run.now);
	EXPECT(run.trial.way == 0);
	run.spent[1] = 0;
	go_on(&run, .2 * SECOND, faster);
	EXPECT(keeps(&run, 2), "no other way is tried");
	EXPECT(run.spent[1] == 0, "a way is tried soon after it was refused");
	go_on(&run, .2 * SECOND, then);
	EXPECT(keeps(&run, 1), "a way that was refused is never tried again");

	run = start();
	while (run.trial.way != 1)
		go_on(&run, 1, faster);
	trial_refuse(&run.trial, (uint32_t)(uint64_t)run.now);
	EXPECT(run.trial.way == 0 && run.trial.phase == TRIAL_RESTS);
}

/* A way that is refused while its own rate is measured is left, whatever trials there were. */
static void refuses_its_own_way(void)
{
	static const double faster[] = {.5, 1.5, .6};
	struct run run = start();

	while (run.trial.way != 1 || run.trial.former != 1 || run.trial.phase != TRIAL_BASE)
		go_on(&run, 1, faster);
	trial_refuse(&run.trial, (uint32_t)(uint64_t)run.now);
	EXPECT(run.trial.way == 0 && run.trial.phase == TRIAL_RESTS, "way %u", run.trial.way);
}

/* A load that changes is noticed: at once by its rate, or else at the end of the longest rest. */
static void follows_the_load(void)
{
	static const double first[] = {5, .5, .5}, then[] = {.5, .5, 2.5}, alike[] = {5, 5, 15};
	struct run run = start();

	go_on(&run, 20 * SECOND, first);
	EXPECT(run.spent[0] > .98 * 20 * SECOND, "trials of slower ways do not become rarer");
	go_on(&run, 10 * SECOND, alike);
	EXPECT(keeps(&run, 2), "a change of another way's rate");
	go_on(&run, 10 * SECOND, first);
	go_on(&run, .1 * SECOND, then);
	EXPECT(keeps(&run, 2), "a change of the load is not noticed");
	go_on(&run, .1 * SECOND, first);
	EXPECT(keeps(&run, 0), "the load's return is not noticed");
}

/* A way is left soon after the last thread waited in it. */
static void leaves_when_unused(void)
{
	static const double rates[] = {.5, .5, 1.5};
	struct run run = start();

	go_on(&run, .1 * SECOND, rates);
	EXPECT(keeps(&run, 2), "the fastest way is not kept");
	while (run.trial.way != 2)
		go_on(&run, 1, rates);
	run.unused = true;
	go_on(&run, 2 * TRIAL_SETTLE * TRIAL_WINDOW, rates);
	EXPECT(run.trial.way == 0, "an unused way is kept");
}

/* Hardly any thread waits: there is no trial. */
static void needs_waiters(void)
{
	static const double rates[] = {1, 5, 5};
	struct run run = start();

	run.turns[0] = 5000;
	go_on(&run, SECOND, rates);
	EXPECT(run.spent[0] > .99 * SECOND, "a trial without threads that wait");
}

/* A sample that was drawn by a former mask stands for as many as that says, or for its own. */
static void weighs_samples(void)
{
	struct trial trial;

	trial_init(&trial, 0);
	for (uint32_t i = 0; i < 4; i++)
		(void)trial_step(&trial, i, false, true, 15, 3);
	EXPECT(trial.samples == 4 && trial.count == 64);
	(void)trial_step(&trial, 4, false, true, 0, 5);
	EXPECT(trial.samples == 5 && trial.count == 69);
}

/* A phase that begins later counts from then on, also while the clock runs round. */
static void waits_for_the_phase(void)
{
	struct trial trial;

	trial_init(&trial, 0);
	trial_begin(&trial, UINT32_MAX, TRIAL_RESTS);
	(void)trial_step(&trial, UINT32_MAX - 10, true, true, 15, 1);
	EXPECT(trial.samples == 0, "a sample before its phase");
	(void)trial_step(&trial, UINT32_MAX, true, true, 15, 1);
	(void)trial_step(&trial, 20, true, true, 15, 1);
	EXPECT(trial.samples == 2, "samples of the phase are missing");
	trial_begin(&trial, 0, TRIAL_RESTS);
	(void)trial_step(&trial, UINT32_MAX / 4 * 3, true, true, 15, 1);
	EXPECT(trial.phase == TRIAL_BASE, "a long rest never ends");
}

/* Settling ends, even if somebody always waits in the former way. */
static void settles(void)
{
	static const double rates[] = {.5, .5, 1.5};
	struct run run = start();

	run.settles = false;
	go_on(&run, SECOND, rates);
	EXPECT(keeps(&run, 2), "the trial never ends");
}

/* A lock without contention or work, for longer than a clock of 32 bits counts. */
static void idles(void)
{
	static const double rates[] = {1e-6, 1e-6, 1e-6};
	struct run run = start();

	go_on(&run, 2e10, rates);
	EXPECT(run.spent[0] > .5 * 2e10, "an idle lock is left in another way");
}

static void samples(void)
{
	for (double rate = .1; rate < 100; rate *= 3) {
		const double rates[] = {rate, rate, rate};
		struct run run = start();

		go_on(&run, SECOND, rates);
		EXPECT(run.samples < 100 * SECOND / TRIAL_WINDOW ||
			       run.samples < run.acquisitions / 2,
		       "most acquisitions are sampled");
	}
	for (uint32_t rate = 1; rate < 1u << 30; rate *= 2) {
		const uint32_t mask = trial_mask(rate, TRIAL_MEASURED);
		const double expected = (double)rate * TRIAL_WINDOW / 65536 / (mask + 1);

		EXPECT(!(mask & (mask + 1)), "a mask is not one less than a power of two");
		EXPECT(!mask || expected >= TRIAL_MEASURED, "too few samples in a window");
		EXPECT(mask == TRIAL_LARGEST_MASK || expected < 2 * TRIAL_MEASURED,
		       "too many samples in a window");
	}
}

int main(void)
{
	RUN(keeps_the_faster);
	RUN(counts_all);
	RUN(measures_long_turns);
	RUN(cancels);
	RUN(refuses);
	RUN(refuses_its_own_way);
	RUN(follows_the_load);
	RUN(leaves_when_unused);
	RUN(needs_waiters);
	RUN(weighs_samples);
	RUN(waits_for_the_phase);
	RUN(settles);
	RUN(idles);
	RUN(samples);
	return 0;
}
