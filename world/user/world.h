/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The world of Linux user space: C11 atomics, pause, futex; rseq or the vDSO for the current CPU;
 * sysfs for domains and, if there is no file, for the route. world/README.md is the contract of
 * each operation; the comments here describe the implementation.
 *
 * Nothing here calls malloc, takes a lock, is a cancellation point or changes errno.
 */
#ifndef POUNDLOCK_WORLD_USER_H
#define POUNDLOCK_WORLD_USER_H

#include "atomic.h"
#include "place.h"
#include "shares.h"
#include "thread.h"
#include "wait.h"

#endif
