/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The value of any policy's rank() that keeps a waiter in its place.
 */
#ifndef POUNDLOCK_POLICY_STAY_H
#define POUNDLOCK_POLICY_STAY_H

#include <stdint.h>

#define POLICY_STAY UINT32_MAX

#endif
