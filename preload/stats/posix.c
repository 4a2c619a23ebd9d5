/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tables of the locks that are behind pthread's and C11's names. The default locks have fast
 * paths of their own, without a call while the lock is free and its row is found at once.
 */
#include "posix.h"

#include "observe.h"
#include "rules.h"
#include "rw/shfl_rw.h"
#include "shfl_mutex.h"
#include "stats.h"

struct any_ops stats_own_ops;
static struct any_rw_ops own_rw_ops;

#define OWN_OF(lock) (&stats_own_ops)
#define OWN_RW_OF(lock) (&own_rw_ops)

OBSERVED_LOCK(posix, stats_row_of, OWN_OF)
OBSERVED_RWLOCK(posix, stats_row_of, OWN_RW_OF, false)

/* ---- The default locks ---- */

static int default_lock(void *lock, const struct any_ops *ops)
{
	const uint64_t key = stats_key(lock);
	struct stats_row *row;
	uint32_t seen;

	stats_check_fork();
	row = stats_row_at(stats_self.table, key, 0);
	if (w_unlikely(w_load_relaxed(&row->key) != key))
		row = stats_row_at(stats_self.table, key, 1);
	if (w_unlikely(w_load_relaxed(&row->key) != key))
		return posix_lock(lock, ops);
	if (w_unlikely(!shfl_mutex_take_free(lock, &seen)))
		return !stats_wait_lock(row, &stats_own_ops, lock, NULL,
					__builtin_return_address(0));
	stats_count_acquisition(row, false);
	return 0;
}

static bool default_unlock(void *lock, const struct any_ops *ops)
{
	if (!stats_is_last_and_quiet(stats_key(lock), false))
		return posix_unlock(lock, ops);
	return shfl_mutex_release(lock, (struct shfl_mutex_policy){.wait = WAIT_PARK});
}

static bool default_rdlock(void *lock, bool again, const struct any_rw_ops *ops)
{
	struct stats_row *row;
	uint32_t seen;

	stats_check_fork();
	row = stats_self.last[true];
	if (w_unlikely(w_load_relaxed(&row->key) != stats_readers_key(lock)) ||
	    w_unlikely(!rw_enter(&((struct shfl_rw *)lock)->word, false,
				 shfl_rw_against(false, again), 0, &seen)))
		return posix_rdlock(lock, again, ops);
	stats_count_acquisition(row, true);
	return true;
}

static bool default_rdunlock(void *lock, const struct any_rw_ops *ops)
{
	if (!stats_is_last_and_quiet(stats_readers_key(lock), true))
		return posix_rdunlock(lock, ops);
	return shfl_rw_release_read(lock, (struct shfl_rw_policy){.wait = WAIT_PARK});
}

/* ---- The tables ---- */

const struct any_ops *stats_observe_posix(const struct any_ops *own)
{
	static struct any_ops ops;

	stats_own_ops = *own;
	ops = *own;
	OBSERVE_OPS(posix, &ops);
	if (any_is_default(rules_unruled(own)) && !rules_other) {
		ops.lock = default_lock;
		ops.unlock = default_unlock;
	}
	return &ops;
}

const struct any_rw_ops *stats_observe_posix_rw(const struct any_rw_ops *own)
{
	static struct any_rw_ops ops;

	own_rw_ops = *own;
	ops = *own;
	OBSERVE_RW_OPS(posix, &ops);
	if (any_rw_is_default(own)) {
		ops.rdlock = default_rdlock;
		ops.rdunlock = default_rdunlock;
	}
	return &ops;
}
