/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A thread that a signal handler keeps from running until the test releases it. */
#ifndef POUNDLOCK_TESTS_KEPT_H
#define POUNDLOCK_TESTS_KEPT_H

#include "posix.h"

static atomic_bool kept, released;

static void keep(int number)
{
	(void)number;
	atomic_store(&kept, true);
	while (!atomic_load(&released))
		sched_yield();
}

#endif
