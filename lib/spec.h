/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The settings in a lock's specification, NAME[,KEY=VALUE...]. Wrong input is reported in one line
 * that names it.
 */
#ifndef POUNDLOCK_SPEC_H
#define POUNDLOCK_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "part/wait.h"

/* A setting, which applies to all locks of that name. */
struct setting {
	const char *lock;
	const char *key;
	W_ATOMIC(uint32_t) *value;
	uint32_t least, most;
	const char *choices; /* names of the values from 0 on, space-separated; "": numbers */
};

/* A setting's value in a specification. */
struct given {
	bool named; /* false: the specification has none */
	uint32_t number;
};

/* The value of a setting now. Another thread may set it at any time. */
static inline uint32_t spec_value(W_ATOMIC(uint32_t) *value)
{
	/* relaxed: a number that publishes nothing, and depends on no other */
	return atomic_load_explicit(value, memory_order_relaxed);
}

#define SPEC_WAYS (WAIT_PARK + 1)

/*
 * For the lists NAME_settings(S) of core/locks.def: a field, its initialiser, and the row of a
 * table, for a structure that is called lock_settings where these are used.
 */
#define SETTING_VALUE(lock, key, ...) W_ATOMIC(uint32_t) lock##_##key;
#define SETTING_DEFAULT(lock, key, otherwise, ...) .lock##_##key = (otherwise),
#define SETTING_ROW(lock, key, otherwise, least, most, ...) \
	{#lock, #key, &lock_settings.lock##_##key, least, most, "" __VA_ARGS__},
#define SETTING_NOW(lock, key, ...) .key = spec_value(&lock_settings.lock##_##key),

/* The policy that the functions of lock @name take, for a way of waiting, as it is set now. */
#define LOCK_POLICY(name, way) ((struct name##_policy){.wait = (way), name##_settings(SETTING_NOW)})

/* "spin", "yield" or "park". */
W_HIDDEN const char *spec_wait_name(enum wait wait);

/* Writes one line into @error (@size bytes) and returns false. */
__attribute__((format(printf, 3, 4))) W_HIDDEN bool spec_wrong(char *error, size_t size,
							       const char *format, ...);

/*
 * Reports that there is no @kind called @name, of @length bytes, or that it is among @omitted (up
 * to NULL), the locks that this build lacks. Returns false.
 */
W_HIDDEN bool spec_no_lock(const char *kind, const char *const *omitted, const char *name,
			   size_t length, char *error, size_t size);

/*
 * Splits @spec. Stores the length of the lock's name, and returns the settings, or NULL if there
 * are none.
 */
W_HIDDEN const char *spec_split(const char *spec, size_t *length);

/*
 * Reads @pairs (KEY=VALUE[,...]; NULL: none) of @lock: `wait` into *@wait, the others into @given,
 * of @count elements as @settings has. Sets nothing. False if anything in it is wrong; @error says
 * what.
 */
W_HIDDEN bool spec_parse(const char *lock, const char *pairs, const struct setting *settings,
			 size_t count, enum wait *wait, struct given *given, char *error,
			 size_t size);

/*
 * Sets the named ones of @settings, each atomically by itself. Any thread may call it, at any time.
 */
W_HIDDEN void spec_set(const struct setting *settings, size_t count, const struct given *given);

/* Writes the keys of @lock, comma-separated, into @keys (@size bytes). */
W_HIDDEN void spec_keys(const char *lock, const struct setting *settings, size_t count, char *keys,
			size_t size);

#endif
