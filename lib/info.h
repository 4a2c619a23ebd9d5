/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What is known of a lock of core/locks.def, of whatever kind: for the tables of any.c and any_rw.c, which each hold the
 * same facts, and for pound_lock_info() and pound_rwlock_info(), which tell them.
 */
#ifndef POUNDLOCK_INFO_H
#define POUNDLOCK_INFO_H

#include "poundlock.h"
#include "spec.h"

/* A line of core/locks.def, and what the compiler knows of that lock. */
struct facts {
	const char *name, *promise, *paper;
	enum wait wait;
	size_t (*box)(void); /* the bytes of its box; NULL: it has none */
	size_t bytes_lock, bytes_waiter, bytes_holder;
};

/* All that is known of a lock with these facts, one of whose settings may be among the @count @settings. The calling thread's, until its next call. */
W_HIDDEN const struct pound_lock_info *info_of(const struct facts *facts, const struct setting *settings, size_t count);

#endif
