/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The environment of the preload library: POUNDLOCK_LOCK, _RWLOCK, _SPINLOCK, _RULES, _CONTROL,
 * _VERBOSE, _DISABLE, _INHERIT, _STATS, _PROFILE. docs/preload.md documents them. A wrong value is
 * reported in one line on stderr, and all locks are native then; a wrong file of rules changes no
 * lock.
 */
#ifndef POUNDLOCK_CONFIG_H
#define POUNDLOCK_CONFIG_H

#include "any_rw.h"

/* In place of a lock's name: the C library's own. */
#define NATIVE "native"

struct config {
	const struct any_ops *ops;       /* NULL: everything native */
	bool native;                     /* by POUNDLOCK_LOCK: statistics are of native locks */
	const struct any_rw_ops *rw_ops; /* NULL: readers-writer locks native */
	const char *rules;               /* the file with the rules; NULL: none */
	const char *control;             /* the folder for the control page; NULL: none */
	const char *stats;               /* the folder for statistics; NULL: none */
	bool profile;                    /* with stacks */
	bool spin;                       /* spin locks are ours */
	bool verbose;
};

/* Writes a line to stderr. */
__attribute__((format(printf, 1, 2))) W_HIDDEN void config_say(const char *format, ...);

/*
 * Reads the environment and reports errors in it. POUNDLOCK_INHERIT=0: removes this library from
 * it.
 */
W_HIDDEN struct config config_read(void);

/*
 * Makes everything in @config native, without statistics, and reports the reason: "@what @is".
 */
W_HIDDEN void config_refuse(struct config *config, const char *what, const char *is);

/* POUNDLOCK_VERBOSE: reports on stderr which locks are active. */
W_HIDDEN void config_announce(const struct config *config);

#endif
