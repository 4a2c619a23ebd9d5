/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * C11 mtx_* and cnd_*: in glibc the same objects as pthread_mutex_t and pthread_cond_t under other
 * names.
 */
#include <errno.h>
#include <threads.h>

#include "cond.h"
#include "mutex.h"
#include "preload.h"

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "one and the same");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "one and the same");

static int thrd_result(int error)
{
	switch (error) {
	case 0:
		return thrd_success;
	case EBUSY:
		return thrd_busy;
	case ETIMEDOUT:
		return thrd_timedout;
	case ENOMEM:
		return thrd_nomem;
	default:
		return thrd_error;
	}
}

EXPORT int mtx_init(mtx_t *mutex, int type)
{
	pthread_mutexattr_t attr;
	int error;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type & mtx_recursive ? PTHREAD_MUTEX_RECURSIVE
							      : PTHREAD_MUTEX_NORMAL);
	error = mutex_init_at((pthread_mutex_t *)mutex, &attr, __builtin_return_address(0));
	pthread_mutexattr_destroy(&attr);
	return thrd_result(error);
}

EXPORT void mtx_destroy(mtx_t *mutex)
{
	mutex_destroy((pthread_mutex_t *)mutex);
}

EXPORT int mtx_lock(mtx_t *mutex)
{
	return thrd_result(mutex_lock((pthread_mutex_t *)mutex));
}

EXPORT int mtx_trylock(mtx_t *mutex)
{
	return thrd_result(mutex_trylock((pthread_mutex_t *)mutex));
}

EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict at)
{
	return thrd_result(mutex_clocklock((pthread_mutex_t *)mutex, CLOCK_REALTIME, at));
}

EXPORT int mtx_unlock(mtx_t *mutex)
{
	return thrd_result(mutex_unlock((pthread_mutex_t *)mutex));
}

EXPORT int cnd_init(cnd_t *cond)
{
	return thrd_result(cond_init((pthread_cond_t *)cond, NULL));
}

EXPORT void cnd_destroy(cnd_t *cond)
{
	cond_destroy((pthread_cond_t *)cond);
}

EXPORT int cnd_wait(cnd_t *cond, mtx_t *mutex)
{
	return thrd_result(cond_wait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex));
}

EXPORT int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex,
			 const struct timespec *restrict at)
{
	return thrd_result(cond_timedwait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, at));
}

EXPORT int cnd_signal(cnd_t *cond)
{
	return thrd_result(cond_signal((pthread_cond_t *)cond));
}

EXPORT int cnd_broadcast(cnd_t *cond)
{
	return thrd_result(cond_broadcast((pthread_cond_t *)cond));
}
