/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's mutex with CFL. The clock decides who is owed time, and so who may steal
 * or is moved: where it does not stand still, the explorer chooses it.
 */
#define IS_STILL TASK_NOTES->still
#include "kernel_cfl_mutex.h"

static void prepare_still(void)
{
	prepare();
	TASK_NOTES->still = true;
}

static void prepare_still_empty(void)
{
	prepare_empty();
	TASK_NOTES->still = true;
}

const struct check_client check_clients[] = {
	ENTRY("still/2x1", once, 2, "park", "0", prepare_still, finish_free,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("still/2x2", twice, 2, "park", "0", prepare_still, finish_free, .bound = 2),
	ENTRY("still/3x1", once, 3, "park wake_late", "0", prepare_still, finish_free, .bound = 2),
	ENTRY("still/trylock/3", or_try, 3, NULL, "0", prepare_still, finish_free, .bound = 2),
	ENTRY("still/interrupted/2", interrupted, 2, "abandon", "0 1", prepare_still, finish_free),
	ENTRY("still/interrupted/3", interrupted, 3, "abandon skip", "0 1 2", prepare_still,
	      finish_free, .bound = 2),
	ENTRY("still/interrupted/empty/2", interrupted, 2, "abandon", "0 1", prepare_still_empty,
	      finish_free),
	ENTRY("still/freed/2", freed, 2, NULL, "0", prepare_still, finish),
	ENTRY("2x1", once, 2, "park", "0", prepare, finish_free),
	ENTRY("3x2", twice, 3, "shuffle steal", "0", prepare, finish_free, .walks = 20000),
	ENTRY("empty/4x2", twice, 4, "shuffle shuffle_move look_back", "0", prepare_empty,
	      finish_free, .walks = 20000),
	{.name = NULL},
};
