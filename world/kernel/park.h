/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Before any lock whose waiters sleep is used.
 */
#ifndef POUNDLOCK_WORLD_KERNEL_PARK_H
#define POUNDLOCK_WORLD_KERNEL_PARK_H

void w_park_start(void);

#endif
