/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients whose settings change while readers and writers use the lock, as by preload/control.h.
 * The order of the writers is one that the explorer chooses, or that of their arrival. A head that
 * has closed the lock is not bypassed, by whatever settings the others wait. Clients that count
 * bypasses have one reader: of two beside each other, the later one may return first.
 */
/* These clients use only some of rw.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

#define ADJUST(settings) ((settings).policy = POLICY_OWN)
#define CHANGED(settings)                                                                \
	((settings).policy = POLICY_FIFO, (settings).patience = 0, (settings).batch = 1, \
	 (settings).spins = 0)
#define CLIENTS                                                                                    \
	ENTRIES("changed/both/2x1", both, 2, "contended", "1", prepare_changes, finish,            \
		.spurious = 1),                                                                    \
		ENTRIES("changed/turns/2", turns, 2, "contended", "1 2", prepare_changes, finish), \
		ENTRIES("changed/again/2", again, 2, "contended", "1", prepare_changes, finish),   \
		ENTRIES("changed/timed/2", timed_both, 2, "", "01 10 11", prepare_changes,         \
			finish_timed),                                                             \
		ENTRY("changed/both/3x1/spin", both_spin, 3, "contended shuffle", "1 2",           \
		      prepare_changes, finish, .spurious = 0),                                     \
		ENTRY("changed/both/3x1/park", both_park, 3, "contended shuffle park", "1 2",      \
		      prepare_changes, finish, .spurious = 0, .bound = 2),                         \
		ENTRY("changed/writers/3x1/park", writers_park, 3, "contended shuffle park", "0",  \
		      prepare_changes, finish, .spurious = 0, .bound = 2),                         \
		ENTRY("changed/held_timed/6/park", held_timed_park, 6, "contended abandon", NULL,  \
		      prepare_changes_held, finish, .walks = 20000, .spurious = 1),                \
		ENTRIES("changed/order/both/2", both_2, 2, "contended close", "1",                 \
			prepare_changes, finish, ORDERED_SINCE(close, 0), .bound = 4),             \
		ENTRY("changed/order/one_reader/3/spin", one_reader_2_spin, 3, "contended close",  \
		      "1", prepare_changes, finish, ORDERED_SINCE(close, 0), .bound = 2),          \
		ENTRY("changed/order/one_reader/5/park", one_reader_2_park, 5, "contended close",  \
		      NULL, prepare_changes, finish, ORDERED_SINCE(close, 0), .walks = 10000),

#include "../rw.c"
