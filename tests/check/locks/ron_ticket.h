/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define PROMISES_PARKED 0 /* too many states */
#define WHEN_3 "recheck"
#define WHEN_5 "recheck"
#define WALKS_5 50000
#define COMMON_ROOM 4
#define CHECK_COMMON 2048
/* The gate of shfl_ron, apart from sleeping (../tickets.c). */
#define SPIN_4 CHECK_CLIENT_COMPLETE
#define MORE_CLIENTS                                                                            \
	ENTRY("one_place/4x1/spin", lock_1_spin, 4, "contended", "4", prepare, finish,          \
	      .spurious = 0, .cpus = 1, .flags = CHECK_CLIENT_COMPLETE),                        \
		ENTRY("two_places/4x1/spin", lock_1_spin, 4, "contended", "4", prepare, finish, \
		      .spurious = 0, .cpus = 2, .flags = CHECK_CLIENT_COMPLETE),
