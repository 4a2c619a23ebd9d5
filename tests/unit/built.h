/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For tests of builds with chosen locks (POUNDLOCK_LOCKS). */
#ifndef POUNDLOCK_UNIT_BUILT_H
#define POUNDLOCK_UNIT_BUILT_H

#include <stdbool.h>
#include <string.h>

#include "poundlock.h"

/* Whether this build has the lock that @spec names. A name of no lock counts as built. */
static inline bool built(const char *spec)
{
	static const char lacks[] = "this build has no ";
	char error[64];

	return !pound_lock_check(spec, error, sizeof(error)) ||
	       strncmp(error, lacks, strlen(lacks));
}

#endif
