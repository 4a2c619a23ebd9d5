/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Any readers-writer lock of core/locks.def behind one table of functions: what libpoundlock's pound_rwlock_t and the
 * preload library choose from at run time.
 *
 * A lock's memory here is 48 bytes, aligned to 8, all zero when unlocked. Bytes 28 to 31 are never touched: they are the
 * embedder's (in a pthread_rwlock_t they are __shared).
 */
#ifndef POUNDLOCK_ANY_RW_H
#define POUNDLOCK_ANY_RW_H

#include "any.h"

#define ANY_RW_SIZE 48

struct any_rw_ops {
	const char *name;
	enum wait wait;
	/*
	 * @again: the caller may be a reader of the lock already, and does not wait for writers that wait themselves. False
	 * if the lock has so many readers that it takes no more (full()).
	 */
	bool (*rdlock)(void *lock, bool again);
	bool (*tryrdlock)(void *lock, bool again);
	/* The same, or the deadline passed first. */
	bool (*timedrdlock)(void *lock, bool again, const struct w_deadline *deadline);
	bool (*full)(void *lock);
	/* False, and nothing changed, if there was no reader, resp. writer. */
	bool (*rdunlock)(void *lock);
	void (*wrlock)(void *lock);
	bool (*trywrlock)(void *lock);
	bool (*timedwrlock)(void *lock, const struct w_deadline *deadline);
	bool (*wrunlock)(void *lock);
};

/* As any_find() and any_check(). */
const struct any_rw_ops *any_rw_find(const char *spec, char *error, size_t size);
bool any_rw_check(const char *spec, char *error, size_t size);

/* What a lock is that nobody chose: shfl_rw, its waiters asleep. */
extern const struct any_rw_ops *const any_rw_default;

#endif
