/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's mutex with ShflLock in a struct mutex (kernel/overlay/task_mutex.h). The
 * owner is the holder's task. In changed/... the settings change while the mutex is used.
 */
#define mutex_check_owner(task) check_assert(READ_ONCE(M->mutex.owner.counter) == (task))
#include "kernel_mutexes.h"

#define SHARED_BYTES sizeof(struct memory)

const struct check_client check_clients[] = {
	ENTRY("2x1", once, 2, "park", "0", prepare, finish_free),
	ENTRY("2x2", twice, 2, "park close", "0", prepare, finish_free, .bound = 2),
	ENTRY("3x1", once, 3, "park wake_late", "0", prepare, finish_free, .bound = 2),
	ENTRY("trylock/3", or_try, 3, NULL, "0", prepare, finish_free, .bound = 2),
	ENTRY("interrupted/2", interrupted, 2, "abandon", "0 1", prepare, finish_free),
	ENTRY("interrupted/3", interrupted, 3, "abandon skip", "0 1 2", prepare, finish_free,
	      .bound = 2),
	ENTRY("interrupted/empty/2", interrupted, 2, "abandon", "0 1", prepare_empty, finish_free),
	ENTRY("freed/2", freed, 2, NULL, "0", prepare, finish),
	ENTRY("order/2", twice, 2, "close", "0", prepare, finish_free, ORDERED),
	ENTRY("order/3", twice, 3, "close", "0", prepare, finish_free, ORDERED, .bound = 2),
	ENTRY("changed/2x2", twice, 2, "park close", "0", prepare_changes, finish_free, .bound = 2),
	ENTRY("changed/3x1", once, 3, "park wake_late", "0", prepare_changes, finish_free,
	      .bound = 2),
	ENTRY("changed/4x2", twice, 4, "shuffle", NULL, prepare_changes, finish_free,
	      .walks = 20000),
	ENTRY("changed/interrupted/3", interrupted, 3, "abandon skip", "0 1 2", prepare_changes,
	      finish_free, .bound = 2),
	ENTRY("changed/order/3", twice, 3, "close", "0", prepare_changes, finish_free, ORDERED,
	      .bound = 2),
	{.name = NULL},
};
