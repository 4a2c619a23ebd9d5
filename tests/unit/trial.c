/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * part/trial.h with simulated rates: the faster way is kept and the slower one is left, how much of
 * the time a trial costs, and how many samples are taken.
 */
#include "part/trial.h"
#include "unit.h"

/* A lock that runs in one of two ways. */
struct run {
	struct trial trial;
	double now; /* in units of 1,024 ns */
	bool way;
	double spent[2]; /* in each way */
	uint64_t acquisitions, waits, samples;
	uint32_t run; /* acquisitions for each that waits, in the first way; in the other all do */
	bool unused;  /* whether nobody waits in the second way */
	bool settles; /* whether a trial finds nobody waiting in the former way */
};

static struct run start(void)
{
	struct run run = {.run = 1, .settles = true};

	trial_init(&run.trial, 0);
	return run;
}

/* Lets the lock run for @time, with @rates[way] acquisitions per unit of time. */
static void go_on(struct run *run, double time, const double rates[2])
{
	const double end = run->now + time;

	while (run->now < end) {
		const double step = 1 / rates[run->way];

		run->now += step;
		run->spent[run->way] += step;
		if (run->acquisitions++ % (run->way ? 1 : run->run) ||
		    run->waits++ & run->trial.mask)
			continue;
		run->samples++;
		run->way = trial_step(&run->trial, (uint32_t)(uint64_t)run->now, run->way,
				      !run->unused, run->settles, run->trial.mask,
				      run->way ? 1 : run->run);
	}
}

/* A second is 976,562 units. */
#define SECOND 976562.

static void keeps_the_faster(void)
{
	static const double slower[2] = {5, .5}, faster[2] = {.5, 1.5}, alike[2] = {1, 1.1};
	struct run run = start();

	go_on(&run, SECOND, slower);
	EXPECT(!run.way || run.trial.phase != TRIAL_RESTS, "the slower way is kept");
	EXPECT(run.spent[1] > 0, "the other way is never tried");
	EXPECT(run.spent[1] < .05 * SECOND, "trials of a slower way take too long");

	run = start();
	go_on(&run, SECOND, faster);
	EXPECT(run.way || run.trial.phase != TRIAL_RESTS, "the faster way is not kept");
	EXPECT(run.spent[0] < .1 * SECOND, "the faster way is found late");

	run = start();
	go_on(&run, SECOND, alike);
	EXPECT(run.spent[1] < .05 * SECOND, "a gain of a tenth is worth a change");
}

/* Acquisitions that do not wait count as much as those that do. */
static void counts_all(void)
{
	static const double slower[2] = {5, 2};
	struct run run = start();

	run.run = 20;
	go_on(&run, SECOND, slower);
	EXPECT(run.spent[1] > 0, "the other way is never tried");
	EXPECT(run.spent[1] < .05 * SECOND, "acquisitions that did not wait are forgotten");
}

/* A trial that is cancelled leaves the lock in the first way, and later ones find the faster. */
static void cancels(void)
{
	static const double faster[2] = {.5, 1.5};
	struct run run = start();

	while (run.trial.phase != TRIAL_MEASURES)
		go_on(&run, 1, faster);
	trial_cancel(&run.trial, (uint32_t)(uint64_t)run.now);
	EXPECT(run.trial.phase == TRIAL_RESTS && run.trial.began == (uint32_t)(uint64_t)run.now);
	run.way = false;
	go_on(&run, .1 * SECOND, faster);
	EXPECT(run.way || run.trial.phase != TRIAL_RESTS, "the faster way is not found any more");
}

/* A load that changes is noticed: at once by its rate, or else at the end of the longest rest. */
static void follows_the_load(void)
{
	static const double first[2] = {5, .5}, then[2] = {.5, 2.5}, alike[2] = {5, 15};
	struct run run = start();

	go_on(&run, 10 * SECOND, first);
	EXPECT(run.spent[1] < .01 * 10 * SECOND, "trials of a slower way do not become rarer");
	go_on(&run, 5 * SECOND, alike);
	EXPECT(run.way || run.trial.phase != TRIAL_RESTS, "a change of the other way's rate");
	go_on(&run, 5 * SECOND, first);
	go_on(&run, .1 * SECOND, then);
	EXPECT(run.way || run.trial.phase != TRIAL_RESTS, "a change of the load is not noticed");
	go_on(&run, .1 * SECOND, first);
	EXPECT(!run.way || run.trial.phase != TRIAL_RESTS, "the load's return is not noticed");
}

/* The second way is left soon after the last thread waited in it. */
static void leaves_when_unused(void)
{
	static const double rates[2] = {.5, 1.5};
	struct run run = start();

	go_on(&run, .1 * SECOND, rates);
	EXPECT(run.way, "the faster way is not kept");
	run.unused = true;
	go_on(&run, (TRIAL_SETTLE + 2) * TRIAL_WINDOW, rates);
	EXPECT(!run.way, "an unused way is kept");
}

/* Hardly any thread waits: there is no trial. */
static void needs_waiters(void)
{
	static const double rates[2] = {1, 5};
	struct run run = start();

	run.run = 1000;
	go_on(&run, SECOND, rates);
	EXPECT(run.spent[1] < .01 * SECOND, "a trial without threads that wait");
}

/* A sample that was drawn by a former mask stands for as many as that says. */
static void weighs_samples(void)
{
	struct trial trial;

	trial_init(&trial, 0);
	for (uint32_t i = 0; i < 4; i++)
		(void)trial_step(&trial, i, false, true, true, 15, 3);
	EXPECT(trial.samples == 4 && trial.waits == 64 && trial.count == 192);
	(void)trial_step(&trial, 4, false, true, true, 0, 5);
	EXPECT(trial.samples == 5 && trial.waits == 65 && trial.count == 197);
}

/* Settling ends, even if somebody always waits in the former way. */
static void settles(void)
{
	static const double rates[2] = {.5, 1.5};
	struct run run = start();

	run.settles = false;
	go_on(&run, SECOND, rates);
	EXPECT(run.way || run.trial.phase != TRIAL_RESTS, "the trial never ends");
}

/* A lock without contention or work, for longer than a clock of 32 bits counts. */
static void idles(void)
{
	static const double rates[2] = {1e-6, 1e-6};
	struct run run = start();

	go_on(&run, 2e10, rates);
	EXPECT(run.spent[1] < .5 * 2e10, "an idle lock is left in the other way");
}

static void samples(void)
{
	for (double rate = .1; rate < 100; rate *= 3) {
		const double rates[2] = {rate, rate};
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
	RUN(cancels);
	RUN(follows_the_load);
	RUN(leaves_when_unused);
	RUN(needs_waiters);
	RUN(weighs_samples);
	RUN(settles);
	RUN(idles);
	RUN(samples);
	return 0;
}
