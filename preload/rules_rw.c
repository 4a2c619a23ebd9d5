/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The table that finds the algorithm of each pthread_rwlock_t, that of its rule or the process's,
 * and the settings by which a thread waits for it. An object with another algorithm is on no fast
 * path (layout.h).
 */
#include "control.h"
#include "live.h"
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

/* ---- Waits: by the settings of the first rule, or by those that `poundlock control` wants ---- */

struct waiter {
	const struct any_rw_ops *by;
	struct any_rw_ops changed;
	struct control_wait wait;
};

static void begin_wait(struct waiter *waiter, const struct rwlock *rw)
{
	const struct rule *rule = rules_rw_of(rw, own);
	struct control_subject subject;

	waiter->by = rule ? rule->rw_ops : own;
	if (!control_on)
		return;
	subject = (struct control_subject){.address = (uintptr_t)rw,
					   .site = rules_rw_site(rw),
					   .own = live_rw_word(waiter->by),
					   .lock = waiter->by->name,
					   .rule_line = rule ? rule->line : 0,
					   .is_rw = true};
	waiter->changed = *waiter->by;
	if (control_begin(&waiter->wait, &subject, waiter->changed.settings))
		waiter->by = &waiter->changed;
}

static void end_wait(const struct waiter *waiter)
{
	if (control_on)
		control_end(&waiter->wait);
}

W_SLOW static bool wait_read(void *lock, bool again, const struct w_deadline *deadline)
{
	struct waiter waiter;
	bool entered;

	begin_wait(&waiter, lock);
	entered = deadline ? waiter.by->timedrdlock(lock, again, deadline, waiter.by)
			   : waiter.by->rdlock(lock, again, waiter.by);
	end_wait(&waiter);
	return entered;
}

W_SLOW static bool wait_write(void *lock, const struct w_deadline *deadline)
{
	struct waiter waiter;
	bool entered = true;

	begin_wait(&waiter, lock);
	if (deadline)
		entered = waiter.by->timedwrlock(lock, deadline, waiter.by);
	else
		waiter.by->wrlock(lock, waiter.by);
	end_wait(&waiter);
	return entered;
}

/* ---- The table ---- */

static bool ruled_tryrdlock(void *lock, bool again)
{
	return ops_of(lock)->tryrdlock(lock, again);
}

static bool ruled_timedrdlock(void *lock, bool again, const struct w_deadline *deadline,
			      const struct any_rw_ops *ops)
{
	(void)ops;
	return ruled_tryrdlock(lock, again) || wait_read(lock, again, deadline);
}

static bool ruled_rdlock(void *lock, bool again, const struct any_rw_ops *ops)
{
	return ruled_timedrdlock(lock, again, NULL, ops);
}

static bool ruled_full(void *lock)
{
	return ops_of(lock)->full(lock);
}

static bool ruled_trywrlock(void *lock)
{
	return ops_of(lock)->trywrlock(lock);
}

static bool ruled_timedwrlock(void *lock, const struct w_deadline *deadline,
			      const struct any_rw_ops *ops)
{
	(void)ops;
	return ruled_trywrlock(lock) || wait_write(lock, deadline);
}

static void ruled_wrlock(void *lock, const struct any_rw_ops *ops)
{
	(void)ruled_timedwrlock(lock, NULL, ops);
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
	if (own)
		return;
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

const struct any_rw_ops *rules_rw_own(void)
{
	return own;
}
