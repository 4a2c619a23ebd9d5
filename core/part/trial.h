/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Trials of the ways to run a lock, 0 to TRIAL_WAYS - 1. The load decides which of them is fastest,
 * and the lock does not see the load. So its holders measure its way and another one now and then,
 * and keep the faster one.
 *
 *   REST ──▶ BASE ──▶ SETTLE ──▶ WARM ──▶ MEASURE ──▶ REST
 *
 *   REST     the lock runs in the way that it has, for `rest` windows; for few of them if its rate
 *            changes much, since the load has changed then
 *   BASE     its rate in this way, for a longer time than in another way, since that costs nothing
 *   SETTLE   in another way, until those who wait in the former one are gone, or for a bounded time
 *   WARM     some windows more, since a queue has to form; a much slower way is left at once
 *   MEASURE  the rate in the other way. From then on the lock runs in the faster one; a higher way
 *            has to gain TRIAL_GAIN over a lower one. After trials of all other ways, the next rest
 *            is longer, up to a limit
 *
 * A rate is counted in samples of the acquisitions that had to wait: to count each one would move
 * a cache line more at each hand-over. A waiter brings the number of acquisitions since the same
 * thread last had to wait, its count, and is a sample with a chance of count / (mask + 1). So a
 * sample stands for mask + 1 acquisitions, or for its own if they are more: turns of very different
 * lengths are measured as well as equal ones. The mask follows the rate, so that a window has some
 * samples, and not many. BASE and MEASURE count from their second window on: those who wait when
 * they begin were drawn by the former mask.
 *
 * If a way above 0 is not used for a while, or hardly any thread waits, there is nothing to gain:
 * the lock runs, or stays, in way 0.
 *
 * Plain functions: no atomics, and no clock. The caller holds the lock.
 */
#ifndef POUNDLOCK_TRIAL_H
#define POUNDLOCK_TRIAL_H

#include "world.h"

/* Times are in units of 1,024 ns, as wait_clock(). */
#define TRIAL_WINDOW 250u
#define TRIAL_WAYS 3u
#define TRIAL_SETTLE 8u      /* most windows of SETTLE, and those before a rest looks at its rate */
#define TRIAL_WARM 4u        /* windows of WARM */
#define TRIAL_MEASURE 8u     /* least windows of MEASURE: rates change as turns go round */
#define TRIAL_BASE_LEAST 24u /* least windows of BASE */
#define TRIAL_REST 8u        /* windows of the first rest: turns of a former way may go on */
#define TRIAL_ANEW 32u       /* windows of the first rest under another load */
#define TRIAL_LOOK 4u        /* windows after which a rest looks at its rate */
#define TRIAL_KEPT 256u      /* most windows of a rest in a way that has just won */
#define TRIAL_LONGEST 16384u /* windows of the longest rest: 4 s */
#define TRIAL_LONGER 32u     /* the factor by which a rest is longer than the one before */
#define TRIAL_GAIN 16u       /* a higher way has to gain 1 / TRIAL_GAIN */
#define TRIAL_CHANGE 4u      /* the factor by which the rate differs under another load */
#define TRIAL_LEAST 64u      /* samples after which MEASURE may end */
#define TRIAL_LATEST 16u     /* windows after which it ends with fewer */
#define TRIAL_FEWEST 3u      /* samples without which there is nothing to gain */
#define TRIAL_HASTY 8u       /* samples after which WARM may leave a way */
/*
 * Samples in a window that is measured, in one of a rest, and in others. A sample costs a transfer
 * of the line with the trial, and most of the time is rest.
 */
#define TRIAL_MEASURED 128u
#define TRIAL_RESTING 4u
#define TRIAL_UNMEASURED 16u
#define TRIAL_FIRST_MASK 15u
#define TRIAL_LARGEST_MASK 1023u
#define TRIAL_MOST 65535u /* acquisitions of a sample */

enum trial_phase { TRIAL_RESTS, TRIAL_BASE, TRIAL_SETTLES, TRIAL_WARMS, TRIAL_MEASURES };

struct trial {
	uint32_t began;   /* when the phase began, or begins */
	uint32_t samples; /* since then */
	uint64_t count;   /* acquisitions, for which the samples stand */
	uint32_t mask;    /* of the random numbers by which waiters are drawn */
	uint32_t used;    /* when the lock last ran in way 0, or used its own */
	uint32_t way;     /* in which it runs */
	uint32_t former;  /* the way before this trial */
	uint32_t tried;   /* the way of this trial, or the one before */
	uint32_t barred;  /* the way that was refused, and is not tried for now; 0: none */
	uint32_t rate;    /* of the way, or the former one; per 65,536 units of time; 0: unknown */
	uint32_t rest;    /* windows of the next rest */
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

/* Returns the mask with which a window at @rate has @samples or more, but at most twice as many. */
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

/* After a window or more: begins @phase after @windows. A window of it has @samples. */
static inline void trial_enter(struct trial *trial, uint32_t now, enum trial_phase phase,
			       uint32_t windows, uint32_t samples)
{
	trial->mask = trial_mask(trial_rate(trial->count, now - trial->began), samples);
	trial_begin(trial, now + windows * TRIAL_WINDOW, phase);
}

/*
 * Rests, in the way whose rate is @rate, for `rest` windows. Those who wait in another way go
 * first, so that the rate says nothing at once.
 */
static inline void trial_rest(struct trial *trial, uint32_t now, uint32_t rate)
{
	trial->rate = rate;
	trial->left = trial->rest;
	trial->mask = trial_mask(rate, TRIAL_RESTING);
	trial_begin(trial, now + TRIAL_SETTLE * TRIAL_WINDOW, TRIAL_RESTS);
}

/* Runs the lock in way 0. Ends a trial, if there is one, without a result. */
static inline void trial_cancel(struct trial *trial, uint32_t now)
{
	if (trial->phase == TRIAL_RESTS && !trial->way)
		return;
	trial->way = 0;
	trial->rate = 0;
	trial->left = trial->rest;
	trial_begin(trial, now, TRIAL_RESTS);
}

/* While resting, at the end of @windows at @rate. */
static inline void trial_go_on(struct trial *trial, uint32_t now, uint32_t windows, uint32_t rate)
{
	if (trial->rate &&
	    (rate / TRIAL_CHANGE > trial->rate || rate < trial->rate / TRIAL_CHANGE)) {
		trial->rest = TRIAL_ANEW;
		trial->barred = 0;
		trial_rest(trial, now, rate);
	} else if (windows < trial->left) {
		trial->left -= windows;
		trial_enter(trial, now, TRIAL_RESTS, 0, TRIAL_RESTING);
	} else {
		trial_enter(trial, now, TRIAL_BASE, 1, TRIAL_MEASURED);
	}
}

/* Returns the way to try after @tried: not the one in which the lock runs, nor the barred one. */
static inline uint32_t trial_next(const struct trial *trial, uint32_t tried)
{
	uint32_t next = tried;

	do
		next = (next + 1) % TRIAL_WAYS;
	while (next == trial->way || (next && next == trial->barred));
	return next;
}

/* After BASE, at @rate: runs the lock in another way. */
static inline void trial_change(struct trial *trial, uint32_t now, uint32_t rate)
{
	trial->rate = rate;
	trial->former = trial->way;
	trial->tried = trial_next(trial, trial->tried);
	trial->way = trial->tried;
	trial_enter(trial, now, TRIAL_SETTLES, 0, TRIAL_UNMEASURED);
}

/* Whether a way, at rate @higher, gains enough over a lower one. */
static inline bool trial_gains(uint32_t lower, uint32_t higher)
{
	return higher > lower && higher - lower > lower / TRIAL_GAIN;
}

/* Whether the way of this trial, at @rate, is better than the former one. */
static inline bool trial_wins(const struct trial *trial, uint32_t rate)
{
	return trial->way > trial->former ? trial_gains(trial->rate, rate)
					  : !trial_gains(rate, trial->rate);
}

/* Ends the trial of a way, at @rate. */
static inline void trial_end(struct trial *trial, uint32_t now, uint32_t rate)
{
	const bool wins = trial_wins(trial, rate);
	const uint32_t longest = wins ? TRIAL_KEPT : TRIAL_LONGEST;

	if (!wins)
		trial->way = trial->former;
	if (trial_next(trial, trial->tried) <= trial->tried)
		trial->rest *= TRIAL_LONGER;
	if (trial->rest >= longest) {
		trial->rest = longest;
		trial->barred = 0;
	}
	trial_rest(trial, now, wins ? rate : trial->rate);
}

/*
 * Leaves the way in which the lock runs, above 0, and does not try it for now. The former way is
 * the one to return to only while the lock runs in the way of a trial.
 */
static inline void trial_refuse(struct trial *trial, uint32_t now)
{
	trial->barred = trial->way;
	if (trial->phase == TRIAL_RESTS || trial->phase == TRIAL_BASE)
		trial_cancel(trial, now);
	else
		trial_end(trial, now, 0);
}

/* Returns how many windows a phase lasts at least. */
static inline uint32_t trial_least(enum trial_phase phase)
{
	switch (phase) {
	case TRIAL_RESTS:
		return TRIAL_LOOK;
	case TRIAL_BASE:
		return TRIAL_BASE_LEAST;
	case TRIAL_MEASURES:
		return TRIAL_MEASURE;
	case TRIAL_SETTLES:
	case TRIAL_WARMS:
		break;
	}
	return 1;
}

/* At a sample, trial_least() windows or more after the phase began. */
static inline void trial_advance(struct trial *trial, uint32_t now, bool settled)
{
	const uint32_t time = now - trial->began, windows = time / TRIAL_WINDOW,
		       rate = trial_rate(trial->count, time);

	switch (trial->phase) {
	case TRIAL_RESTS:
		trial_go_on(trial, now, windows, rate);
		break;
	case TRIAL_BASE:
		trial_change(trial, now, rate);
		break;
	case TRIAL_SETTLES:
		if (settled || windows >= TRIAL_SETTLE)
			trial_enter(trial, now, TRIAL_WARMS, 0, TRIAL_UNMEASURED);
		break;
	case TRIAL_WARMS:
		if (trial->samples >= TRIAL_HASTY && rate < trial->rate / TRIAL_CHANGE)
			trial_end(trial, now, rate);
		else if (windows >= TRIAL_WARM)
			trial_enter(trial, now, TRIAL_MEASURES, 1, TRIAL_MEASURED);
		break;
	case TRIAL_MEASURES:
		if (trial->samples >= TRIAL_LEAST || windows >= TRIAL_LATEST)
			trial_end(trial, now, rate);
		break;
	}
}

/* Whether the phase has not begun yet. The clock may have run round since it began. */
static inline bool trial_awaits(const struct trial *trial, uint32_t now)
{
	return trial->began - now - 1 < TRIAL_SETTLE * TRIAL_WINDOW;
}

/* Whether there is nothing to gain: nobody uses the way, or hardly anybody waits. */
static inline bool trial_is_idle(const struct trial *trial, uint32_t now)
{
	const bool measured = trial->phase == TRIAL_BASE || trial->phase == TRIAL_MEASURES;

	return now - trial->used >= TRIAL_SETTLE * TRIAL_WINDOW ||
	       (measured && trial->samples < TRIAL_FEWEST &&
		now - trial->began >= TRIAL_LATEST * TRIAL_WINDOW);
}

/*
 * Called at each sample of @count acquisitions, which was drawn by @mask, maybe a former one.
 * @used: whether somebody waited in the lock's way since the last sample; @settled: whether nobody
 * waits in the former one. Returns the way in which the lock is to run.
 */
static inline uint32_t trial_step(struct trial *trial, uint32_t now, bool used, bool settled,
				  uint32_t mask, uint32_t count)
{
	if (used || !trial->way)
		trial->used = now;
	if (trial_awaits(trial, now))
		return trial->way;
	trial->samples++;
	trial->count += count <= mask ? mask + 1 : count < TRIAL_MOST ? count : TRIAL_MOST;
	if (now - trial->began < trial_least(trial->phase) * TRIAL_WINDOW)
		return trial->way;
	if (trial_is_idle(trial, now)) {
		trial->way = 0;
		trial_rest(trial, now, 0);
	} else {
		trial_advance(trial, now, settled);
	}
	return trial->way;
}

#endif
