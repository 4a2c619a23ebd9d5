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

#include "part/wait.h"

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
	/* Whether bytes 8 to 15 of a held lock are its holder's: what they are when @lock has returned is looked at again by
	 * @unlock alone, and the lower half is never a thread's id. */
	bool leaves_middle;
	/* Gives back what the lock, free and unused, has outside its memory, which is all zero then. NULL: nothing. */
	void (*destroy)(void *lock);
};

/* shfl_mutex, as it is without settings: a pound_mutex_t. */
extern const struct any_ops *const any_default;

/*
 * Finds the lock that @spec names: NAME[,KEY=VALUE...] with the keys that docs/locks.md lists (wait, backoff,
 * threshold, ...). Sets the keys that it names, for all locks of that name in the process, each key by itself: waiters
 * have their values from their next wait on. Reads the route if the lock wants it. Returns NULL and writes one line that
 * names what is wrong into @error (@size bytes) if there is no such lock, key or value. Any thread may call it at any time.
 */
const struct any_ops *any_find(const char *spec, char *error, size_t size);

/* Whether any_find(@spec) would find a lock. Sets nothing. */
bool any_check(const char *spec, char *error, size_t size);

/*
 * Prepares the process for any lock: learns which CPUs it has and which are near one another, reads POUNDLOCK_DOMAIN and
 * POUNDLOCK_SHARES, and has forked children told from their parents, whose waiters they drop. The library's constructor does
 * it; who needs locks before that calls it first. Calling it again does nothing. False, after one line on stderr, if one of
 * the variables is wrong: the library then uses the default.
 */
bool any_start(void);

/* Whether @deadline is on a clock that can be waited for, and its nanoseconds are in range. */
static inline bool any_deadline_valid(const struct w_deadline *deadline)
{
	return (deadline->clock == CLOCK_REALTIME || deadline->clock == CLOCK_MONOTONIC) && deadline->at.tv_nsec >= 0 &&
	       deadline->at.tv_nsec < 1000000000;
}

#endif
