/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What follows a lock's name in its specification: KEY=VALUE[,KEY=VALUE...]. Wrong input is one line that names it.
 */
#ifndef POUNDLOCK_SPEC_H
#define POUNDLOCK_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "part/wait.h"

/* What a lock's specification can set, for all locks of that name. */
struct setting {
	const char *lock;
	const char *key;
	W_ATOMIC(uint32_t) *value;
	uint32_t least, most;
	const char *choices; /* the names of the values from 0 on, separated by spaces; "": they are numbers */
};

/* What a specification says of a setting. */
struct said {
	bool named;
	uint32_t number;
};

/* The value of a setting, which another thread may set at any time. */
static inline uint32_t spec_value(W_ATOMIC(uint32_t) *value)
{
	/* relaxed: a number that publishes nothing, and depends on no other */
	return atomic_load_explicit(value, memory_order_relaxed);
}

#define SPEC_WAYS (WAIT_PARK + 1)

/* "spin", "yield" or "park". */
W_HIDDEN const char *spec_wait_name(enum wait wait);

/* Writes one line into @error (@size bytes) and returns false. */
__attribute__((format(printf, 3, 4))) W_HIDDEN bool spec_wrong(char *error, size_t size, const char *format, ...);

/* Splits @spec: how long the name of the lock is, and what follows it, or NULL. */
W_HIDDEN const char *spec_split(const char *spec, size_t *length);

/*
 * Reads what @pairs (NULL: nothing) say of @lock: into *@wait, if they name it, and into @said, of each of the @count
 * @settings. Sets nothing. False if anything in it is wrong; @error says what.
 */
W_HIDDEN bool spec_parse(const char *lock, const char *pairs, const struct setting *settings, size_t count,
			 enum wait *wait, struct said *said, char *error, size_t size);

/* Sets those @settings that are named in @said, each by itself. Any thread may, at any time. */
W_HIDDEN void spec_set(const struct setting *settings, size_t count, const struct said *said);

/* The keys of @lock, comma-separated, into @keys. */
W_HIDDEN void spec_keys(const char *lock, const struct setting *settings, size_t count, char *keys, size_t size);

#endif
