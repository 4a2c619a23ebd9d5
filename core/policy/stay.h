/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What every policy's rank() may answer besides a rank: the waiter stays where it is.
 */
#ifndef POUNDLOCK_POLICY_STAY_H
#define POUNDLOCK_POLICY_STAY_H

#include <stdint.h>

#define POLICY_STAY UINT32_MAX

#endif
