/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The module's own view of its locks. */
#ifndef POUNDLOCK_KERNEL_SPIN_H
#define POUNDLOCK_KERNEL_SPIN_H

#include <linux/types.h>

/* How many locks of a kind a thread holds at most, one inside the other. */
#define SPIN_DEPTHS 4

/* A lock of core/locks.def, or a broken one of the torture. */
struct spin_kind {
	const char *name;
	bool sleeps; /* its waiters sleep: for tasks only */
	size_t (*size)(void);
	void (*init)(void *lock, size_t size); /* on zeroed memory */
	/* Tells lockdep at which depth, < SPIN_DEPTHS, it is taken inside others of its kind, if at
	 * another than 0. NULL: lockdep does not know it. */
	void (*nest)(void *lock, unsigned int depth);
	void (*lock)(void *lock);
	bool (*trylock)(void *lock);
	void (*unlock)(void *lock);
	/* 0, or -EINTR after a signal that @state admits. NULL: waits ignore signals. */
	int (*lock_state)(void *lock, unsigned int state);
	bool (*has_queue)(void *lock); /* whether a thread waits in its queue; with lock_state */
	/* the holder as tools read it, 0: none; it may change. NULL: the lock is to name none */
	unsigned long (*owner)(const void *lock);
	/* For readers; NULL without readers. */
	void (*read)(void *lock);
	bool (*tryread)(void *lock);
	int (*read_state)(void *lock, unsigned int state);
	void (*unread)(void *lock);
	void (*downgrade)(void *lock); /* turns the writer into a reader */
};

extern const struct spin_kind spin_kinds[];
extern const unsigned int spin_kinds_count;

/* A setting of a lock; *value is in @least .. @most. */
struct spin_setting {
	const char *lock, *key;
	u32 *value, least, most;
};

/* Sleeping locks (sleep.c); their names have this prefix. */
#define SLEEP_PREFIX "park:"
extern const struct spin_kind sleep_kinds[];
extern const unsigned int sleep_kinds_count;
extern const struct spin_setting sleep_settings[];
extern const unsigned int sleep_settings_count;

/*
 * Broken locks, which the torture must catch: one that spins (spin.c), and one that sleeps, without
 * and with readers (native.c).
 */
extern const struct spin_kind spin_broken, task_broken, rwsem_broken;

/* The kernel's own spin lock (spin.c), mutex and rwsem (native.c). */
extern const struct spin_kind spin_native, mutex_native, rwsem_native;

struct pound_spin;

/* The kind of @lock, and its bytes. */
const struct spin_kind *spin_kind_of(const struct pound_spin *lock);
void *spin_bytes_of(struct pound_spin *lock);

/* NULL if no lock has that name. */
const struct spin_kind *spin_find(const char *name);

/*
 * Sets the setting @key, of @length characters, of all locks @name, from now on. False: no such
 * setting, or the value is out of range.
 */
bool spin_set(const char *name, const char *key, size_t length, u32 value);

#endif
