/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A trial of two ways to run a lock. The load decides which of them is faster, and the lock
 * does not see the load. So its holders measure both now and then, and keep the faster one.
 *
 *   REST ──▶ BASE ──▶ SETTLE ──▶ WARM ──▶ MEASURE ──▶ REST
 *
 *   REST     the lock runs in the way that it has, for `rest` windows; for few of them if its rate
 *            changes much, since the load has changed then
 *   BASE     one window: its rate in this way
 *   SETTLE   in the other way, until those who wait in the former one are gone, or for a bounded
 *            time
 *   WARM     some windows more, since a queue has to form
 *   MEASURE  one window: the rate in the other way. The lock stays in it if it gains an eighth.
 *            Otherwise it returns, and the next rest is four times as long, up to a limit
 *
 * A rate is counted in samples of the acquisitions that had to wait: to count each one would move
 * a cache line more at each hand-over. A sample comes with the number of acquisitions since the
 * same thread last had to wait, and stands for `mask` + 1 times as many. The mask follows the rate
 * of samples, so that a measured window has TRIAL_MEASURED of them or more, and other times have
 * few.
 *
 * Plain functions: no atomics, and no clock. The caller holds the lock.
 */
#ifndef POUNDLOCK_TRIAL_H
#define POUNDLOCK_TRIAL_H

#include "world.h"

/* Times are in units of 1,024 ns, as wait_clock(). */
#define TRIAL_WINDOW 500u
#define TRIAL_SETTLE 8u     /* most windows of SETTLE */
#define TRIAL_WARM 4u       /* windows of WARM */
#define TRIAL_REST 32u      /* windows of the first rest, and of one after a change */
#define TRIAL_LONGEST 8192u /* windows of the longest rest: 4 s */
#define TRIAL_GAIN 8u       /* a change has to gain 1 / TRIAL_GAIN */
#define TRIAL_CHANGE 4u     /* the factor by which the rate differs under another load */
/* Samples in a window that is measured, and in others. */
#define TRIAL_MEASURED 128u
#define TRIAL_UNMEASURED 16u
#define TRIAL_FIRST_MASK 15u
#define TRIAL_LARGEST_MASK 1023u
#define TRIAL_MOST 65535u /* acquisitions that a sample counts */

enum trial_phase { TRIAL_RESTS, TRIAL_BASE, TRIAL_SETTLES, TRIAL_WARMS, TRIAL_MEASURES };

struct trial {
	uint32_t began;   /* when the phase began */
	uint32_t samples; /* since then */
	uint32_t count;   /* acquisitions that these stand for, without the mask's factor */
	uint32_t mask;    /* the share that is sampled is 1 / (mask + 1) */
	uint32_t rate;    /* of the former way, per 65,536 units of time; 0: unknown */
	uint32_t rest;    /* windows of a rest after a trial without gain */
	uint32_t left;    /* windows of this rest */
	enum trial_phase phase;
};

static inline void trial_init(struct trial *trial)
{
	*trial = (struct trial){.mask = TRIAL_FIRST_MASK, .rest = TRIAL_REST, .left = TRIAL_REST};
}

/* Returns @count samples in @time as a rate. */
static inline uint32_t trial_rate(const struct trial *trial, uint32_t count, uint32_t time)
{
	return (uint32_t)((uint64_t)count * (trial->mask + 1) * 65536 / time);
}

/* Returns the mask with which a window has @samples, or up to four times as many, of @rate. */
static inline uint32_t trial_mask(uint32_t rate, uint32_t samples)
{
	uint64_t expected = (uint64_t)rate * TRIAL_WINDOW >> 16;
	uint32_t mask = 0;

	for (; expected >= 2 * samples && mask < TRIAL_LARGEST_MASK; expected /= 2)
		mask = 2 * mask + 1;
	return mask;
}

static inline void trial_begin(struct trial *trial, uint32_t now, enum trial_phase phase)
{
	trial->began = now;
	trial->samples = 0;
	trial->count = 0;
	trial->phase = phase;
}

/* After a window: begins @phase, in which one has @samples. */
static inline void trial_enter(struct trial *trial, uint32_t now, enum trial_phase phase,
			       uint32_t samples)
{
	trial->mask = trial_mask(trial_rate(trial, trial->samples, now - trial->began), samples);
	trial_begin(trial, now, phase);
}

/* Rests, in the way whose rate is @rate, for `rest` windows. */
static inline void trial_rest(struct trial *trial, uint32_t now, uint32_t rate)
{
	trial->rate = rate;
	trial->left = trial->rest;
	trial_enter(trial, now, TRIAL_RESTS, TRIAL_UNMEASURED);
}

/* Ends a trial, if there is one, without a result: the lock runs in the first way. */
static inline void trial_cancel(struct trial *trial, uint32_t now)
{
	if (trial->phase == TRIAL_RESTS)
		return;
	trial->rate = 0;
	trial->left = trial->rest;
	trial_begin(trial, now, TRIAL_RESTS);
}

/* While resting, at the end of @windows at @rate. */
static inline void trial_go_on(struct trial *trial, uint32_t now, uint32_t windows, uint32_t rate)
{
	if (trial->rate &&
	    (rate / TRIAL_CHANGE > trial->rate || rate < trial->rate / TRIAL_CHANGE)) {
		trial->rest = TRIAL_REST;
		trial_rest(trial, now, rate);
	} else if (windows < trial->left) {
		trial->left -= windows;
		trial_enter(trial, now, TRIAL_RESTS, TRIAL_UNMEASURED);
	} else {
		trial_enter(trial, now, TRIAL_BASE, TRIAL_MEASURED);
	}
}

/* Ends the trial of the other way, with @rate. Returns whether it gains enough. */
static inline bool trial_end(struct trial *trial, uint32_t now, uint32_t rate)
{
	const bool gains = rate > trial->rate + trial->rate / TRIAL_GAIN;

	if (gains)
		trial->rest = TRIAL_REST;
	else if (trial->rest < TRIAL_LONGEST)
		trial->rest *= 4;
	trial_rest(trial, now, gains ? rate : trial->rate);
	return gains;
}

/*
 * Called at each sample, which stands for @count acquisitions. @way: the way in which the lock
 * runs; @settled: whether nobody waits in the other one. Returns the way in which it is to run.
 */
static inline bool trial_step(struct trial *trial, uint32_t now, bool way, bool settled,
			      uint32_t count)
{
	const uint32_t time = now - trial->began, windows = time / TRIAL_WINDOW;
	uint32_t rate;

	trial->samples++;
	trial->count += count < TRIAL_MOST ? count : TRIAL_MOST;
	if (!windows)
		return way;
	rate = trial_rate(trial, trial->count, time);
	switch (trial->phase) {
	case TRIAL_RESTS:
		trial_go_on(trial, now, windows, rate);
		break;
	case TRIAL_BASE:
		trial->rate = rate;
		trial_enter(trial, now, TRIAL_SETTLES, TRIAL_UNMEASURED);
		return !way;
	case TRIAL_SETTLES:
		if (settled || windows >= TRIAL_SETTLE)
			trial_enter(trial, now, TRIAL_WARMS, TRIAL_UNMEASURED);
		break;
	case TRIAL_WARMS:
		if (windows >= TRIAL_WARM)
			trial_enter(trial, now, TRIAL_MEASURES, TRIAL_MEASURED);
		break;
	case TRIAL_MEASURES:
		return trial_end(trial, now, rate) ? way : !way;
	}
	return way;
}

#endif
