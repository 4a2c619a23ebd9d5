/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shfl_ron whose waiters go to the gate from the start, until a sample chooses otherwise. The first
 * thread may remember that it came that way, or not, and that it has waited for the lock before.
 */
#define MADE(lock) shfl_ron_turn(lock, shfl_ron_open(lock), SHFL_RON_AT_GATE)
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define BODIES "locks/shfl_ron_gates.h"
#define CLIENTS                                                                                  \
	ENTRIES("gate/2x1", lock_1, 2, "contended handover_gate", "2", prepare, finish,          \
		.spurious = 1),                                                                  \
		ENTRY("gate/2x2/spin", lock_2_spin, 2, "contended handover_gate", "4", prepare,  \
		      finish, .bound = 1),                                                       \
		ENTRIES("gate/trylock/2", try, 2, "", "1 2", prepare, finish, .spurious = 1),    \
		ENTRIES("gate/timed/2", timed, 2, "abandon", "1 2", prepare, finish,             \
			.spurious = 1),                                                          \
		ENTRIES("gate/freed/2", freed, 2, "contended", "2", prepare, finish_freed,       \
			.spurious = 1),                                                          \
		ENTRIES("gate/fork/2", fork, 2, "fork_repair", "2 3", prepare, finish,           \
			.flags = CHECK_CLIENT_FORKS),                                            \
		ENTRIES("gate/fork/3", fork, 3, "fork_repair", NULL, prepare, finish,            \
			.flags = CHECK_CLIENT_FORKS, .walks = 10000),                            \
		ENTRIES("gate/reused/2", lock_1, 2, "contended", "2", reuse, finish,             \
			.spurious = 1),                                                          \
		ENTRY("gate/destroyed/2/spin", used_twice_spin, 2, "", NULL, prepare,            \
		      finish_destroyed, .spurious = 1),                                          \
		ENTRIES("gate/destroyed/3", destroyed, 3, "contended", NULL, prepare,            \
			finish_destroyed, .walks = 10000),                                       \
		ENTRY("gate/3x1/spin", lock_1_spin, 3, "contended handover_gate", NULL, prepare, \
		      finish, .walks = 25000),                                                   \
		ENTRY("gate/3x1/park", lock_1_park, 3, "contended park handover_gate", NULL,     \
		      prepare, finish, .walks = 25000),                                          \
		ENTRY("gate/held/5/park", held_park, 5, "contended park handover_gate", NULL,    \
		      hold, finish, .walks = 10000, .spurious = 1),

#include "../lock.c"
