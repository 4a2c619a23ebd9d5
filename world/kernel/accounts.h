/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Enables and disables the accounts of tasks with locks that sleep. While disabled, accounts do not
 * last. They are enabled once.
 */
#ifndef POUNDLOCK_WORLD_KERNEL_ACCOUNTS_H
#define POUNDLOCK_WORLD_KERNEL_ACCOUNTS_H

void w_accounts_start(void);
void w_accounts_end(void);

#endif
