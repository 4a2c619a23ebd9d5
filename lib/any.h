/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Any lock of core/locks.def behind one table of functions: what libpoundlock's pound_lock_t and the preload library
 * choose from at run time.
 *
 * A lock's memory here is 32 bytes (a larger lock lies in a box that the first use makes), aligned to 8, all zero when unlocked. Bytes 16 to 19 are never touched: they are
 * the embedder's (in a pthread_mutex_t they are __kind).
 */
#ifndef POUNDLOCK_ANY_H
#define POUNDLOCK_ANY_H

#include <stdbool.h>
#include <stddef.h>

#include "wait.h"

#define ANY_LOCK_SIZE 32

/* For what locks and unlocks: one function, but for its W_SLOW ones, without calls while the lock is free. */
#define ANY_WHOLE __attribute__((flatten))

struct any_ops {
	const char *name;
	enum wait wait;
	/* Returns 0, so that pthread_mutex_lock can end in it. */
	int (*lock)(void *lock);
	bool (*trylock)(void *lock);
	/* False if the deadline passed first. */
	bool (*timedlock)(void *lock, const struct w_deadline *deadline);
	/* False, and nothing changed, if the lock was not held. */
	bool (*unlock)(void *lock);
	/* Gives back what the lock, free and unused, has outside its memory, which is all zero then. NULL: nothing. */
	void (*destroy)(void *lock);
};

/* shfl_mutex, as it is without settings: a pound_mutex_t. */
extern const struct any_ops *const any_default;

/*
 * Finds the lock that @spec names: NAME[,KEY=VALUE...] with the keys that docs/locks.md lists (wait, backoff,
 * threshold, ...). Sets the process-wide settings of that lock. Returns NULL and writes one line that names what is
 * wrong into @error (@size bytes) if there is no such lock, key or value. Not thread-safe: call it once, early.
 */
const struct any_ops *any_find(const char *spec, char *error, size_t size);

/*
 * Prepares the process for any lock: learns how many CPUs it has, reads POUNDLOCK_DOMAIN, and has forked children drop
 * the waiters that the fork left behind. The library's constructor does it; who needs locks before that calls it first.
 * Calling it again does nothing. False, after one line on stderr, if POUNDLOCK_DOMAIN is wrong: the library then uses
 * the default.
 */
bool any_start(void);

/* Whether @deadline is on a clock that can be waited for, and its nanoseconds are in range. */
static inline bool any_deadline_valid(const struct w_deadline *deadline)
{
	return (deadline->clock == CLOCK_REALTIME || deadline->clock == CLOCK_MONOTONIC) && deadline->at.tv_nsec >= 0 &&
	       deadline->at.tv_nsec < 1000000000;
}

#endif
