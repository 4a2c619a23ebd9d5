/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One interface to every lock of core/locks.def, for a client that is compiled once a lock (LOCK, LOCK_HEADER,
 * LOCK_TRAITS, and LOCK_BARE, LOCK_NODE, LOCK_BOXED_BARE or LOCK_BOXED_NODE are defined). The calls are not inlined:
 * their frames, and what lies there, end with them.
 *
 * A new lock gets its clients by its line in core/locks.def, and its counts by `./dev check --accept NAME/`. What the
 * checker is to ask of it beyond what it asks of all locks is said in tests/check/locks/NAME.h, which may define
 *
 * What only this lock is asked is in tests/check/locks/NAME.c, if there is one: its clients are NAME+/...; it may define
 * ADJUST(policy), a statement about the settings that its clients run with, and CLIENTS, and include ../lock.c.
 *
 *   WHEN_3        events that three threads which lock once, the second of another domain, must bring about: "shuffle"
 *   WHEN_5        the same of four waiters for a held lock, domains going round
 *   WHEN_FORKED   the same of a fork by the holder while another waits
 *   WHEN_PARKED   the same of waiters that are told to park; "" of a lock whose waiters never do
 *   MORE_CLIENTS  entries of lock.c, each with a comma behind it, that only this lock has
 *   STIRRED       the bound of 3x1/park/stirred
 *   CHECK_NOW()   what the clock says, if not all that it could: each reading of it doubles the states
 *   CHECK_HELD()  for how long the thread has held a lock, if not what world.h says
 *   LARGE         defined: the lock has so many states that clients of three and four threads are random walks
 *   AT_REST()     what holds after all threads, when the lock has been taken and released once more
 *   COMMON_ROOM   bytes of w_common(), or of its slots: the lock's waiters share them with those of others
 *   CHECK_COMMON  with it, where they begin, if a box needs more room before them
 *   WALKS_4       how many random walks of each kind stand for all states of four threads only
 *   WALKS_5       the same of five threads, which are else explored under a bound
 *   BYPASS        the lock's bound: how many who arrive after a waiter may acquire before it, THREADS threads in all
 *   ARRIVAL       with it, the field whose first change by a waiter is its arrival: tail
 *   SINCE         if the bound holds only from some event of the waiter on, that event: close
 *
 * Below is what holds if it does not; a lock that has nothing to add needs no such file.
 */
#ifndef POUNDLOCK_CHECK_ADAPTER_H
#define POUNDLOCK_CHECK_ADAPTER_H

/* Bounds are as small as they can be while what they bound still happens. */
#define SHFL_MAX_BATCH 3

#if __has_include(LOCK_TRAITS)
#include LOCK_TRAITS
#endif

#include LOCK_HEADER

#include "clients.h"

#ifdef POUNDLOCK_SHUFFLE_H
#define SHUFFLES "shuffle"
#define SHUFFLES_FULLY "shuffle shuffle_move shuffle_pass"
#ifndef ARRIVAL
#define ARRIVAL tail
#endif
#include "queue.h"
#else
#define SHUFFLES ""
#define SHUFFLES_FULLY ""
#define queue_invariant NULL
#endif
#ifdef SINCE
#define BYPASS_SINCE (1 + PASTE(W_EVENT_, SINCE))
#else
#define BYPASS_SINCE 0
#endif
#ifndef WHEN_3
#define WHEN_3 SHUFFLES
#endif
#ifndef WHEN_5
#define WHEN_5 SHUFFLES_FULLY
#endif
#ifndef WHEN_FORKED
#ifdef POUNDLOCK_GENERATION_H
#define WHEN_FORKED "fork_repair"
#else
#define WHEN_FORKED ""
#endif
#endif
#ifndef MORE_CLIENTS
#define MORE_CLIENTS
#endif
#ifndef WHEN_PARKED
#define WHEN_PARKED "park"
#endif

/* The most switches of the three that also wake for no reason. */
#ifndef STIRRED
#define STIRRED 3
#endif

/* How many random walks of each kind stand for all states, with three and four threads; 0: all states. */
#ifdef LARGE
#define WALKS 10000
#else
#define WALKS 0
#endif
#ifndef WALKS_4
#define WALKS_4 WALKS
#endif
#ifndef WALKS_5
#define WALKS_5 WALKS_4
#endif

/* Of a lock whose four threads are walks only: they under a bound, as far as that ends. */
#define BOUNDED_4(way) ENTRY("bounded/4x1/" #way, lock_1_##way, 4, "contended", "4", prepare, finish, .bound = 2)

#if defined(LOCK_NODE) || defined(LOCK_BOXED_NODE)
#define KEEPS_NODE 1
#else
#define KEEPS_NODE 0
#endif
#if defined(LOCK_BOXED_BARE) || defined(LOCK_BOXED_NODE)
#define BOXED 1
#else
#define BOXED 0
#endif

/* The node that a holder keeps, or NULL where it keeps none. */
typedef void *holding;

static __attribute__((noinline)) bool acquire(struct LOCK *lock, holding *kept, enum wait wait,
					      const struct w_deadline *deadline)
{
	bool has;

	check_acquires();
#if KEEPS_NODE
	*kept = w_node_get();
	has = LOCK_FUNCTION(acquire)(lock, *kept, POLICY(wait), deadline);
#else
	*kept = NULL;
	has = LOCK_FUNCTION(acquire)(lock, POLICY(wait), deadline);
#endif
	check_acquired(has);
	return has;
}

static __attribute__((noinline)) bool try_acquire(struct LOCK *lock, holding *kept)
{
#if KEEPS_NODE
	*kept = w_node_get();
	return LOCK_FUNCTION(try_acquire)(lock, *kept);
#else
	*kept = NULL;
	return LOCK_FUNCTION(try_acquire)(lock);
#endif
}

static __attribute__((noinline)) void release(struct LOCK *lock, holding kept, enum wait wait)
{
	(void)kept, (void)wait;
#if KEEPS_NODE
	LOCK_FUNCTION(release)(lock, kept, POLICY(wait));
#else
	check_assert(LOCK_FUNCTION(release)(lock, POLICY(wait)));
#endif
}

/* The most bytes that a boxed lock may need behind its struct: more in a world of more CPUs. */
#ifndef CHECK_BOX_ROOM
#define CHECK_BOX_ROOM 1024
#endif
#define BOX_ROOM (BOXED * CHECK_BOX_ROOM)

#if defined(COMMON_ROOM) && !BOXED
#define TWO_LOCKS
#endif

/* Makes the lock of zeroed memory. */
static void make(struct LOCK *lock)
{
	(void)lock;
#ifdef ARRIVAL
	check_queue(&lock->ARRIVAL);
#endif
#if BOXED
	check_assert(LOCK_FUNCTION(size)() <= sizeof(struct LOCK) + BOX_ROOM);
	LOCK_FUNCTION(init)(lock, LOCK_FUNCTION(size)());
#endif
}

/* In the forked child, by a thread that holds the lock: what the library does after a fork. */
static __attribute__((noinline)) void repair(struct LOCK *lock, holding kept)
{
	(void)lock, (void)kept;
#if KEEPS_NODE
	LOCK_FUNCTION(drop_waiters)(lock, kept);
#endif
}

#endif
