/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How often a waiter of shfl_ron's mutex is bypassed while the lock is handed over at the gate.
 *
 * The first thread shares its CPU, so that it waits in the mutex's queue. All others have a CPU of
 * their own and go to the gate, and no sample chooses otherwise.
 */
#define LOCK shfl_ron
#define LOCK_HEADER "shfl_ron.h"
#define LOCK_TRAITS "none.h"
#define LOCK_BARE
#define CHECK_REMEMBERS() false
#define GATES_WAYS 1u
#define GATES_SETS 1u
#define CHECK_COMMON 256
#define CHECK_GATES (CHECK_COMMON + 64)
#define COMMON_ROOM 1024

#include "check.h"

#undef w_has_own_cpu
#define w_has_own_cpu() (check_self() != 0)
#define shfl_ron_prefers_gate(lock, gate, mask, count) \
	((void)(lock), (void)(gate), (void)(mask), (void)(count), true)

#define UNCHECKED_QUEUE
#define MADE(lock) shfl_ron_turn(lock, shfl_ron_open(lock), true)
#define ARRIVAL mutex.tail
/* The head closes the lock at once. */
#define ADJUST(policy) ((policy).patience = 0)
/*
 * After a waiter has closed the lock, as many hand-overs as there are places; and the holder of
 * that time, which may not have returned from its acquisition yet.
 */
#define BYPASSED(places) ORDERED_SINCE(close, 1 + (places)), .cpus = (places)
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

static void order_spin(uint32_t self);
static void order_yield(uint32_t self);
static void order_park(uint32_t self);

#define CLIENTS                                                                             \
	ENTRIES("3/one_place", order, 3, "contended handover_gate", "7", prepare, finish,   \
		BYPASSED(1), .walks = 10000),                                               \
		ENTRIES("4/two_places", order, 4, "contended handover_gate", "10", prepare, \
			finish, BYPASSED(2), .walks = 10000),

#include "lock.c"

WAYS(
	order, lock_and_unlock(wait); if (self != 0) { TWICE(lock_and_unlock(wait)); })
