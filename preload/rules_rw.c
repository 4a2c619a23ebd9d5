/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The table that finds the lock of each pthread_rwlock_t: that of its rule, or the process's. An
 * object with a rule is on no fast path (layout.h).
 */
#include "rules.h"

/* The process's lock, and the table in its place. */
static const struct any_rw_ops *own;
static struct any_rw_ops ruled;

static inline bool is_ruled(const void *lock)
{
	return w_unlikely(((const struct rwlock *)lock)->shared == SHARED_RULED);
}

static inline const struct any_rw_ops *ops_of(const void *lock)
{
	return is_ruled(lock) ? rules_at(((const struct rwlock *)lock)->rule)->rw_ops : own;
}

/* Before a wait for @lock: reports a rule that does not apply to it. */
static inline void note_wait(const void *lock)
{
	if (!is_ruled(lock))
		rules_rw_missed(lock, own->name);
}

static bool ruled_tryrdlock(void *lock, bool again)
{
	return ops_of(lock)->tryrdlock(lock, again);
}

static bool ruled_rdlock(void *lock, bool again, const struct any_rw_ops *ops)
{
	const struct any_rw_ops *by = ops_of(lock);

	(void)ops;
	if (by->tryrdlock(lock, again))
		return true;
	note_wait(lock);
	return by->rdlock(lock, again, by);
}

static bool ruled_timedrdlock(void *lock, bool again, const struct w_deadline *deadline,
			      const struct any_rw_ops *ops)
{
	const struct any_rw_ops *by = ops_of(lock);

	(void)ops;
	return by->timedrdlock(lock, again, deadline, by);
}

static bool ruled_full(void *lock)
{
	return ops_of(lock)->full(lock);
}

static bool ruled_trywrlock(void *lock)
{
	return ops_of(lock)->trywrlock(lock);
}

static void ruled_wrlock(void *lock, const struct any_rw_ops *ops)
{
	const struct any_rw_ops *by = ops_of(lock);

	(void)ops;
	if (by->trywrlock(lock))
		return;
	note_wait(lock);
	by->wrlock(lock, by);
}

static bool ruled_timedwrlock(void *lock, const struct w_deadline *deadline,
			      const struct any_rw_ops *ops)
{
	const struct any_rw_ops *by = ops_of(lock);

	(void)ops;
	return by->timedwrlock(lock, deadline, by);
}

#define RULED_UNLOCK(name)                                                 \
	static bool ruled_##name(void *lock, const struct any_rw_ops *ops) \
	{                                                                  \
		const struct any_rw_ops *by = ops_of(lock);                \
                                                                           \
		(void)ops;                                                 \
		return by->name(lock, by);                                 \
	}
RULED_UNLOCK(rdunlock)
RULED_UNLOCK(wrunlock)
RULED_UNLOCK(rdunlock_fair)
RULED_UNLOCK(wrunlock_fair)

void rules_rw_replace(const struct any_rw_ops **ops)
{
	own = *ops;
	ruled = *own;
	ruled.rdlock = ruled_rdlock;
	ruled.tryrdlock = ruled_tryrdlock;
	ruled.timedrdlock = ruled_timedrdlock;
	ruled.full = ruled_full;
	ruled.rdunlock = ruled_rdunlock;
	ruled.wrlock = ruled_wrlock;
	ruled.trywrlock = ruled_trywrlock;
	ruled.timedwrlock = ruled_timedwrlock;
	ruled.wrunlock = ruled_wrunlock;
	ruled.rdunlock_fair = ruled_rdunlock_fair;
	ruled.wrunlock_fair = ruled_wrunlock_fair;
	*ops = &ruled;
}

const struct any_rw_ops *rules_rw_unruled(const struct any_rw_ops *ops)
{
	return ops == &ruled ? own : ops;
}
