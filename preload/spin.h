/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What pthread_spin_* are made of: core/qspin.h, or glibc's own.
 */
#ifndef POUNDLOCK_PRELOAD_SPIN_H
#define POUNDLOCK_PRELOAD_SPIN_H

#include <stdbool.h>
#include <stddef.h>

#include "world.h"

#define SPIN_DEFAULT "qspin"

/* Sets spin locks as @spec says. False, and what is wrong in @error (@size bytes), if it names none of ours. */
W_HIDDEN bool spin_find(const char *spec, char *error, size_t size);

/* Whether those that are initialised from now on are to be ours. */
W_HIDDEN void spin_enable(bool enable);

#endif
