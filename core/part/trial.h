/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A trial of two ways to run a lock. The load decides which of them is faster, and the lock
 * does not see the load. So its holders measure both now and then, and keep the faster one.
 *
 *   REST ──▶ BASE ──▶ SETTLE ──▶ WARM ──▶ MEASURE ──▶ REST
 *
 *   REST     the lock runs in the way that it has, for `rest` windows; for few of them if its rate
 *            changes much, since the load has changed then
 *   BASE     its rate in this way, by TRIAL_LEAST samples or more
 *   SETTLE   in the other way, until those who wait in the former one are gone, or for a bounded
 *            time
 *   WARM     some windows more, since a queue has to form; a much slower way is left at once
 *   MEASURE  the rate in the other way, by as many samples. The lock runs in the second way from
 *            then on if that gains an eighth. If the way does not change, the next rest is longer,
 *            up to a limit
 *
 * A rate is counted in samples of the acquisitions that had to wait: to count each one would move
 * a cache line more at each hand-over. A sample comes with the number of acquisitions since the
 * same thread last had to wait, and stands for `mask` + 1 times as many, by the mask at which it
 * was drawn. The mask follows the rate of samples, so that a window has some, and not many. If the
 * second way is not used for a while, or hardly any thread waits, there is nothing to gain: the
 * lock runs, or stays, in the first way.
 *
 * Plain functions: no atomics, and no clock. The caller holds the lock.
 */
#ifndef POUNDLOCK_TRIAL_H
#define POUNDLOCK_TRIAL_H

#include "world.h"

/* Times are in units of 1,024 ns, as wait_clock(). */
#define TRIAL_WINDOW 250u
#define TRIAL_SETTLE 8u      /* most windows of SETTLE */
#define TRIAL_WARM 4u        /* windows of WARM */
#define TRIAL_REST 4u        /* windows of the first rest; times TRIAL_LONGER under another load */
#define TRIAL_LOOK 4u        /* windows after which a rest looks at its rate */
#define TRIAL_KEPT 256u      /* windows of a rest in a way that has won */
#define TRIAL_LONGEST 16384u /* windows of the longest rest: 4 s */
#define TRIAL_LONGER 8u      /* the factor by which a rest is longer than the one before */
#define TRIAL_GAIN 8u        /* the second way has to gain 1 / TRIAL_GAIN */
#define TRIAL_CHANGE 4u      /* the factor by which the rate differs under another load */
#define TRIAL_LEAST 64u      /* samples of BASE and MEASURE */
#define TRIAL_LATEST 16u     /* most windows in which these have to come */
/*
 * Samples in a window that is measured, in one of a rest, and in others. A sample costs a transfer
 * of the line with the trial, and most of the time is rest.
 */
#define TRIAL_MEASURED 128u
#define TRIAL_RESTING 4u
#define TRIAL_UNMEASURED 16u
#define TRIAL_FIRST_MASK 15u
#define TRIAL_LARGEST_MASK 1023u
#define TRIAL_MOST 65535u /* acquisitions that a sample counts */

enum trial_phase { TRIAL_RESTS, TRIAL_BASE, TRIAL_SETTLES, TRIAL_WARMS, TRIAL_MEASURES };

struct trial {
	uint32_t began;   /* when the phase began */
	uint32_t samples; /* since then */
	uint64_t waits;   /* acquisitions that waited, for which the samples stand */
	uint64_t count;   /* all acquisitions, for which the samples stand */
	uint32_t mask;    /* the share that is sampled is 1 / (mask + 1) */
	uint32_t used;    /* when the lock last ran in the first way, or used the second */
	uint32_t rate;    /* of the former way, per 65,536 units of time; 0: unknown */
	uint32_t rest;    /* windows of a rest after a trial without a change */
	uint32_t left;    /* windows of this rest */
	enum trial_phase phase;
};

static inline void trial_init(struct trial *trial, uint32_t now)
{
	*trial = (struct trial){.began = now,
				.used = now,
				.mask = TRIAL_FIRST_MASK,
				.rest = TRIAL_REST,
				.left = TRIAL_REST};
}

/* Returns @count in @time as a rate, per 65,536 units. */
static inline uint32_t trial_rate(uint64_t count, uint32_t time)
{
	return (uint32_t)(count * 65536 / time);
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
	trial->waits = 0;
	trial->count = 0;
	trial->phase = phase;
}

/* After a window or more: begins @phase, in which one has @samples. */
static inline void trial_enter(struct trial *trial, uint32_t now, enum trial_phase phase,
			       uint32_t samples)
{
	trial->mask = trial_mask(trial_rate(trial->waits, now - trial->began), samples);
	trial_begin(trial, now, phase);
}

/* Rests, in the way whose rate is @rate, for `rest` windows. */
static inline void trial_rest(struct trial *trial, uint32_t now, uint32_t rate)
{
	trial->rate = rate;
	trial->left = trial->rest;
	trial_enter(trial, now, TRIAL_RESTS, TRIAL_RESTING);
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
		trial->rest = TRIAL_REST * TRIAL_LONGER;
		trial_rest(trial, now, rate);
	} else if (windows < trial->left) {
		trial->left -= windows;
		trial_enter(trial, now, TRIAL_RESTS, TRIAL_RESTING);
	} else {
		trial_enter(trial, now, TRIAL_BASE, TRIAL_MEASURED);
	}
}

/* Whether the second way, at rate @second, gains enough over the first one. */
static inline bool trial_gains(uint32_t first, uint32_t second)
{
	return second > first && second - first > first / TRIAL_GAIN;
}

/* Ends the trial of the way other than @former, with @rate. Returns the way to run in from now. */
static inline bool trial_end(struct trial *trial, uint32_t now, bool former, uint32_t rate)
{
	const uint32_t first = former ? rate : trial->rate, second = former ? trial->rate : rate;
	const bool way = trial_gains(first, second), keeps = way != former;

	if (keeps)
		trial->rest = TRIAL_KEPT;
	else if (trial->rest < TRIAL_LONGEST)
		trial->rest *= TRIAL_LONGER;
	trial_rest(trial, now, keeps ? rate : trial->rate);
	return way;
}

/* At a sample, trial_window() or more after the phase began. Returns the way, as trial_step(). */
static inline bool trial_advance(struct trial *trial, uint32_t now, bool way, bool settled)
{
	const uint32_t time = now - trial->began, windows = time / TRIAL_WINDOW,
		       rate = trial_rate(trial->count, time);

	switch (trial->phase) {
	case TRIAL_RESTS:
		trial_go_on(trial, now, windows, rate);
		break;
	case TRIAL_BASE:
		if (trial->samples < TRIAL_LEAST)
			break;
		trial->rate = rate;
		trial_enter(trial, now, TRIAL_SETTLES, TRIAL_UNMEASURED);
		return !way;
	case TRIAL_SETTLES:
		if (settled || windows >= TRIAL_SETTLE)
			trial_enter(trial, now, TRIAL_WARMS, TRIAL_UNMEASURED);
		break;
	case TRIAL_WARMS:
		if (rate < trial->rate / TRIAL_CHANGE)
			return trial_end(trial, now, !way, rate);
		if (windows >= TRIAL_WARM)
			trial_enter(trial, now, TRIAL_MEASURES, TRIAL_MEASURED);
		break;
	case TRIAL_MEASURES:
		if (trial->samples < TRIAL_LEAST)
			break;
		return trial_end(trial, now, !way, rate);
	}
	return way;
}

/* Returns how long a phase lasts at least. */
static inline uint32_t trial_window(enum trial_phase phase)
{
	return phase == TRIAL_RESTS ? TRIAL_LOOK * TRIAL_WINDOW : TRIAL_WINDOW;
}

/* Whether there is nothing to gain: nobody uses the second way, or hardly anybody waits. */
static inline bool trial_is_idle(const struct trial *trial, uint32_t now)
{
	const bool measured = trial->phase == TRIAL_BASE || trial->phase == TRIAL_MEASURES;

	return now - trial->used >= TRIAL_SETTLE * TRIAL_WINDOW ||
	       (measured && trial->samples < TRIAL_LEAST &&
		now - trial->began >= TRIAL_LATEST * TRIAL_WINDOW);
}

/*
 * Called at each sample of @count acquisitions, which was drawn by @mask, maybe a former one.
 * @way: the way in which the lock runs; @used: whether somebody waited in it since the last sample;
 * @settled: whether nobody waits in the other one. Returns the way in which it is to run.
 */
static inline bool trial_step(struct trial *trial, uint32_t now, bool way, bool used, bool settled,
			      uint32_t mask, uint32_t count)
{
	if (used || !way)
		trial->used = now;
	trial->samples++;
	trial->waits += mask + 1;
	trial->count += (uint64_t)(mask + 1) * (count < TRIAL_MOST ? count : TRIAL_MOST);
	if (now - trial->began < trial_window(trial->phase))
		return way;
	if (!trial_is_idle(trial, now))
		return trial_advance(trial, now, way, settled);
	trial_rest(trial, now, 0);
	return false;
}

#endif
