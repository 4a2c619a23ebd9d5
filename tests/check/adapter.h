/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One interface to every lock of core/locks.def. The clients are compiled once per lock, with LOCK,
 * LOCK_HEADER, LOCK_TRAITS and one of LOCK_BARE, LOCK_NODE, LOCK_BOXED_BARE, LOCK_BOXED_NODE
 * defined. The functions here are not inlined, so that the lifetime of their frames ends when they
 * return.
 *
 * A lock's line in core/locks.def gives it its clients, and `./dev check --accept NAME/` records
 * their results. Two optional files in tests/check/locks/ add to them:
 *
 * NAME.c holds clients of this lock alone, named NAME+/... It may define ADJUST(policy), a
 * statement that changes the settings of its clients, MADE(lock), one that changes the initialised
 * lock, CLIENTS, and BODIES, a header with further bodies of theirs; then it includes
 * ../lock.c.
 *
 * NAME.h may define the following. Defaults are below.
 *
 *   WHEN_3        events that must occur when three threads lock once, the second in another
 *                 domain, such as "shuffle"
 *   WHEN_5        the same with four waiters for a held lock, in alternating domains
 *   WHEN_FORKED   the same when the holder forks while another thread waits
 *   WHEN_PARKED   the same with waiters that may park; "" for a lock whose waiters never park
 *   RELEASE_FAIRLY(lock)  the struct shfl_mutex of a lock that has release_fair()
 *   MORE_CLIENTS  additional entries for lock.c, each followed by a comma
 *   STIRRED       the bound of 3x1/park/stirred
 *   CHECK_NOW()   the time, if not chosen by the explorer, which doubles the states at each reading
 *   CHECK_HELD()  how long the thread has held a lock, if not as in world.h
 *   LARGE         if defined, clients of three and four threads are random walks: too many states
 *   AT_REST()     a condition that must hold at the end, after one more acquisition and release
 *   COMMON_ROOM   bytes of w_common(), or of its slots, that the lock's waiters share with those of
 *                 other locks
 *   CHECK_COMMON  where COMMON_ROOM begins, if a boxed lock needs more room before it
 *   CHECK_GATES   where w_gates() is, within COMMON_ROOM
 *   WALKS_4       random walks of each kind with four threads, in place of all states
 *   WALKS_4_SPIN  the same if they only spin
 *   PARKED_3      flags of 3x1/park, such as CHECK_CLIENT_COMPLETE
 *   SPIN_4        flags of 4x1/spin
 *   COMPOSED      if defined, clients of three and four threads that sleep by the specification of
 *                 sleeping (CHECK_CLIENT_COMPOSED)
 *   WALKS_5       the same with five threads, in place of a bound
 *   BYPASS(n)     how many later arrivals may acquire before a waiter, with n threads in all
 *   ARRIVAL       required with BYPASS: the field whose first change by a waiter is its arrival
 *   UNCHECKED_QUEUE  if defined, the invariant of a shuffled queue (queue.h) is not checked: an
 *                 acquisition goes on after the frame with its node has ended
 *   SINCE         the event of the waiter from which on BYPASS holds, if not from its arrival on
 */
#ifndef POUNDLOCK_CHECK_ADAPTER_H
#define POUNDLOCK_CHECK_ADAPTER_H

/* The smallest bound at which the bounded behaviour still occurs. */
#define SHFL_MAX_BATCH 3

#if __has_include(LOCK_TRAITS)
#include LOCK_TRAITS
#endif

#include LOCK_HEADER

#include "clients.h"

#ifdef POUNDLOCK_SHUFFLE_H
#define SHUFFLES "shuffle"
#define SHUFFLES_FULLY "shuffle shuffle_move shuffle_pass"
#else
#define SHUFFLES ""
#define SHUFFLES_FULLY ""
#endif
#if defined(POUNDLOCK_SHUFFLE_H) && !defined(UNCHECKED_QUEUE)
#ifndef ARRIVAL
#define ARRIVAL tail
#endif
#include "queue.h"
#else
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

/* The bound on switches of three threads with spurious wake-ups. */
#ifndef STIRRED
#define STIRRED 3
#endif

#ifndef PARKED_3
#define PARKED_3 0
#endif
#ifndef SPIN_4
#define SPIN_4 0
#endif

/* Whether 2x2/park is explored with promises as well. */
#ifndef PROMISES_PARKED
#define PROMISES_PARKED CHECK_CLIENT_PROMISES
#endif

/* Random walks of each kind with three and four threads; 0: all states instead. */
#ifdef LARGE
#define WALKS 10000
#else
#define WALKS 0
#endif
#ifndef WALKS_4
#define WALKS_4 WALKS
#endif
#ifndef WALKS_4_SPIN
#define WALKS_4_SPIN WALKS_4
#endif
#ifndef WALKS_5
#define WALKS_5 WALKS_4
#endif

/* Four threads under a bound, for a lock whose other clients of four threads are walks. */
#define BOUNDED_4(way) \
	ENTRY("bounded/4x1/" #way, lock_1_##way, 4, "contended", "4", prepare, finish, .bound = 2)

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

/* The node that a holder keeps until its release, or NULL if the lock needs none. */
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

/* The maximum size of a boxed lock beyond its struct; a world with more CPUs needs more. */
#ifndef CHECK_BOX_ROOM
#define CHECK_BOX_ROOM 1024
#endif
#define BOX_ROOM (BOXED * CHECK_BOX_ROOM)

#if defined(COMMON_ROOM) && !BOXED
#define TWO_LOCKS
#endif

/* Initialises the lock in zeroed memory. */
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
#ifdef MADE
	MADE(lock);
#endif
}

/* Does what the library does after a fork: called in the child by a thread that holds the lock. */
static __attribute__((noinline)) void repair(struct LOCK *lock, holding kept)
{
	(void)lock, (void)kept;
#if KEEPS_NODE
	LOCK_FUNCTION(drop_waiters)(lock, kept);
#endif
}

#endif
