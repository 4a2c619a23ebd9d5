/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of cfl_spin and cfl_mutex: those of all locks (lock.c), but more of them are random
 * walks, because the shuffler and newcomers decide by what they read from the lock, which
 * multiplies the states: cfl_any.h explores these completely, whatever they decide. Time stands
 * still, and a thread's hold time depends on its number, so that threads differ. In cfl_choices.h
 * the explorer chooses both.
 */
#ifndef CHECK_NOW
#define CHECK_NOW() UINT64_C(1)
#endif

#define ARRIVAL cfl.tail

#ifndef CLIENTS
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"
#define CLIENTS                                                                                    \
	ENTRIES("2x1", lock_1, 2, "contended", "2", prepare, finish, .spurious = 1,                \
		.flags = CHECK_CLIENT_PROMISES),                                                   \
		ENTRY("2x2/spin", lock_2_spin, 2, "contended", "4", prepare, finish),              \
		ENTRY("2x2/park", lock_2_park, 2, "contended park", NULL, prepare, finish,         \
		      .walks = 20000, .spurious = 1),                                              \
		ENTRIES("trylock/2", try, 2, "", "1 2", prepare, finish, .spurious = 1,            \
			.flags = CHECK_CLIENT_PROMISES),                                           \
		ENTRIES("timed/2", timed, 2, "", "1 2", prepare, finish, .spurious = 1,            \
			.flags = CHECK_CLIENT_PROMISES),                                           \
		ENTRIES("freed/2", freed, 2, "contended", "2", prepare, finish_freed,              \
			.spurious = 1, .flags = CHECK_CLIENT_PROMISES),                            \
		ENTRY("3x1/spin", lock_1_spin, 3, "contended shuffle look_back", NULL, prepare,    \
		      finish, .walks = 20000),                                                     \
		ENTRY("3x1/park", lock_1_park, 3, "contended shuffle park", NULL, prepare, finish, \
		      .walks = 20000, .spurious = 1),                                              \
		ENTRIES("trylock/3", try, 3, "", NULL, prepare, finish, .walks = 10000),           \
		ENTRIES("timed/3", timed, 3, "", NULL, prepare, finish, .walks = 10000),           \
		ENTRIES("timed/two_of_3", timed_both, 3, "", NULL, prepare, finish,                \
			.walks = 10000),                                                           \
		ENTRIES("fork/3", fork, 3, "fork_repair", NULL, prepare, finish,                   \
			.flags = CHECK_CLIENT_FORKS, .walks = 10000),                              \
		ENTRIES("fork/2", fork_try, 2, "", "2 3", prepare, finish,                         \
			.flags = CHECK_CLIENT_FORKS),                                              \
		ENTRIES("held_timed/6", held_timed, 6, "look_back", NULL, hold, finish,            \
			.walks = 10000),                                                           \
		ENTRIES("4x1", lock_1, 4, "contended shuffle", NULL, prepare, finish,              \
			.walks = 17000),                                                           \
		ENTRIES("held/5", held, 5, "shuffle shuffle_pass look_back", NULL, hold, finish,   \
			.walks = 10000),
#endif
