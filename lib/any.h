/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Any lock of core/locks.def behind one table of functions. pound_lock_t and the preload library
 * choose from these tables at run time.
 *
 * A lock's memory is 32 bytes, aligned to 8, all zero when unlocked; a larger lock is in a box that
 * the first use makes. Bytes 16 to 19 belong to the embedder (in a pthread_mutex_t they are
 * __kind): no function reads or writes them.
 */
#ifndef POUNDLOCK_ANY_H
#define POUNDLOCK_ANY_H

#include <stdbool.h>
#include <stddef.h>

#include "part/wait.h"
#include "spec.h"

#define ANY_LOCK_SIZE 32

/* For lock and unlock functions: everything but W_SLOW functions is inlined. */
#define ANY_WHOLE __attribute__((flatten))

/*
 * A lock by its specification: functions and settings. It never changes and is never freed. @ops is
 * the table itself, by whose settings a function waits and passes the lock on.
 */
struct any_ops {
	const char *name;
	/* Returns 0, so that pthread_mutex_lock() can tail-call it. */
	int (*lock)(void *lock, const struct any_ops *ops);
	bool (*trylock)(void *lock);
	/* False if the deadline passed first. */
	bool (*timedlock)(void *lock, const struct w_deadline *deadline, const struct any_ops *ops);
	/* False if the lock was not held; nothing is changed then. */
	bool (*unlock)(void *lock, const struct any_ops *ops);
	/*
	 * The same, but shfl_mutex is left to its first waiter, if there is one. Other locks have
	 * an order of their own.
	 */
	bool (*unlock_fair)(void *lock, const struct any_ops *ops);
	/* Frees what the unused lock has outside its memory, and zeroes that. NULL: nothing. */
	void (*destroy)(void *lock);
	enum wait wait;
	uint32_t settings[SPEC_SETTINGS];
	/*
	 * Whether bytes 8 to 15 of a held lock belong to its holder: after lock() only unlock()
	 * reads them, and their lower half never looks like a thread's id.
	 */
	bool leaves_middle;
};

/* The default: shfl_mutex, which parks. It is a pound_mutex_t. */
extern const struct any_ops *const any_default;

/* Whether @ops has the functions of any_default, with these settings or others. */
static inline bool any_is_default(const struct any_ops *ops)
{
	return ops && ops->lock == any_default->lock;
}

/*
 * Whether the lock of @ops is taken while it is free by poundlock.h's pound_mutex_take_free(), and
 * released by pound_mutex_release_alone(), unless the thread w_remembers() it or
 * w_streak_counts_first() is true; all the rest is any_wait()'s, and unlock()'s.
 */
W_HIDDEN bool any_is_inlined(const struct any_ops *ops);

/* Whether one may wait for a lock of @own, which is inlined, by the table @ops. */
static inline bool any_waits_for(const struct any_ops *own, const struct any_ops *ops)
{
	return ops && (ops->lock == own->lock || any_is_default(ops));
}

/* Waits for @lock, of such a table, whose state was @seen. False if @deadline (or NULL) passed. */
W_HIDDEN bool any_wait(void *lock, uint32_t seen, const struct w_deadline *deadline,
		       const struct any_ops *ops);

/*
 * Finds the lock that @spec names: NAME[,KEY=VALUE...]; docs/locks.md lists the keys. The same
 * specification leads to the same table (intern.h). Reads the route if the lock needs it, but see
 * any_route_waits. Returns NULL, and one line in @error (@size bytes), if there is no such lock,
 * key or value, or if there is no room for another table. Any thread may call it at any time.
 */
const struct any_ops *any_find(const char *spec, char *error, size_t size);

/*
 * Set before the first any_find() by a library that calls any_read_route() before its process
 * enters a sandbox. shfl_ron then reads the route when threads contend, or in any_read_route():
 * most processes need none, and reading it takes longer than the start of a small program.
 */
extern W_HIDDEN bool any_route_waits;
W_HIDDEN void any_read_route(void);

/*
 * If locks of @ops have a policy of the program, keeps it registered until any_drop(). False, and
 * one line in @error, if it is not registered any more.
 */
bool any_hold(const struct any_ops *ops, char *error, size_t size);
void any_drop(const struct any_ops *ops);

/* Whether any_find() would succeed, if there is room. */
bool any_check(const char *spec, char *error, size_t size);

/*
 * Prepares the process for locks: reads the topology, POUNDLOCK_DOMAIN and POUNDLOCK_SHARES, and
 * arranges that forked children drop the waiters of their parent. The library's constructor calls
 * it; code that needs locks earlier calls it first. Later calls do nothing. False, after a line on
 * stderr, if a variable has a wrong value: its default is used then.
 */
bool any_start(void);

/* Whether @deadline is on a supported clock, and its nanoseconds are in range. */
static inline bool any_deadline_valid(const struct w_deadline *deadline)
{
	return (deadline->clock == CLOCK_REALTIME || deadline->clock == CLOCK_MONOTONIC) &&
	       deadline->at.tv_nsec >= 0 && deadline->at.tv_nsec < 1000000000;
}

#endif
