/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Before tasks' use of locks that sleep is accounted, and after; without, they have no accounts that last.
 */
#ifndef POUNDLOCK_WORLD_KERNEL_ACCOUNTS_H
#define POUNDLOCK_WORLD_KERNEL_ACCOUNTS_H

void w_accounts_start(void);
void w_accounts_end(void);

#endif
