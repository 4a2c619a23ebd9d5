/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Names that the program gives to locks (pound_set_name()), by the locks' addresses: a lock has no
 * room for one. The table has a fixed size. Nothing here waits, or changes a lock.
 */
#ifndef POUNDLOCK_NAMES_H
#define POUNDLOCK_NAMES_H

#include <stdbool.h>

#include "world.h"

#define NAME_SIZE 32 /* with the final zero */

/*
 * Names @lock: the first bytes of @name, with '?' for control characters. NULL or "": removes its
 * name. False if there is no room.
 */
W_HIDDEN bool names_set(const void *lock, const char *name);

/* Copies the name of @lock, followed by zeroes. False, and only zeroes, if it has none. */
W_HIDDEN bool names_find(const void *lock, char name[NAME_SIZE]);

#endif
