/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Facts about a lock of core/locks.def, for pound_lock_info(), pound_rwlock_info() and
 * pound_lock_setting().
 */
#ifndef POUNDLOCK_INFO_H
#define POUNDLOCK_INFO_H

#include "poundlock.h"
#include "spec.h"

/* A line of core/locks.def, and the sizes of that lock. */
struct facts {
	const char *name, *promise, *paper;
	enum wait wait;
	size_t (*box)(void); /* returns the size of its box; NULL: it has none */
	size_t bytes_lock, bytes_waiter, bytes_holder;
};

/*
 * Everything to report about the lock with these @facts. The result is valid until the calling
 * thread's next call.
 */
W_HIDDEN const struct pound_lock_info *info_of(const struct facts *facts);

#endif
