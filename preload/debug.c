/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Tables of functions that check, and then do what the lock's own functions do. An inlined lock is
 * then also used through its table, so that no fast path knows of the checks.
 */
#include "debug.h"

#include "checks/checks.h"

bool debug_on;

/* Of this library, set by the linker. */
extern const char __ehdr_start W_HIDDEN, _end W_HIDDEN;

static const struct any_ops *own;
static const struct any_rw_ops *own_rw;

/* ---- Locks ---- */

static int checked_lock(void *lock, const struct any_ops *ops)
{
	(void)ops;
	pound_debug_wait(lock, 0);
	(void)own->lock(lock, own);
	pound_debug_locked(lock, 0);
	return 0;
}

static bool checked_trylock(void *lock)
{
	bool taken = own->trylock(lock);

	if (taken)
		pound_debug_locked(lock, POUND_WATCH_TRY);
	return taken;
}

static bool checked_timedlock(void *lock, const struct w_deadline *deadline,
			      const struct any_ops *ops)
{
	bool taken = own->timedlock(lock, deadline, own);

	(void)ops;
	if (taken)
		pound_debug_locked(lock, POUND_WATCH_TRY);
	return taken;
}

static bool checked_unlock(void *lock, const struct any_ops *ops)
{
	(void)ops;
	pound_debug_unlock(lock, 0);
	return own->unlock(lock, own);
}

/* ---- Readers-writer locks ---- */

static unsigned reader(bool again)
{
	return again ? POUND_WATCH_READ | POUND_WATCH_AGAIN : POUND_WATCH_READ;
}

static bool checked_rdlock(void *lock, bool again, const struct any_rw_ops *ops)
{
	bool taken;

	(void)ops;
	pound_debug_wait(lock, reader(again));
	taken = own_rw->rdlock(lock, again, own_rw);
	if (taken)
		pound_debug_locked(lock, reader(again));
	return taken;
}

static bool checked_tryrdlock(void *lock, bool again)
{
	bool taken = own_rw->tryrdlock(lock, again);

	if (taken)
		pound_debug_locked(lock, reader(again));
	return taken;
}

static bool checked_timedrdlock(void *lock, bool again, const struct w_deadline *deadline,
				const struct any_rw_ops *ops)
{
	bool taken = own_rw->timedrdlock(lock, again, deadline, own_rw);

	(void)ops;
	if (taken)
		pound_debug_locked(lock, reader(again));
	return taken;
}

/* Also called for a writer's lock that this thread does not hold: then it fails. */
static bool checked_rdunlock(void *lock, const struct any_rw_ops *ops)
{
	(void)ops;
	pound_debug_unlock(lock, POUND_WATCH_READ | POUND_WATCH_MAYBE);
	return own_rw->rdunlock(lock, own_rw);
}

static void checked_wrlock(void *lock, const struct any_rw_ops *ops)
{
	(void)ops;
	pound_debug_wait(lock, 0);
	own_rw->wrlock(lock, own_rw);
	pound_debug_locked(lock, 0);
}

static bool checked_trywrlock(void *lock)
{
	bool taken = own_rw->trywrlock(lock);

	if (taken)
		pound_debug_locked(lock, POUND_WATCH_TRY);
	return taken;
}

static bool checked_timedwrlock(void *lock, const struct w_deadline *deadline,
				const struct any_rw_ops *ops)
{
	bool taken = own_rw->timedwrlock(lock, deadline, own_rw);

	(void)ops;
	if (taken)
		pound_debug_locked(lock, POUND_WATCH_TRY);
	return taken;
}

static bool checked_wrunlock(void *lock, const struct any_rw_ops *ops)
{
	(void)ops;
	pound_debug_unlock(lock, 0);
	return own_rw->wrunlock(lock, own_rw);
}

/* ---- The tables ---- */

static struct any_ops checked;
static struct any_rw_ops checked_rw;

void debug_wrap(const struct any_ops **ops, const struct any_rw_ops **rw_ops)
{
	if (!debug_is_asked())
		return;
	debug_skip_from = (uintptr_t)&__ehdr_start;
	debug_skip_to = (uintptr_t)&_end;
	own = *ops;
	checked = *own;
	checked.lock = checked_lock;
	checked.trylock = checked_trylock;
	checked.timedlock = checked_timedlock;
	checked.unlock = checked_unlock;
	*ops = &checked;
	debug_on = true;
	own_rw = *rw_ops;
	if (!own_rw)
		return;
	checked_rw = *own_rw;
	checked_rw.rdlock = checked_rdlock;
	checked_rw.tryrdlock = checked_tryrdlock;
	checked_rw.timedrdlock = checked_timedrdlock;
	checked_rw.rdunlock = checked_rdunlock;
	checked_rw.wrlock = checked_wrlock;
	checked_rw.trywrlock = checked_trywrlock;
	checked_rw.timedwrlock = checked_timedwrlock;
	checked_rw.wrunlock = checked_wrunlock;
	*rw_ops = &checked_rw;
}

const struct any_ops *debug_unchecked(const struct any_ops *ops)
{
	return ops == &checked ? own : ops;
}

void debug_created_slow(const void *lock)
{
	pound_debug_create(lock, 0);
}

void debug_destroyed_slow(const void *lock)
{
	pound_debug_destroy(lock);
}
