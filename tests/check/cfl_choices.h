/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of cfl_spin and cfl_mutex with hold times, and the clock, as the explorer chooses: at or over anybody's average,
 * now or in an hour. So newcomers may be entitled to steal or not, and waiters be moved or not, whatever has been before.
 * The walk back must meet waiters that go, and free their nodes.
 */
/* Not all that lock.c has is asked for here. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define CHECK_HELD() (CHECK_DO("held", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) ? UINT64_C(1) << 20 : UINT64_C(0))
#define CLIENTS                                                                                                        \
	ENTRIES("choices/2x1", lock_1, 2, "contended shuffle", "2", prepare, finish, .spurious = 0),                   \
		ENTRIES("choices/3x1", lock_1, 3, "contended shuffle steal look_back", "3", prepare, finish,           \
			.walks = 10000),                                                                               \
		ENTRIES("choices/held/5", held, 5, "shuffle shuffle_move shuffle_pass look_back free_for", NULL, hold, \
			finish, .walks = 10000, .domains = 1),                                                         \
		ENTRIES("choices/held_timed/5", held_timed, 5, "look_back", NULL, hold, finish, .walks = 10000),       \
		WALK_ENTRY,

#include "cfl_walk.h"

#include "lock.c"
