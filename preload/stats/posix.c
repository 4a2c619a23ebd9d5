/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tables of the locks that are behind pthread's and C11's names. The functions of inlined locks
 * in mutex.c and rwlock.c count by themselves while the lock is free and its row is found at once.
 */
#include "posix.h"

#include "observe.h"
#include "preload.h"
#include "rules.h"
#include "stats.h"

struct any_ops stats_own_ops;
static struct any_rw_ops own_rw_ops;

#define OWN_OF(lock) (&stats_own_ops)
#define OWN_RW_OF(lock) (&own_rw_ops)

OBSERVED_LOCK(posix, stats_row_of, OWN_OF)
OBSERVED_RWLOCK(posix, stats_row_of, OWN_RW_OF, false)

/* ---- The tables ---- */

static struct any_ops ops;
static struct any_rw_ops rw_ops;
/* Whether each mutex has the process's lock, which is inlined, perhaps with settings of its own. */
static bool all_inlined;
/* Whether readers-writer locks have the default one, but for those that no fast path takes. */
static bool rw_default;

const struct any_ops *stats_observe_posix(const struct any_ops *own)
{
	stats_own_ops = *own;
	ops = *own;
	OBSERVE_OPS(posix, &ops);
	all_inlined = any_is_inlined(rules_unruled(own)) && !rules_other;
	return &ops;
}

const struct any_rw_ops *stats_observe_posix_rw(const struct any_rw_ops *own)
{
	own_rw_ops = *own;
	rw_ops = *own;
	OBSERVE_RW_OPS(posix, &rw_ops);
	rw_default = any_rw_is_default(rules_rw_unruled(own));
	return &rw_ops;
}

void stats_shorten_posix(const struct any_ops *chosen, const struct any_rw_ops *chosen_rw)
{
	if (chosen == &ops && all_inlined)
		mutex_observe_inlined();
	if (chosen_rw == &rw_ops && rw_default)
		rwlock_observe_default();
}
