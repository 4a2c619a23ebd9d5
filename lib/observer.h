/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Statistics of locks of this library's own interface. The preload library, where POUNDLOCK_STATS asks for statistics,
 * has the observer; this library finds it when it is loaded, also where it is linked statically into a program or a
 * library that the loader prepares. Without one the tables of functions are the locks' own, and nothing is different.
 *
 * Not observed: what the inline functions of poundlock.h do by themselves, a pound_mutex_t locked while it is free.
 */
#ifndef POUNDLOCK_OBSERVER_H
#define POUNDLOCK_OBSERVER_H

#include "any_rw.h"

/* With the number of this interface, which changes with any of its types. */
#define POUND_OBSERVER poundlock_observer_1

struct pound_observer {
	/* The functions to use in place of @inner: those that count and call it, or @inner itself. */
	const struct any_ops *(*lock)(const struct any_ops *inner);
	const struct any_rw_ops *(*rwlock)(const struct any_rw_ops *inner);
	/* Waits by @wait for a pound_mutex_t that was not free. False at @deadline, NULL: none. */
	bool (*mutex_wait)(void *mutex, const struct w_deadline *deadline,
			   bool (*wait)(void *mutex, const struct w_deadline *deadline));
	/* Releases by @release a pound_mutex_t that others wait for. */
	bool (*mutex_release)(void *mutex, bool (*release)(void *mutex));
};

/* NULL: there is none. */
extern W_HIDDEN const struct pound_observer *any_observer;

#endif
