/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The chosen locks, and the library's initialisation, for all interposed functions. */
#ifndef POUNDLOCK_PRELOAD_H
#define POUNDLOCK_PRELOAD_H

#include <pthread.h>

#include "any_rw.h"
#include "poundlock.h"

/*
 * Only the interposed functions and the observer of lib/observer.h are visible. They have no symbol
 * version: references to any version bind to them.
 */
#define EXPORT __attribute__((visibility("default")))

/* Exports @name also as @alias_name. */
#define KNOWN_AS(alias_name, name) \
	EXPORT extern __typeof__(name) alias_name __attribute__((alias(#name)))

/* Our mutexes' functions. NULL until initialise(), and afterwards if everything is native. */
extern W_HIDDEN W_ATOMIC(const struct any_ops *) chosen_ops;
/* Whether recursive and error-checking mutexes are ours: the lock has room for an owner. */
extern W_HIDDEN W_ATOMIC(bool) chosen_owners;
/* Not NULL if both, and any_is_inlined() of the table: points to w_alone()'s value. */
extern W_HIDDEN W_ATOMIC(const char *) chosen_inlined;
/* Our readers-writer locks' functions, as chosen_ops. */
extern W_HIDDEN W_ATOMIC(const struct any_rw_ops *) chosen_rw_ops;
/*
 * Points to the way in which they are locked. Inlined if any_rw_is_default(): then this is what
 * w_alone() returns.
 */
enum { WAY_TABLE = -1, WAY_THREADS = false, WAY_ALONE = true };
extern W_HIDDEN W_ATOMIC(const signed char *) chosen_rw_way;

/*
 * Called by pthread's functions if no lock is inlined. At first, functions that look into the
 * tables above; statistics may have shorter ones, and the C library's locks are called at once.
 */
struct mutex_calls {
	W_ATOMIC(int (*)(pthread_mutex_t *mutex)) lock, trylock, unlock;
};
struct rwlock_calls {
	W_ATOMIC(int (*)(pthread_rwlock_t *lock)) rdlock, wrlock, unlock;
};
extern W_HIDDEN struct mutex_calls mutex_calls;
extern W_HIDDEN struct rwlock_calls rwlock_calls;

/* Sets these to functions that count operations on inlined locks without a table. */
W_HIDDEN void mutex_observe_inlined(void);
W_HIDDEN void rwlock_observe_default(void);

/* acquire: pairs with the release of CALLS_SET(); the statistics */
#define CALL_OF(calls, function) w_load_acquire(&(calls).function)
#define CALLS_SET(calls, function, to) w_store_release(&(calls).function, to)

/*
 * Whether the C library's own locks are counted: the slow paths then call `real` at once. Set after
 * the functions there.
 */
extern W_HIDDEN W_ATOMIC(bool) native_counted;

/* acquire: pairs with the release in initialise_once(); the functions of `real` */
static inline bool is_native_counted(void)
{
	return w_unlikely(w_load_acquire(&native_counted));
}

/* The place of w_alone()'s value. */
static inline const char *alone_place(void)
{
	static const char never;

	return &__libc_single_threaded ? &__libc_single_threaded : &never;
}

extern W_HIDDEN W_ATOMIC(uint32_t) initialised;
W_HIDDEN void initialise_slow(void);

/*
 * Called first by every interposed function, except on fast paths that find chosen_ops set: other
 * libraries' constructors may run before ours, and lock. During the initialisation it does nothing.
 */
static inline void initialise(void)
{
	/* acquire: pairs with the release at the end of initialise_slow(); everything it has set */
	if (w_unlikely(!w_load_acquire(&initialised)))
		initialise_slow();
}

#endif
