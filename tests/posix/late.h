/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What late.c calls in the library that it opens, late_library.c. */
#ifndef POUNDLOCK_TESTS_LATE_H
#define POUNDLOCK_TESTS_LATE_H

#include <pthread.h>

/* Counts up under locks of the library's own. */
typedef void late_own(unsigned rounds);
/* How far that has come. */
typedef unsigned long late_count(void);
/* Counts up under the program's mutex, and waits each time until somebody else has. */
typedef void late_shared(pthread_mutex_t *mutex, pthread_cond_t *cond, unsigned long *count, unsigned rounds);

#define EXPORTED __attribute__((visibility("default")))

EXPORTED late_own late_own_run;
EXPORTED late_count late_own_count;
EXPORTED late_shared late_shared_run;

#endif
