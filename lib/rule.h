/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Rules: which lock or settings a mutex gets, by the symbol that names it or by the function that
 * initialises it. docs/preload.md documents the file, a subset of TOML:
 *
 *   [[rule]]
 *   symbol = "cache*"
 *   lock = "shfl_mutex,policy=fifo"
 *
 * A rule with `rwlock` in place of `lock` is for readers-writer locks.
 *
 * The preload library applies them (preload/rules.h). `poundlock run --rules` checks them by the
 * same code.
 */
#ifndef POUNDLOCK_RULE_H
#define POUNDLOCK_RULE_H

#include "any_rw.h"

#define RULES_MOST 64
/* Bytes of a pattern, its end included. C++ names are long. */
#define RULES_PATTERN 512
/* Bytes of a file. */
#define RULES_TEXT 65536

enum rule_by {
	RULE_BY_NOTHING,
	RULE_BY_SYMBOL, /* the object that contains the mutex */
	RULE_BY_SITE,   /* the function that initialises it */
};

struct rule {
	enum rule_by by;
	uint32_t line;            /* of its [[rule]] */
	char name[RULES_PATTERN]; /* a glob, without the offset */
	bool exact;               /* SYMBOL+OFFSET: only the mutex at @offset in the object */
	uint64_t offset;
	/* One of them. Of any lock; if any_waits_for() it, only the settings differ */
	const struct any_ops *ops;
	const struct any_rw_ops *rw_ops;
};

struct rules {
	uint32_t count;
	struct rule rule[RULES_MOST];
};

/*
 * Reads @text, of @length bytes, into @rules. False, and one line in @error (@size bytes) that
 * begins with the number of the wrong line, if anything in it is wrong. Does not allocate.
 */
W_HIDDEN bool rules_read(struct rules *rules, const char *text, size_t length, char *error,
			 size_t size);

/*
 * Whether mutexes of a process with the lock @ops can have rules. False, and one line in @error, if
 * it is not any_is_inlined(): only such locks read their settings on no fast path.
 */
W_HIDDEN bool rules_allow(const struct any_ops *ops, char *error, size_t size);

/* For `poundlock run`: rules_read(), and rules_allow() of the lock that @spec names. */
W_HIDDEN bool rules_check(const char *text, size_t length, const char *spec, char *error,
			  size_t size);

/* Whether @rule's pattern matches @name. `*` stands for any characters, `?` for one. */
W_HIDDEN bool rule_matches(const struct rule *rule, const char *name);

#endif
