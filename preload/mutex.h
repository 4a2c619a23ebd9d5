/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* pthread_mutex_* for calls inside the library, which bypass the dynamic linker. */
#ifndef POUNDLOCK_PRELOAD_MUTEX_H
#define POUNDLOCK_PRELOAD_MUTEX_H

#include <pthread.h>
#include <time.h>

#include "world.h"

/* @site: the address to which the program's call returns. */
W_HIDDEN int mutex_init_at(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr,
			   const void *site);
W_HIDDEN int mutex_destroy(pthread_mutex_t *mutex);
W_HIDDEN int mutex_lock(pthread_mutex_t *mutex);
W_HIDDEN int mutex_trylock(pthread_mutex_t *mutex);
W_HIDDEN int mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at);
W_HIDDEN int mutex_unlock(pthread_mutex_t *mutex);
/* Whether @mutex is glibc's own. */
W_HIDDEN bool mutex_is_native(pthread_mutex_t *mutex);

#endif
