/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A counting semaphore: a value, which a post increases and a wait decreases, once it is not 0.
 *
 * Promise: a post is one atomic step, followed by a wake-up only if threads sleep; it needs no lock
 * and never waits, so that a signal handler may post. That step is the last access to the
 * semaphore: a thread whose wait it ends may free the memory at once. A wait that reaches its
 * deadline takes nothing. 8 bytes. A wait may be bypassed by any number of later ones: this is not
 * a fair lock.
 *
 *   state:    value (31 bits) | PARKED: threads may sleep on the state
 *   waiters:  about how many threads sleep, or are about to
 *
 *   0 -> PARKED                      by a waiter, which then sleeps while the state is PARKED
 *   value -> value - 1               by a wait; keeps PARKED
 *   value|PARKED -> value + n        then wakes all; by a post, if there are no more than n waiters
 *   value|PARKED -> value + n|PARKED then wakes n
 *
 * The number of waiters is a hint, which may be too high (after a fork, say) or too low. A post
 * reads it before its step. It cannot lose a wake-up: a post either leaves PARKED set, or wakes all
 * that sleep.
 */
#ifndef POUNDLOCK_SEMA_H
#define POUNDLOCK_SEMA_H

#include "world.h"

#define SEMA_MOST 0x7fffffffu /* the highest value */
#define SEMA_PARKED 0x80000000u

struct sema {
	W_ATOMIC(uint32_t) state;
	W_ATOMIC(uint32_t) waiters;
};

/* The value at this moment. */
static inline uint32_t sema_value(struct sema *sema)
{
	/* relaxed: may be outdated at once, and orders nothing */
	return w_load_relaxed(&sema->state) & SEMA_MOST;
}

/* value -> value - 1, unless the value is 0. The state was last @seen. */
static inline bool sema_take(struct sema *sema, uint32_t seen)
{
	while (seen & SEMA_MOST)
		/* [SEMA-1] acquire: pairs with [SEMA-3]; what was written before the posts */
		if (w_compare_exchange_acquire(&sema->state, &seen, seen - 1))
			return true;
	return false;
}

/* Takes one if the value is not 0. Never waits. */
static inline bool sema_try(struct sema *sema)
{
	/* relaxed: [SEMA-1] decides */
	return sema_take(sema, w_load_relaxed(&sema->state));
}

/* Spins for a bounded time until the value is not 0, unless threads sleep already. */
static inline void sema_spin(struct sema *sema, const struct w_deadline *deadline)
{
	/* relaxed: a heuristic */
	if (!(w_load_relaxed(&sema->state) & SEMA_PARKED))
		/* [SEMA-2] acquire: pairs with nothing; [SEMA-1] decides */
		(void)w_wait_acquire(&sema->state, VAL & SEMA_MOST, W_BRIEF, deadline);
}

/* 0 -> PARKED, then sleeps until a post, @deadline, or for no reason. */
static inline void sema_sleep(struct sema *sema, const struct w_deadline *deadline)
{
	uint32_t none = 0;

	/* relaxed, all: a hint, and a mark that publishes nothing */
	(void)w_fetch_add_relaxed(&sema->waiters, 1);
	if (w_compare_exchange_relaxed(&sema->state, &none, SEMA_PARKED) || none == SEMA_PARKED) {
		w_event(park);
		w_park(&sema->state, SEMA_PARKED, deadline);
	}
	(void)w_fetch_add_relaxed(&sema->waiters, 0 - 1u);
}

/*
 * Takes one after all, or gives up. The wake-up of a post may have reached this thread, so it must
 * not overlook that post: it reads the newest state.
 */
static inline bool sema_take_at_last(struct sema *sema)
{
	/* relaxed: [SEMA-1] decides; a read-modify-write, since a load may return an older state */
	if (sema_take(sema, w_fetch_add_relaxed(&sema->state, 0)))
		return true;
	w_event(abandon);
	return false;
}

/*
 * Takes one, waiting while the value is 0. Returns false if @deadline (NULL: none) passes first.
 */
static W_SLOW bool sema_wait_slow(struct sema *sema, const struct w_deadline *deadline)
{
	w_event(contended);
	sema_spin(sema, deadline);
	while (!sema_try(sema)) {
		if (w_expired(deadline))
			return sema_take_at_last(sema);
		sema_sleep(sema, deadline);
	}
	return true;
}

/* Wakes up to @count of the threads that sleep, or all. @sema may be gone. */
static W_SLOW void sema_wake(struct sema *sema, uint32_t count, bool all)
{
	if (all) {
		w_unpark_all(&sema->state);
		return;
	}
	for (; count; count--)
		w_unpark(&sema->state);
}

/*
 * Adds @count to the value, and wakes as many waiters. Returns false, and adds nothing, if the
 * value would exceed SEMA_MOST.
 */
static inline bool sema_post(struct sema *sema, uint32_t count)
{
	/* relaxed: [SEMA-3] decides */
	uint32_t seen = w_load_relaxed(&sema->state);
	bool all;

	do {
		if (count > SEMA_MOST - (seen & SEMA_MOST))
			return false;
		/* relaxed: a hint; not after [SEMA-3], when the memory may be gone */
		all = w_load_relaxed(&sema->waiters) <= count;
		/* [SEMA-3] release: pairs with [SEMA-1]; what the caller wrote before the post */
	} while (!w_compare_exchange_release(&sema->state, &seen,
					     (seen + count) & (all ? SEMA_MOST : UINT32_MAX)));
	if (seen & SEMA_PARKED)
		sema_wake(sema, count, all);
	return true;
}

#endif
