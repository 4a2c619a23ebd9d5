/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Mutexes and readers-writer locks with an algorithm or settings of their own, by POUNDLOCK_RULES
 * and POUNDLOCK_CONTROL (control.h). Rules never change: they are read before the first lock.
 *
 * Other settings of the process's lock are read only by a thread that has to wait, by the address
 * and the recorded function that initialised the lock. Another algorithm has other words: a lock
 * gets it when it is initialised, or at the start if it is an unused static one, and it records
 * that (layout.h).
 */
#ifndef POUNDLOCK_PRELOAD_RULES_H
#define POUNDLOCK_PRELOAD_RULES_H

#include "layout.h"
#include "rule.h"

/* Whether locks may have settings of their own. */
extern W_HIDDEN bool rules_on;
/* Whether some may have another lock than the process's. */
extern W_HIDDEN bool rules_other;

/*
 * Reads the rules in @file, and replaces *@ops, the process's lock, by a table that waits by them,
 * and *@rw_ops (NULL: native) likewise if there are rules for readers-writer locks. If they cannot
 * be used, reports the reason on stderr, and no rule applies. @verbose: also reports how many
 * symbols each rule matches.
 */
W_HIDDEN void rules_start(const char *file, bool verbose, const struct any_ops **ops,
			  const struct any_rw_ops **rw_ops);

/*
 * Replaces *@ops, the process's lock, by a table that waits by the settings of each mutex, unless
 * rules_start() has.
 */
W_HIDDEN void rules_replace(const struct any_ops **ops);

/*
 * Waits for @m by its own settings, or by the process's. False if @deadline (NULL: none) passes
 * first.
 */
W_HIDDEN bool rules_wait(struct mutex *m, const struct w_deadline *deadline);

/* The table that @ops replaced, or @ops. */
W_HIDDEN const struct any_ops *rules_unruled(const struct any_ops *ops);

/* The process enters a sandbox, which may not allow it to write: nothing is reported any more. */
W_HIDDEN void rules_be_quiet(void);

W_HIDDEN void rules_initialised_slow(struct mutex *m, const void *site);

/* @m has just been initialised by a call that returns to @site. */
static inline void rules_initialised(struct mutex *m, const void *site)
{
	if (w_unlikely(rules_on))
		rules_initialised_slow(m, site);
}

/* ---- Readers-writer locks (rules_rw.c) ---- */

/*
 * Replaces *@ops, the process's lock, by a table that finds the algorithm and the settings of each
 * object, unless an earlier call has.
 */
W_HIDDEN void rules_rw_replace(const struct any_rw_ops **ops);
/* The table that @ops replaced, or @ops. */
W_HIDDEN const struct any_rw_ops *rules_rw_unruled(const struct any_rw_ops *ops);
/* The process's lock, once a table has replaced it. */
W_HIDDEN const struct any_rw_ops *rules_rw_own(void);

/* Gives the free lock @rw the lock of rule @index. */
static inline void rules_rw_give(struct rwlock *rw, uint32_t index)
{
	rw->shared = SHARED_RULED;
	rw->rule = (unsigned char)index;
}

W_HIDDEN void rules_rw_initialised_slow(struct rwlock *rw, const void *site);

static inline void rules_rw_initialised(struct rwlock *rw, const void *site)
{
	if (w_unlikely(rules_on))
		rules_rw_initialised_slow(rw, site);
}

/* The rule @index. */
W_HIDDEN const struct rule *rules_at(uint32_t index);

/* The first rule that applies to @rw, of a process with the lock @own. NULL: none. */
W_HIDDEN const struct rule *rules_rw_of(const struct rwlock *rw, const struct any_rw_ops *own);

/* The address to which the call returned that initialised @rw; 0: unknown. */
W_HIDDEN uint64_t rules_rw_site(const struct rwlock *rw);

#endif
