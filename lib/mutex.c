/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* pound_mutex_t: the parts of poundlock.h's inline functions that wait, or find waiters. */
#include <errno.h>

#include "any.h"
#include "observer.h"
#include "poundlock.h"
#include "settings.h"

_Static_assert(sizeof(pound_mutex_t) == sizeof(struct shfl_mutex), "the same struct");

bool pound_mutex_trylock_slow(pound_mutex_t *mutex, uint32_t seen)
{
	return shfl_mutex_try_acquire_slow((struct shfl_mutex *)mutex, seen);
}

static struct shfl_mutex_policy policy(void)
{
	return LOCK_POLICY(shfl_mutex, WAIT_PARK, any_default->settings);
}

static bool wait_for_mutex(void *mutex, const struct w_deadline *deadline)
{
	return shfl_mutex_acquire_slow(mutex, policy(), deadline);
}

static bool release_mutex(void *mutex)
{
	return shfl_mutex_release(mutex, policy());
}

static bool release_mutex_fairly(void *mutex)
{
	return shfl_mutex_release_fair(mutex, policy());
}

static bool lock_mutex_slow(pound_mutex_t *mutex, const struct w_deadline *deadline)
{
	if (w_unlikely(any_observer))
		return any_observer->mutex_wait(mutex, deadline, wait_for_mutex);
	return wait_for_mutex(mutex, deadline);
}

void pound_mutex_lock_slow(pound_mutex_t *mutex)
{
	(void)lock_mutex_slow(mutex, NULL);
}

static void unlock_mutex(pound_mutex_t *mutex, bool (*release)(void *mutex))
{
	if (w_unlikely(any_observer))
		(void)any_observer->mutex_release(mutex, release);
	else
		(void)release(mutex);
}

void pound_mutex_unlock_slow(pound_mutex_t *mutex)
{
	unlock_mutex(mutex, release_mutex);
}

void pound_mutex_unlock_fair(pound_mutex_t *mutex)
{
	/* relaxed: NULL: no waiter has come before us */
	if (!w_load_relaxed(&((struct shfl_mutex *)mutex)->tail))
		pound_mutex_unlock(mutex);
	else
		unlock_mutex(mutex, release_mutex_fairly);
}

int pound_mutex_timedlock(pound_mutex_t *mutex, clockid_t clock, const struct timespec *deadline)
{
	struct w_deadline until = {.clock = clock, .at = *deadline};

	if (pound_mutex_trylock(mutex))
		return 0;
	if (!any_deadline_valid(&until))
		return EINVAL;
	return lock_mutex_slow(mutex, &until) ? 0 : ETIMEDOUT;
}
