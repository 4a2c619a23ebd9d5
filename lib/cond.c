/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* pound_cond_t: the condition variable of core/cond.h with each kind of lock of poundlock.h. */
#include <errno.h>

#include "any.h"
#include "cond.h"
#include "poundlock.h"

_Static_assert(sizeof(pound_cond_t) == sizeof(struct cond), "the same struct");
_Static_assert(_Alignof(pound_cond_t) == _Alignof(struct cond), "the same struct");

/* Waits without a deadline. */
static void wait_with(pound_cond_t *cond, struct cond_lock lock)
{
	(void)cond_wait((struct cond *)cond, lock, NULL);
}

static int error_of(enum cond_result result)
{
	switch (result) {
	case COND_TIMED_OUT:
		return ETIMEDOUT;
	case COND_REFUSED:
		return EBUSY;
	default:
		return 0;
	}
}

static int wait_until(pound_cond_t *cond, struct cond_lock lock, clockid_t clock,
		      const struct timespec *deadline)
{
	struct w_deadline until = {.clock = clock, .at = *deadline};

	if (!any_deadline_valid(&until))
		return EINVAL;
	return error_of(cond_wait((struct cond *)cond, lock, &until));
}

/* ---- The locks ---- */

static void lock_mutex(void *mutex)
{
	pound_mutex_lock(mutex);
}

static void unlock_mutex(void *mutex)
{
	pound_mutex_unlock(mutex);
}

static struct cond_lock of_mutex(pound_mutex_t *mutex)
{
	return (struct cond_lock){mutex, unlock_mutex, lock_mutex, false};
}

static void lock_lock(void *lock)
{
	pound_lock_lock(lock);
}

static void unlock_lock(void *lock)
{
	pound_lock_unlock(lock);
}

static struct cond_lock of_lock(pound_lock_t *lock)
{
	return (struct cond_lock){lock, unlock_lock, lock_lock, false};
}

static void lock_writer(void *lock)
{
	pound_rwlock_wrlock(lock);
}

static void unlock_writer(void *lock)
{
	pound_rwlock_wrunlock(lock);
}

static struct cond_lock of_writer(pound_rwlock_t *lock)
{
	return (struct cond_lock){lock, unlock_writer, lock_writer, false};
}

static struct cond_lock of_any(void *lock, const struct pound_lockable *type, bool only)
{
	return (struct cond_lock){lock, type->unlock, type->lock, only};
}

/* ---- The interface ---- */

void pound_cond_wait(pound_cond_t *cond, pound_mutex_t *mutex)
{
	wait_with(cond, of_mutex(mutex));
}

int pound_cond_timedwait(pound_cond_t *cond, pound_mutex_t *mutex, clockid_t clock,
			 const struct timespec *deadline)
{
	return wait_until(cond, of_mutex(mutex), clock, deadline);
}

void pound_cond_wait_lock(pound_cond_t *cond, pound_lock_t *lock)
{
	wait_with(cond, of_lock(lock));
}

int pound_cond_timedwait_lock(pound_cond_t *cond, pound_lock_t *lock, clockid_t clock,
			      const struct timespec *deadline)
{
	return wait_until(cond, of_lock(lock), clock, deadline);
}

void pound_cond_wait_wrlock(pound_cond_t *cond, pound_rwlock_t *lock)
{
	wait_with(cond, of_writer(lock));
}

int pound_cond_timedwait_wrlock(pound_cond_t *cond, pound_rwlock_t *lock, clockid_t clock,
				const struct timespec *deadline)
{
	return wait_until(cond, of_writer(lock), clock, deadline);
}

void pound_cond_wait_any(pound_cond_t *cond, void *lock, const struct pound_lockable *type)
{
	wait_with(cond, of_any(lock, type, false));
}

int pound_cond_timedwait_any(pound_cond_t *cond, void *lock, const struct pound_lockable *type,
			     clockid_t clock, const struct timespec *deadline)
{
	return wait_until(cond, of_any(lock, type, false), clock, deadline);
}

int pound_cond_wait_only(pound_cond_t *cond, void *lock, const struct pound_lockable *type,
			 clockid_t clock, const struct timespec *deadline)
{
	if (deadline)
		return wait_until(cond, of_any(lock, type, true), clock, deadline);
	return error_of(cond_wait((struct cond *)cond, of_any(lock, type, true), NULL));
}

bool pound_cond_signal_slow(pound_cond_t *cond)
{
	return cond_signal((struct cond *)cond);
}

size_t pound_cond_broadcast_slow(pound_cond_t *cond)
{
	return cond_broadcast((struct cond *)cond);
}
