/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The choice between glibc's pthread_spin_* and ours, made of core/qspin.h. */
#ifndef POUNDLOCK_PRELOAD_SPIN_H
#define POUNDLOCK_PRELOAD_SPIN_H

#include <stdbool.h>
#include <stddef.h>

#include "world.h"

#define SPIN_DEFAULT "qspin"

/* Applies @spec to spin locks. False, with the reason in @error (@size bytes), if it is wrong. */
W_HIDDEN bool spin_find(const char *spec, char *error, size_t size);

/* Whether spin locks that are initialised from now on are ours. */
W_HIDDEN void spin_enable(bool enable);

#endif
