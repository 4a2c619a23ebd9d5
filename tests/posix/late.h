/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions of late_library.c, the library that late.c opens. */
#ifndef POUNDLOCK_TESTS_LATE_H
#define POUNDLOCK_TESTS_LATE_H

#include <pthread.h>

/* Counts under locks of the library's own. */
typedef void late_own(unsigned rounds);
/* The current count. */
typedef unsigned long late_count(void);
/* Counts under the program's mutex; each time waits until another thread has counted. */
typedef void late_shared(pthread_mutex_t *mutex, pthread_cond_t *cond, unsigned long *count,
			 unsigned rounds);

#define EXPORTED __attribute__((visibility("default")))

EXPORTED late_own late_own_run;
EXPORTED late_count late_own_count;
EXPORTED late_shared late_shared_run;

#endif
