/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "handover_local handover_remote"
#define WHEN_5 "handover_local handover_remote"
/* With three waiters in one domain, one that is awake can be behind a sleeper that is not first. */
#define MORE_CLIENTS                                                                              \
	ENTRY("near/4/park", held_park, 4, "set_aside", NULL, hold, finish, .domains = 1,         \
	      .bound = 2),                                                                        \
		ENTRY("near/4x1/park", lock_1_park, 4, "set_aside", NULL, prepare, finish,        \
		      .domains = 1, .bound = 2),                                                  \
		ENTRY("near/5/park", held_park, 5, "set_aside", NULL, hold, finish, .domains = 1, \
		      .walks = 50000, .spurious = 1),
