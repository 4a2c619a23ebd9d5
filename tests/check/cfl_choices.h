/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of cfl_spin and cfl_mutex with hold times and a clock that the explorer chooses: at or
 * above every thread's average, now or an hour later. So at any moment newcomers may or may not be
 * entitled to steal, and waiters may or may not be moved. The walk back must meet waiters that
 * leave, and free their nodes.
 */
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define CHECK_HELD()                                                                   \
	(CHECK_DO("held", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) ? UINT64_C(1) << 20 \
								   : UINT64_C(0))
#define CLIENTS                                                                                 \
	ENTRIES("choices/2x1", lock_1, 2, "contended shuffle", "2", prepare, finish,            \
		.spurious = 0),                                                                 \
		ENTRIES("choices/3x1", lock_1, 3, "contended shuffle steal look_back", "3",     \
			prepare, finish, .walks = 20000),                                       \
		ENTRIES("choices/held/5", held, 5,                                              \
			"shuffle shuffle_move shuffle_pass look_back free_for", NULL, hold,     \
			finish, .walks = 10000, .domains = 1),                                  \
		ENTRIES("choices/held_timed/5", held_timed, 5, "look_back", NULL, hold, finish, \
			.walks = 10000),                                                        \
		WALK_ENTRY,

#include "cfl_walk.h"

#include "lock.c"
