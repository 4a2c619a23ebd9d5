/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pthread's functions with the types of poundlock.h: each must not compile. */
#include <poundlock.h>
#include <pthread.h>

void refused(pound_cond_t *cond, pound_mutex_t *mutex, pthread_cond_t *native_cond,
	     pthread_mutex_t *native_mutex);

void refused(pound_cond_t *cond, pound_mutex_t *mutex, pthread_cond_t *native_cond,
	     pthread_mutex_t *native_mutex)
{
	(void)cond, (void)mutex, (void)native_cond, (void)native_mutex;
#if defined(REFUSED_COND)
	pthread_cond_wait(cond, native_mutex);
#elif defined(REFUSED_MUTEX)
	pthread_cond_wait(native_cond, mutex);
#elif defined(REFUSED_SIGNAL)
	pthread_cond_signal(cond);
#elif defined(REFUSED_NATIVE)
	pound_cond_wait(cond, native_mutex);
#else
	pthread_cond_wait(native_cond, native_mutex);
	pound_cond_wait(cond, mutex);
#endif
}
