/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * POUNDLOCK_RULES: mutexes with settings of their own. A mutex's settings are read only by a thread
 * that has to wait, and never change while the mutex is in use: the rules are read before the first
 * lock, and rules by site are recorded when a mutex is initialised.
 */
#ifndef POUNDLOCK_PRELOAD_RULES_H
#define POUNDLOCK_PRELOAD_RULES_H

#include "layout.h"

/* Whether there are rules. Set before the first lock. */
extern W_HIDDEN bool rules_on;

/*
 * Reads the rules in @file, and replaces *@ops, the process's lock, by a table that waits by them.
 * If they cannot be used, reports the reason on stderr, and no rule applies. @verbose: also reports
 * how many symbols each rule matches.
 */
W_HIDDEN void rules_start(const char *file, bool verbose, const struct any_ops **ops);

/* The lock with the settings of the first rule that applies to @m, or the process's. */
W_HIDDEN const struct any_ops *rules_ops_of(const struct mutex *m);

/* The table that @ops replaced, or @ops. */
W_HIDDEN const struct any_ops *rules_unruled(const struct any_ops *ops);

W_HIDDEN void rules_initialised_slow(struct mutex *m, const void *site);

/* @m has just been initialised by a call that returns to @site. */
static inline void rules_initialised(struct mutex *m, const void *site)
{
	if (w_unlikely(rules_on))
		rules_initialised_slow(m, site);
}

#endif
