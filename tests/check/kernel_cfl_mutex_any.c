/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's mutex with CFL, with any order (cfl_any_order.h). Those with nodes on the
 * stack are not composed: a holder waits for the walkers of its node, and may owe a wake-up then.
 */
#define IS_STILL true
#define CFL_ORDER "cfl_any_order.h"
#define mutex_hints() any_hints(&per_ledger(ledgers, NULL)->ledger)
#include "kernel_cfl_mutex.h"

#define COMPOSED .flags = CHECK_CLIENT_COMPOSED | CHECK_CLIENT_COMPLETE

/* The first thread holds the mutex at the start, and does not come again. */
static void begun(uint32_t self)
{
	if (self) {
		once(self);
		return;
	}
	enter();
	unlock();
}

static void begin_empty(void)
{
	prepare_empty();
	M->mutex.wait_lock = CFL_LOCKED; /* the place of `state` */
}

const struct check_client check_clients[] = {
	ENTRY("2x1", once, 2, "park", "0", prepare, finish_free),
	ENTRY("2x2", twice, 2, "park steal", "0", prepare, finish_free),
	ENTRY("composed/3x1", once, 3, "shuffle look_back steal park", "0", prepare, finish_free,
	      COMPOSED),
	ENTRY("empty/2x1", once, 2, "park", "0", prepare_empty, finish_free),
	ENTRY("empty/held/3", begun, 3, "park look_back", "0", begin_empty, finish_free,
	      .bound = 2),
	ENTRY("composed/interrupted/3", interrupted, 3, "abandon skip", "0 1 2", prepare,
	      finish_free, COMPOSED),
	ENTRY("empty/4x2", twice, 4, "shuffle shuffle_move steal look_back", "0", prepare_empty,
	      finish_free, .walks = 5000),
	{.name = NULL},
};
