/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Initialisation that runs once, in one word.
 *
 * Promise: of all calls, one runs its function; no call returns before that has ended. If the
 * function does not end normally, another call runs its own: the one that was not completed counts
 * as never begun. A call after the end is one load. The memory may be freed when every call has
 * returned but the one that ran the function, whose last access ends the wait of all others.
 *
 *   NEW ──first call──▶ RUNNING ──end──▶ DONE
 *                       RUNNING ──waiter──▶ RUNNING|PARKED ──end, unpark──▶ DONE
 *                       RUNNING or RUNNING|PARKED ──not completed──▶ NEW
 *
 * RUNNING also contains the fork generation in which the function was begun. In a child forked
 * meanwhile, nobody may be left to complete it, so that the next call begins again.
 */
#ifndef POUNDLOCK_ONCE_H
#define POUNDLOCK_ONCE_H

#include "world.h"

#define ONCE_NEW 0u
#define ONCE_RUNNING 1u /* with the generation from bit ONCE_GENERATION on */
#define ONCE_PARKED 2u  /* with RUNNING: threads may sleep on the state */
#define ONCE_DONE 2u
#define ONCE_GENERATION 2

struct once {
	W_ATOMIC(uint32_t) state;
};

/* The state while a thread of this process runs the function, without PARKED. */
static inline uint32_t once_running(void)
{
	return w_fork_generation() << ONCE_GENERATION | ONCE_RUNNING;
}

static inline bool once_is_running(uint32_t state, uint32_t running)
{
	return (state & ~ONCE_PARKED) == running;
}

/* Whether the function has ended: what it wrote is visible to the caller. */
static inline bool once_done(struct once *once)
{
	/* [ONCE-1] acquire: pairs with [ONCE-4]; what the function wrote */
	return w_load_acquire(&once->state) == ONCE_DONE;
}

/* Waits, spinning and then asleep, while the state is @running. May return early. */
static inline void once_wait(struct once *once, uint32_t running)
{
	/* [ONCE-2] acquire: pairs with nothing; [ONCE-1] or [ONCE-3] reads the word again */
	uint32_t seen = w_wait_acquire(&once->state, !once_is_running(VAL, running), W_BRIEF, NULL);

	/* relaxed: publishes nothing; it only tells the end to wake a sleeper */
	if (seen == running &&
	    !w_compare_exchange_relaxed(&once->state, &seen, running | ONCE_PARKED))
		return;
	if (!once_is_running(seen, running))
		return;
	w_event(park);
	w_park(&once->state, running | ONCE_PARKED, NULL);
}

/*
 * NEW -> RUNNING. Returns true if the caller must run its function and then call once_end(); false
 * if the function has ended. Waits while another thread runs it.
 */
static W_SLOW bool once_begin(struct once *once)
{
	uint32_t running, seen;

	while (!once_done(once)) {
		running = once_running();
		/* relaxed: [ONCE-3] and [ONCE-1] decide */
		seen = w_load_relaxed(&once->state);
		if (once_is_running(seen, running))
			once_wait(once, running);
		/* [ONCE-3] acquire: pairs with [ONCE-4]; what a function that failed wrote */
		else if (seen != ONCE_DONE &&
			 w_compare_exchange_acquire(&once->state, &seen, running))
			return true;
	}
	return false;
}

/*
 * RUNNING -> DONE, or NEW unless the function has @completed; wakes all waiters. The last access to
 * @once.
 */
static W_SLOW void once_end(struct once *once, bool completed)
{
	/* [ONCE-4] release: pairs with [ONCE-1], [ONCE-3]; what the function wrote */
	if (w_exchange_release(&once->state, completed ? ONCE_DONE : ONCE_NEW) & ONCE_PARKED)
		w_unpark_all(&once->state);
}

#endif
