/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by the clients of the kernel's mutex with CFL in a struct mutex
 * (kernel/overlay/cfl_task_mutex.h), whose ledger is elsewhere, and whose nodes come from a pool
 * that may be empty. The includer defines IS_STILL as in kernel_ledgers.h, and may define what
 * kernel_mutexes.h allows.
 */
#ifndef POUNDLOCK_CHECK_KERNEL_CFL_MUTEX_H
#define POUNDLOCK_CHECK_KERNEL_CFL_MUTEX_H

#include "kernel_ledgers.h"

#define MUTEX_BY_CFL
#define AT_ledgers 128
#define SHARED_BYTES (AT_ledgers + sizeof(ledgers))
/* `start` is in its place. */
#define mutex_check_owner(task) ((void)(task))
#include "kernel_mutexes.h"

_Static_assert(sizeof(struct memory) <= AT_ledgers, "the ledger is behind it");

#endif
