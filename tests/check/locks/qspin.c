/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The lock in memory shared by two processes, with the even and the odd threads. Threads of the
 * process whose queue the word does not name must poll.
 */
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define CHECK_PROCESS() (1 + check_engine->self() % 2)
#define CLIENTS                                                                                 \
	ENTRIES("processes/2x2", lock_2, 2, "contended", "4", prepare, finish, .spurious = 1),  \
		ENTRIES("processes/3x1", lock_1, 3, "contended unqueued", "3", prepare, finish, \
			.spurious = 0),                                                         \
		ENTRIES("processes/trylock/3", try, 3, "", "1 2 3", prepare, finish,            \
			.spurious = 0),                                                         \
		ENTRIES("processes/held/5", held, 5, "unqueued close", NULL, hold, finish,      \
			.walks = 20000),

#include "../lock.c"
