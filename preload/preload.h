/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The chosen locks, and the library's initialisation, for all interposed functions. */
#ifndef POUNDLOCK_PRELOAD_H
#define POUNDLOCK_PRELOAD_H

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
/* Not NULL if any_is_default() of that, which is inlined: points to w_alone()'s value. */
extern W_HIDDEN W_ATOMIC(const char *) chosen_default;
/* Whether recursive and error-checking mutexes are ours: the lock has room for an owner. */
extern W_HIDDEN W_ATOMIC(bool) chosen_owners;
/* chosen_default, if recursive and error-checking mutexes are ours also. */
extern W_HIDDEN W_ATOMIC(const char *) chosen_default_owners;
/* Our readers-writer locks' functions, as chosen_ops. */
extern W_HIDDEN W_ATOMIC(const struct any_rw_ops *) chosen_rw_ops;
/*
 * Points to the way in which they are locked. Inlined if any_rw_is_default(): then this is what
 * w_alone() returns.
 */
enum { WAY_TABLE = -1, WAY_THREADS = false, WAY_ALONE = true };
extern W_HIDDEN W_ATOMIC(const signed char *) chosen_rw_way;

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
