/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of a shuffled lock under a policy whose answers the explorer chooses. A property that
 * holds here holds under every policy.
 */
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define ADJUST(settings) ((settings).policy = POLICY_OWN)
#define CLIENTS                                                                                  \
	ENTRIES("any_policy/3x1", lock_1, 3, "contended shuffle", "3", prepare, finish,          \
		.spurious = 0),                                                                  \
		ENTRIES("any_policy/held/5", held, 5, "shuffle shuffle_move shuffle_pass", NULL, \
			hold, finish, .walks = 30000, .domains = 1),                             \
		ENTRIES("any_policy/held_timed/5", held_timed, 5, "", NULL, hold, finish,        \
			.walks = 30000),                                                         \
		MORE_CLIENTS

#include "lock.c"
