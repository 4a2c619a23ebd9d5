/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The clients of readers-writer locks for BRAVO alone: the lock below it is a specification, so
 * that clients are explored further than with a lock that is built.
 */
#define LOCK bravo_any_rw
#define LOCK_HEADER "bravo_any_rw.h"
#define LOCK_IS_SPECIFIED
#include "rw.c"
