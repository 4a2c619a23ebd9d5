/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's spin lock with CFL (kernel/overlay/cfl_qspinlock.h). The next holder
 * charges a hold to the last one, whose account it writes. The clock decides who is owed time, and
 * so who may steal or is moved: where it does not stand still, the explorer chooses it.
 */
#define IS_STILL NOTES->still
#include "kernel_cfl.h"

static void begin_still(void)
{
	begin();
	NOTES->still = true;
}

const struct check_client check_clients[] = {
	ENTRY("still/2x1", once, 2, "contended", NULL, begin_still, finish_free, PROMISES),
	ENTRY("still/2x2", twice, 2, "contended", NULL, begin_still, finish_free, .bound = 3),
	ENTRY("still/trylock/3", or_try, 3, NULL, NULL, begin_still, finish_free, .bound = 2),
	ENTRY("2x1", once, 2, "contended", NULL, begin, finish_free, PROMISES),
	ENTRY("2x2", twice, 2, "contended", NULL, begin, finish_free, .bound = 1),
	ENTRY("held/3", held, 3, "shuffle steal", NULL, begin_held, finish_free, .walks = 20000),
	ENTRY("held/5", held, 5, "shuffle shuffle_move steal look_back", NULL, begin_held,
	      finish_free, .walks = 20000),
	{.name = NULL},
};
