/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Statistics of the locks that programs use through poundlock.h. The preload library has the
 * observer. If POUNDLOCK_STATS is set, libpoundlock looks it up when it is loaded, also where it is
 * linked statically into a dynamic program or library. Without an observer the locks' own tables
 * are used.
 *
 * Not observed: a pound_mutex_t locked while it is free, by poundlock.h's inline functions.
 */
#ifndef POUNDLOCK_OBSERVER_H
#define POUNDLOCK_OBSERVER_H

#include "any_rw.h"

/* Its name contains the version of this interface, which changes with any of its types. */
#define POUND_OBSERVER poundlock_observer_4

struct pound_observer {
	/* Return the table to use in place of @inner: one that counts, or @inner itself. */
	const struct any_ops *(*lock)(const struct any_ops *inner);
	const struct any_rw_ops *(*rwlock)(const struct any_rw_ops *inner);
	/* Waits by @wait for a pound_mutex_t that was not free. False at @deadline (NULL: none). */
	bool (*mutex_wait)(void *mutex, const struct w_deadline *deadline,
			   bool (*wait)(void *mutex, const struct w_deadline *deadline));
	/* Releases by @release a pound_mutex_t that has waiters. */
	bool (*mutex_release)(void *mutex, bool (*release)(void *mutex));
	/* Names @lock, as pound_set_name(). */
	void (*name)(const void *lock, const char *name);
	/* From now on there is another lock at the address of @lock, or none. */
	void (*forget)(const void *lock);
};

/* NULL: there is none. */
extern W_HIDDEN const struct pound_observer *any_observer;

#endif
