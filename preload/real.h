/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * glibc's own functions: for native objects, and for reading attributes.
 *
 * Until real_resolve() has looked them up, once at the start, they do nothing and return 0. Only an
 * allocator that locks while the loader allocates for this look-up can call them then. Fork
 * handlers of that time are kept, and registered afterwards.
 */
#ifndef POUNDLOCK_REAL_H
#define POUNDLOCK_REAL_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "world.h"

/*
 * REAL(name, version, parameters). Where an architecture has two generations of the condition
 * variables' functions, plain dlsym(RTLD_NEXT) may find the older one, which keeps only a pointer
 * in the caller's memory.
 */
#define REAL_COND "GLIBC_2.3.2"

#define REAL_FUNCTIONS(REAL)                                                                       \
	REAL(pthread_mutex_init, NULL, (pthread_mutex_t * mutex, const pthread_mutexattr_t *attr)) \
	REAL(pthread_mutex_destroy, NULL, (pthread_mutex_t * mutex))                               \
	REAL(pthread_mutex_lock, NULL, (pthread_mutex_t * mutex))                                  \
	REAL(pthread_mutex_trylock, NULL, (pthread_mutex_t * mutex))                               \
	REAL(pthread_mutex_clocklock, NULL,                                                        \
	     (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *at))                \
	REAL(pthread_mutex_unlock, NULL, (pthread_mutex_t * mutex))                                \
	REAL(pthread_cond_init, REAL_COND,                                                         \
	     (pthread_cond_t * cond, const pthread_condattr_t *attr))                              \
	REAL(pthread_cond_destroy, REAL_COND, (pthread_cond_t * cond))                             \
	REAL(pthread_cond_wait, REAL_COND, (pthread_cond_t * cond, pthread_mutex_t * mutex))       \
	REAL(pthread_cond_timedwait, REAL_COND,                                                    \
	     (pthread_cond_t * cond, pthread_mutex_t * mutex, const struct timespec *at))          \
	REAL(pthread_cond_clockwait, NULL,                                                         \
	     (pthread_cond_t * cond, pthread_mutex_t * mutex, clockid_t clock,                     \
	      const struct timespec *at))                                                          \
	REAL(pthread_cond_signal, REAL_COND, (pthread_cond_t * cond))                              \
	REAL(pthread_cond_broadcast, REAL_COND, (pthread_cond_t * cond))                           \
	REAL(pthread_rwlock_init, NULL,                                                            \
	     (pthread_rwlock_t * lock, const pthread_rwlockattr_t *attr))                          \
	REAL(pthread_rwlock_destroy, NULL, (pthread_rwlock_t * lock))                              \
	REAL(pthread_rwlock_rdlock, NULL, (pthread_rwlock_t * lock))                               \
	REAL(pthread_rwlock_tryrdlock, NULL, (pthread_rwlock_t * lock))                            \
	REAL(pthread_rwlock_clockrdlock, NULL,                                                     \
	     (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *at))                \
	REAL(pthread_rwlock_wrlock, NULL, (pthread_rwlock_t * lock))                               \
	REAL(pthread_rwlock_trywrlock, NULL, (pthread_rwlock_t * lock))                            \
	REAL(pthread_rwlock_clockwrlock, NULL,                                                     \
	     (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *at))                \
	REAL(pthread_rwlock_unlock, NULL, (pthread_rwlock_t * lock))                               \
	REAL(pthread_spin_init, NULL, (pthread_spinlock_t * lock, int pshared))                    \
	REAL(pthread_spin_destroy, NULL, (pthread_spinlock_t * lock))                              \
	REAL(pthread_spin_lock, NULL, (pthread_spinlock_t * lock))                                 \
	REAL(pthread_spin_trylock, NULL, (pthread_spinlock_t * lock))                              \
	REAL(pthread_spin_unlock, NULL, (pthread_spinlock_t * lock))                               \
	REAL(pthread_attr_setschedpolicy, NULL, (pthread_attr_t * attr, int policy))               \
	REAL(pthread_setschedparam, NULL,                                                          \
	     (pthread_t thread, int policy, const struct sched_param *param))                      \
	REAL(pthread_setschedprio, NULL, (pthread_t thread, int priority))                         \
	REAL(sched_setscheduler, NULL, (pid_t id, int policy, const struct sched_param *param))    \
	REAL(sched_setparam, NULL, (pid_t id, const struct sched_param *param))

struct real {
#define REAL(name, version, parameters) int(*name) parameters;
	REAL_FUNCTIONS(REAL)
#undef REAL
	int (*register_atfork)(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			       void *object);
};

extern W_HIDDEN struct real real;

/* Looks up all functions. Returns NULL, or the name of one that the C library lacks: ENOSYS. */
W_HIDDEN const char *real_resolve(void);

/*
 * Whether ThreadSanitizer is in the process. gcc's interceptors come after ours and would not be
 * called. clang's come before ours, but look up glibc's condition variables by version, and would
 * use them with our mutexes.
 */
W_HIDDEN bool real_has_sanitizer(void);

#endif
