/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shfl_ron whose waiters go to the gate all the time: no sample is drawn. The first thread shares
 * its CPU, so that it waits in the mutex's queue; all others have a CPU of their own.
 *
 * So there are few enough states for three threads. And the clients with an order bound how often
 * the waiter in the mutex's queue is bypassed while the lock is handed over at the gate.
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
#undef w_random
#define w_random() 1u

#define UNCHECKED_QUEUE
#define MADE(lock) shfl_ron_turn(lock, shfl_ron_open(lock), true)
#define ARRIVAL mutex.tail
/* The head closes the lock at once. */
#define ADJUST(policy) ((policy).patience = 0)
/* Bypasses of a waiter that has closed the lock: as many as there are places. */
#define BYPASSED(count) ORDERED_SINCE(close, count), .cpus = (count)
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

static void order_spin(uint32_t self);
static void order_yield(uint32_t self);
static void order_park(uint32_t self);
static void hold_gate(void);

#define CLIENTS                                                                                 \
	ENTRIES("2x1", lock_1, 2, "contended", "2", prepare, finish),                           \
		ENTRY("2x2/spin", lock_2_spin, 2, "contended", "4", prepare, finish),           \
		ENTRY("3x1/spin", lock_1_spin, 3, "contended handover_gate", "3", prepare,      \
		      finish),                                                                  \
		ENTRY("3x1/park", lock_1_park, 3, "contended park handover_gate", "3", prepare, \
		      finish, .walks = 10000),                                                  \
		ENTRIES("order/3/one_place", order, 3, "close handover_gate", "5", hold_gate,   \
			finish, BYPASSED(1)),                                                   \
		ENTRIES("order/4/two_places", order, 4, "close handover_gate", "7", hold_gate,  \
			finish, BYPASSED(2), .walks = 10000),

#include "lock.c"

/* The second thread holds the lock from the start, and came through the gate. */
static void hold_gate(void)
{
	struct gate *gate;

	make(&M->lock);
	gate = gates_find(&M->lock);
	check_assert(ron_ticket_try_acquire(&gate->lock));
	gate_own(gate)->holds = true;
	/* relaxed: nobody else has the lock yet */
	w_store_relaxed(&M->lock.mutex.state, SHFL_MUTEX_LOCKED | SHFL_RON_GATE);
}

/* Hands the lock over once it is closed. */
static void unlock_closed(enum wait wait)
{
	(void)w_wait_acquire(&M->lock.mutex.state, VAL & SHFL_MUTEX_CLOSED, W_YIELD, NULL);
	critical_section();
	release(&M->lock, NULL, wait);
	check_returned();
}

WAYS(order, if (self == 1) unlock_closed(wait); else lock_and_unlock(wait);
     if (self != 0) lock_and_unlock(wait))
