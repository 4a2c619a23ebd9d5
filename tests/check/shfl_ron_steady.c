/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shfl_ron whose waiters go to the gate all the time: no sample is drawn. The first thread shares
 * its CPU, so that it waits in the mutex's queue; all others have a CPU of their own.
 *
 * Threads with an odd number remember that they came through the gate, and at which place. The
 * others remember nothing, so that they leave the place at the gate.
 *
 * So there are few enough states for three threads. And the clients with an order bound how often
 * the waiter in the mutex's queue is bypassed while the lock is handed over at the gate.
 */
#include "shfl_ron_gated.h"

#undef w_has_own_cpu
#define w_has_own_cpu() (check_self() != 0)
#undef w_random
#define w_random() 1u

#undef w_remembers
#define w_remembers(lock) ((void)(lock), *note_of_thread() != 0)
#undef w_remember
#define w_remember(lock, note) (check_self() % 2 ? (w_note_set(lock, note), true) : false)

#define ARRIVAL mutex.tail
/* The head closes the lock at once. */
#define ADJUST(policy) ((policy).patience = 0)
/*
 * Bypasses of a waiter, by holders at the gate: fewer than places, since the waiter has closed the
 * lock before a holder looks for it.
 */
#define BYPASSED(places) ORDERED_SINCE(close, (places)-1), .cpus = (places)

#define BODIES "locks/shfl_ron_gates.h"
#define CLIENTS                                                                                  \
	ENTRIES("2x1", lock_1, 2, "contended", "2", prepare, finish),                            \
		ENTRY("2x2/spin", lock_2_spin, 2, "contended", "4", prepare, finish),            \
		ENTRY("3x1/spin", lock_1_spin, 3, "contended handover_gate", "3", prepare,       \
		      finish),                                                                   \
		ENTRY("3x1/park", lock_1_park, 3, "contended park handover_gate", "3", prepare,  \
		      finish, .walks = 10000),                                                   \
		ENTRIES("order/3/one_place", closed, 3, "close handover_gate", "5", hold_gated,  \
			finish, BYPASSED(1)),                                                    \
		ENTRIES("order/4/two_places", closed, 4, "close handover_gate", "7", hold_gated, \
			finish, BYPASSED(2), .walks = 10000),

#include "lock.c"
