/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The settings in a lock's specification, NAME[,KEY=VALUE...]. Wrong input is reported in one line
 * that names it.
 *
 * A lock's settings are an array of numbers, in the order of the list NAME_settings(S) of its
 * header (core/locks.def). lib/any.h: each table of functions has one.
 */
#ifndef POUNDLOCK_SPEC_H
#define POUNDLOCK_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "part/wait.h"

/* Most settings of a lock, its way of waiting excluded. */
#define SPEC_SETTINGS 5

/* A setting of the lock that has this name. */
struct setting {
	const char *lock;
	const char *key;
	uint32_t place; /* in the array of the lock's settings */
	uint32_t otherwise, least, most;
	const char *choices; /* names of the values from 0 on, space-separated; "": numbers */
};

#define SPEC_WAYS (WAIT_PARK + 1)

/* Defines the places of the settings of lock @name, and their number, NAME_SETTINGS. */
#define SETTING_PLACES(name) enum { name##_settings(SETTING_PLACE) name##_SETTINGS }
#define SETTING_PLACE(lock, key, ...) lock##_##key##_place,

/* For a list NAME_settings(S): the initialisers of an array of defaults, and of struct setting. */
#define SETTING_DEFAULT(lock, key, otherwise, ...) (otherwise),
#define SETTING_ROW(lock, key, otherwise, least, most, ...) \
	{#lock, #key, lock##_##key##_place, otherwise, least, most, "" __VA_ARGS__},

/* The policy that the functions of lock @name take: a way of waiting, and an array of settings. */
#define LOCK_POLICY(name, way, settings)                                            \
	({                                                                          \
		const uint32_t *settings_ = (settings);                             \
                                                                                    \
		(void)settings_;                                                    \
		(struct name##_policy){.wait = (way), name##_settings(SETTING_OF)}; \
	})
#define SETTING_OF(lock, key, ...) .key = settings_[lock##_##key##_place],

/* "spin", "yield" or "park". */
W_HIDDEN const char *spec_wait_name(enum wait wait);

/* Writes one line into @error (@size bytes) and returns false. */
__attribute__((format(printf, 3, 4))) W_HIDDEN bool spec_wrong(char *error, size_t size,
							       const char *format, ...);

/*
 * Reports that there is no @kind called @name, of @length bytes, or that this build lacks the lock
 * of that name, of either kind. Returns false.
 */
W_HIDDEN bool spec_no_lock(const char *kind, const char *name, size_t length, char *error,
			   size_t size);

/*
 * Splits @spec. Stores the length of the lock's name, and returns the settings, or NULL if there
 * are none.
 */
W_HIDDEN const char *spec_split(const char *spec, size_t *length);

/*
 * Reads @pairs (KEY=VALUE[,...]; NULL: none) of @lock into *@wait and the lock's settings @values;
 * those that it does not name keep their values. @settings, of @count elements, describes them.
 * False if anything in it is wrong; @error says what, and the rest may be changed.
 */
W_HIDDEN bool spec_parse(const char *lock, const char *pairs, const struct setting *settings,
			 size_t count, enum wait *wait, uint32_t *values, char *error, size_t size);

/* Writes the keys of @lock, comma-separated, into @keys (@size bytes). */
W_HIDDEN void spec_keys(const char *lock, const struct setting *settings, size_t count, char *keys,
			size_t size);

#endif
