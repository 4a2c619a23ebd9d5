/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What follows a lock's name in its specification: KEY=VALUE[,KEY=VALUE...]. Wrong input is one line that names it.
 */
#ifndef POUNDLOCK_SPEC_H
#define POUNDLOCK_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "wait.h"

/* What a lock's specification can set, for all locks of that name. */
struct setting {
	const char *lock;
	const char *key;
	uint32_t *value;
	uint32_t least, most;
	const char *choices; /* the names of the values from 0 on, separated by spaces; "": they are numbers */
};

#define SPEC_WAYS (WAIT_PARK + 1)

/* "spin", "yield" or "park". */
W_HIDDEN const char *spec_wait_name(enum wait wait);

/* Writes one line into @error (@size bytes) and returns false. */
__attribute__((format(printf, 3, 4))) W_HIDDEN bool spec_wrong(char *error, size_t size, const char *format, ...);

/* Splits @spec: how long the name of the lock is, and what follows it, or NULL. */
W_HIDDEN const char *spec_split(const char *spec, size_t *length);

/*
 * Reads what @pairs (NULL: nothing) say of @lock: into *@wait, and into @numbers, which are the @count @settings' values
 * otherwise. False if anything in it is wrong; @error says what.
 */
W_HIDDEN bool spec_parse(const char *lock, const char *pairs, const struct setting *settings, size_t count,
			 enum wait *wait, uint32_t *numbers, char *error, size_t size);

/* Sets the @settings to @numbers. */
W_HIDDEN void spec_set(const struct setting *settings, size_t count, const uint32_t *numbers);

/* The keys of @lock, comma-separated, into @keys. */
W_HIDDEN void spec_keys(const char *lock, const struct setting *settings, size_t count, char *keys, size_t size);

#endif
