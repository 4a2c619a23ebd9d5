/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Each reading of the clock is a choice of the explorer, so that at each look a thread may or may
 * not be throttled, and a slice may or may not be over. Two threads that lock once are explored
 * completely, and three if they only spin; larger clients by random walks.
 */
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

#ifndef CLIENTS
#define CLIENTS                                                                                   \
	ENTRIES("2x1", lock_1, 2, "contended ban slice_given_up", "2", prepare, finish,           \
		.spurious = 1, .flags = CHECK_CLIENT_PROMISES),                                   \
		ENTRIES("trylock/2", try, 2, "", "1 2", prepare, finish, .spurious = 1,           \
			.flags = CHECK_CLIENT_PROMISES),                                          \
		ENTRIES("timed/2", timed, 2, "abandon", "1 2", prepare, finish, .spurious = 1,    \
			.flags = CHECK_CLIENT_PROMISES),                                          \
		ENTRIES("freed/2", freed, 2, "contended", "2", prepare, finish_freed,             \
			.spurious = 1, .flags = CHECK_CLIENT_PROMISES),                           \
		ENTRIES("fork/2", fork_try, 2, "", "2 3", prepare, finish,                        \
			.flags = CHECK_CLIENT_FORKS),                                             \
		ENTRIES("2x2", lock_2, 2, "contended ban slice_given_up", NULL, prepare, finish,  \
			.walks = 20000, .spurious = 1),                                           \
		ENTRY("3x1/spin", lock_1_spin, 3, "contended ban slice_given_up", "3", prepare,   \
		      finish),                                                                    \
		ENTRY("3x1/yield", lock_1_yield, 3, "contended ban slice_given_up", "3", prepare, \
		      finish),                                                                    \
		ENTRY("3x1/park", lock_1_park, 3, "contended ban slice_given_up", NULL, prepare,  \
		      finish, .walks = 10000),                                                    \
		ENTRY("composed/3x1/park", lock_1_park, 3, "contended park ban slice_given_up",   \
		      "3", prepare, finish,                                                       \
		      .flags = CHECK_CLIENT_COMPOSED | CHECK_CLIENT_COMPLETE),                    \
		ENTRIES("trylock/3", try, 3, "", "1 2 3", prepare, finish),                       \
		ENTRIES("timed/3", timed, 3, "abandon", NULL, prepare, finish, .walks = 10000),   \
		ENTRIES("fork/3", fork, 3, "fork_repair", NULL, prepare, finish,                  \
			.flags = CHECK_CLIENT_FORKS, .walks = 10000),                             \
		ENTRIES("4x1", lock_1, 4, "contended ban slice_given_up", NULL, prepare, finish,  \
			.walks = 17000),                                                          \
		ENTRIES("held_timed/4", held_timed, 4, "", NULL, hold, finish, .walks = 5000),    \
		ENTRY("held/5/spin", held_spin, 5, "contended", NULL, hold, finish,               \
		      .walks = 5000),                                                             \
		ENTRY("held/5/park", held_park, 5, "contended park", NULL, hold, finish,          \
		      .walks = 5000, .spurious = 1),
#endif
