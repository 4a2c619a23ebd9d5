/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the module itself knows of its locks.
 */
#ifndef POUNDLOCK_KERNEL_SPIN_H
#define POUNDLOCK_KERNEL_SPIN_H

#include <linux/types.h>

/* One lock of core/locks.def, or, of the torture's own, a broken one. */
struct spin_kind {
	const char *name;
	bool sleeps; /* its waiters do: it is for tasks alone */
	size_t (*size)(void);
	void (*init)(void *lock, size_t size); /* of zeroed memory */
	void (*lock)(void *lock);
	bool (*trylock)(void *lock);
	void (*unlock)(void *lock);
	/* Takes it: 0; or -EINTR if a signal that @state knows came first. NULL: signals end no wait. */
	int (*lock_state)(void *lock, unsigned int state);
	/* The readers' side; NULL: there is none. */
	void (*read)(void *lock);
	bool (*tryread)(void *lock);
	int (*read_state)(void *lock, unsigned int state);
	void (*unread)(void *lock);
	void (*downgrade)(void *lock); /* the writer stays as a reader */
};

extern const struct spin_kind spin_kinds[];
extern const unsigned int spin_kinds_count;

/* A setting of a lock: *value is from @least to @most. */
struct spin_setting {
	const char *lock, *key;
	u32 *value, least, most;
};

/* Those whose waiters sleep (sleep.c), under names that begin so. */
#define SLEEP_PREFIX "park:"
extern const struct spin_kind sleep_kinds[];
extern const unsigned int sleep_kinds_count;
extern const struct spin_setting sleep_settings[];
extern const unsigned int sleep_settings_count;

/*
 * What a test takes for a lock and is none, to see that it is caught: spinning (spin.c), and sleeping, without readers and with
 * them (native.c).
 */
extern const struct spin_kind spin_broken, task_broken, rwsem_broken;

/* The kernel's own: spin lock (spin.c), mutex and rwsem (native.c). */
extern const struct spin_kind spin_native, mutex_native, rwsem_native;

struct pound_spin;

/* What @lock is, and where. */
const struct spin_kind *spin_kind_of(const struct pound_spin *lock);
void *spin_bytes_of(struct pound_spin *lock);

/* NULL: there is none. */
const struct spin_kind *spin_find(const char *name);

/*
 * Sets the setting of lock @name that @key, of @length characters, names: of all locks of that name, from now on. False:
 * there is no such setting, or it may not have that value.
 */
bool spin_set(const char *name, const char *key, size_t length, u32 value);

#endif
