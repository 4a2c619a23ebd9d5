/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Any readers-writer lock of core/locks.def behind one table of functions, as any.h has the others.
 *
 * A lock's memory is 48 bytes, aligned to 8, all zero when unlocked. Bytes 28 to 31 belong to the
 * embedder (in a pthread_rwlock_t they are __shared): no function reads or writes them.
 */
#ifndef POUNDLOCK_ANY_RW_H
#define POUNDLOCK_ANY_RW_H

#include "any.h"

#define ANY_RW_SIZE 48

/* As struct any_ops. */
struct any_rw_ops {
	const char *name;
	/*
	 * Locks for reading. @again: the caller may hold it for reading already, and passes waiting
	 * writers. False if the lock has as many readers as it can count: full().
	 */
	bool (*rdlock)(void *lock, bool again, const struct any_rw_ops *ops);
	bool (*tryrdlock)(void *lock, bool again);
	/* False also if the deadline passed first. */
	bool (*timedrdlock)(void *lock, bool again, const struct w_deadline *deadline,
			    const struct any_rw_ops *ops);
	bool (*full)(void *lock);
	/* False if no reader, or no writer, holds it; nothing is changed then. */
	bool (*rdunlock)(void *lock, const struct any_rw_ops *ops);
	void (*wrlock)(void *lock, const struct any_rw_ops *ops);
	bool (*trywrlock)(void *lock);
	bool (*timedwrlock)(void *lock, const struct w_deadline *deadline,
			    const struct any_rw_ops *ops);
	bool (*wrunlock)(void *lock, const struct any_rw_ops *ops);
	/* The same, but leave the lock to the first waiter, if there is one. */
	bool (*rdunlock_fair)(void *lock, const struct any_rw_ops *ops);
	bool (*wrunlock_fair)(void *lock, const struct any_rw_ops *ops);
	enum wait wait;
	uint32_t settings[SPEC_SETTINGS];
};

/* As any_find() and any_check(). */
const struct any_rw_ops *any_rw_find(const char *spec, char *error, size_t size);
bool any_rw_check(const char *spec, char *error, size_t size);

/* Whether the lock that @spec names is a readers-writer lock, with right settings or wrong ones. */
bool any_rw_names(const char *spec);

/* The default: shfl_rw, which parks. */
extern const struct any_rw_ops *const any_rw_default;

/* Whether @ops has the functions of any_rw_default, with these settings or others. */
static inline bool any_rw_is_default(const struct any_rw_ops *ops)
{
	return ops && ops->rdlock == any_rw_default->rdlock;
}

/* Whether @one and @other (NULL: none) differ in their settings at most. */
static inline bool any_rw_same(const struct any_rw_ops *one, const struct any_rw_ops *other)
{
	return one && other && one->rdlock == other->rdlock;
}

#endif
