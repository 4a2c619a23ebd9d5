/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compiles as C and C++. With one of the macros MIX_* it does not: pthread's functions with the
 * types of poundlock.h, or the other way round.
 */
#define _GNU_SOURCE /* pthread_cond_clockwait() */
#include <poundlock.h>
#include <pthread.h>

void use(pound_cond_t *cond, pound_mutex_t *mutex, pound_lock_t *lock, pthread_cond_t *native_cond,
	 pthread_mutex_t *native_mutex);

void use(pound_cond_t *cond, pound_mutex_t *mutex, pound_lock_t *lock, pthread_cond_t *native_cond,
	 pthread_mutex_t *native_mutex)
{
	struct timespec at = {0, 0};

#if defined(MIX_COND_WAIT)
	pthread_cond_wait(cond, native_mutex);
#elif defined(MIX_MUTEX_WAIT)
	pthread_cond_wait(native_cond, mutex);
#elif defined(MIX_BOTH_WAIT)
	pthread_cond_wait(cond, mutex);
#elif defined(MIX_COND_TIMEDWAIT)
	pthread_cond_timedwait(cond, native_mutex, &at);
#elif defined(MIX_MUTEX_TIMEDWAIT)
	pthread_cond_timedwait(native_cond, mutex, &at);
#elif defined(MIX_COND_CLOCKWAIT)
	pthread_cond_clockwait(cond, native_mutex, CLOCK_MONOTONIC, &at);
#elif defined(MIX_MUTEX_CLOCKWAIT)
	pthread_cond_clockwait(native_cond, mutex, CLOCK_MONOTONIC, &at);
#elif defined(MIX_COND_SIGNAL)
	pthread_cond_signal(cond);
#elif defined(MIX_COND_BROADCAST)
	pthread_cond_broadcast(cond);
#elif defined(MIX_MUTEX_LOCK)
	pthread_mutex_lock(mutex);
#elif defined(MIX_LOCK_WAIT)
	pthread_cond_wait(native_cond, lock);
#elif defined(MIX_NATIVE_MUTEX)
	pound_cond_wait(cond, native_mutex);
#elif defined(MIX_NATIVE_COND)
	pound_cond_wait(native_cond, mutex);
#elif defined(MIX_NATIVE_SIGNAL)
	pound_cond_signal(native_cond);
#elif defined(MIX_OTHER_LOCK)
	pound_cond_wait(cond, lock);
#endif
	pthread_mutex_lock(native_mutex);
	pthread_cond_wait(native_cond, native_mutex);
	pthread_cond_timedwait(native_cond, native_mutex, &at);
	pthread_cond_clockwait(native_cond, native_mutex, CLOCK_MONOTONIC, &at);
	pthread_cond_signal(native_cond);
	pthread_cond_broadcast(native_cond);
	pound_mutex_lock(mutex);
	pound_cond_wait(cond, mutex);
	pound_cond_timedwait(cond, mutex, CLOCK_MONOTONIC, &at);
	pound_cond_wait_lock(cond, lock);
	pound_cond_signal(cond);
	pound_cond_broadcast(cond);
}
