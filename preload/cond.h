/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* pthread_cond_* for calls inside the library, which bypass the dynamic linker. */
#ifndef POUNDLOCK_PRELOAD_COND_H
#define POUNDLOCK_PRELOAD_COND_H

#include <pthread.h>
#include <time.h>

#include "world.h"

W_HIDDEN int cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
W_HIDDEN int cond_destroy(pthread_cond_t *cond);
W_HIDDEN int cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
W_HIDDEN int cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			    const struct timespec *at);
W_HIDDEN int cond_signal(pthread_cond_t *cond);
W_HIDDEN int cond_broadcast(pthread_cond_t *cond);

#endif
