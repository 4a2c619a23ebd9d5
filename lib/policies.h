/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The program's own policies, by name. A policy has a number, from POLICY_OWN up
 * (core/policy/policy.h). A name keeps its number for the life of the process.
 */
#ifndef POUNDLOCK_POLICIES_H
#define POUNDLOCK_POLICIES_H

#include <stdbool.h>
#include <stdint.h>

#include "world.h"

/* Stores the number of the registered policy @name. False if there is none. */
W_HIDDEN bool policies_find(const char *name, uint32_t *number);

/*
 * Keeps the policy @number registered, the same, until policies_drop(). False if it is not. The
 * library's own policies always are.
 */
W_HIDDEN bool policies_hold(uint32_t number);
W_HIDDEN void policies_drop(uint32_t number);

#endif
