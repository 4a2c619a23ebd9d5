/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hmcs with three levels: both domains are in one part of the machine, below the root. The clients
 * of lock.c have two levels.
 *
 * These clients do not fork: a turn that a thread missing in the child has begun needs that
 * thread's node, which the world of user space keeps but the checker does not. tests/unit/cst.c
 * tests that.
 */
#define ADJUST(policy) ((policy).levels = 3)
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define CLIENTS                                                                                    \
	ENTRIES("levels/2x1", lock_1, 2, "contended", "2", prepare, finish, .spurious = 1),        \
		ENTRIES("levels/trylock/2", try, 2, "", "1 2", prepare, finish, .spurious = 1),    \
		ENTRIES("levels/timed/2", timed, 2, "", "1 2", prepare, finish, .spurious = 1),    \
		ENTRIES("levels/freed/2", freed, 2, "contended", "2", prepare, finish_freed,       \
			.spurious = 1),                                                            \
		ENTRIES("levels/2x2", lock_2, 2, "contended handover_near", NULL, prepare, finish, \
			.walks = 10000, .spurious = 1),                                            \
		ENTRIES("levels/3x1", lock_1, 3, "handover_local handover_near batch", NULL,       \
			prepare, finish, .walks = 10000),                                          \
		ENTRY("levels/moved/3/park", lock_1_park, 3, "contended", NULL, prepare, finish,   \
		      .moves = 2, .walks = 10000),                                                 \
		ENTRY("levels/held_timed/6/park", held_timed_park, 6, "", NULL, hold, finish,      \
		      .walks = 5000),                                                              \
		ENTRY("levels/held/5/park", held_park, 5,                                          \
		      "handover_local handover_near batch park", NULL, hold, finish,               \
		      .walks = 10000, .spurious = 1),
#include "../lock.c"
