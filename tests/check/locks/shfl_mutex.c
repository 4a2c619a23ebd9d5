/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Also clients whose settings change while they use the lock, as by preload/control.h: changed/...
 * A head that has closed the lock is not bypassed, by whatever settings the others wait.
 */
#define CHANGED(settings) ((settings).patience = 0, (settings).batch = 1, (settings).spins = 0)
#define MORE_CLIENTS                                                                              \
	ENTRIES("changed/2x1", lock_1, 2, "contended", "2", prepare_changes, finish,              \
		.spurious = 1),                                                                   \
		ENTRIES("changed/timed/2", timed, 2, "", "1 2", prepare_changes, finish),         \
		ENTRY("changed/3x1/spin", lock_1_spin, 3, "contended shuffle", "3",               \
		      prepare_changes, finish, .spurious = 0, .invariant = queue_invariant),      \
		ENTRY("changed/3x1/park", lock_1_park, 3, "contended shuffle", "3",               \
		      prepare_changes, finish, .spurious = 0, .bound = 2,                         \
		      .invariant = queue_invariant),                                              \
		ENTRY("changed/4x2/park", lock_2_park, 4, "contended", NULL, prepare_changes,     \
		      finish, .walks = 25000, .spurious = 1, .invariant = queue_invariant),       \
		ENTRIES("changed/order/2", lock_3, 2, "contended", "6", prepare_changes, finish,  \
			ORDERED(2)),                                                              \
		ENTRY("changed/order/3/spin", lock_2_spin, 3, "contended", "6", prepare_changes,  \
		      finish, ORDERED(3), .bound = 2),                                            \
		ENTRY("changed/order/5/park", lock_2_park, 5, "contended", NULL, prepare_changes, \
		      finish, ORDERED(5), .walks = 10000),

#include "../any_policy.h"
