/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A waiter that has closed the lock is not bypassed. */
#define BYPASS(threads) 0
#define SINCE close
#define RELEASE_FAIRLY tail
#define HINT spinner
/* All states of four threads that sleep; the queue's invariant, which adds states, under a bound. */
#define PARKED_4 CHECK_CLIENT_COMPLETE
#define INVARIANT_4 NULL
#ifndef MORE_CLIENTS
#define MORE_CLIENTS                                                                       \
	ENTRY("queue/4x1/park", lock_1_park, 4, "contended " WHEN_3, "4", prepare, finish, \
	      .spurious = 0, .bound = 2, .invariant = queue_invariant),
#endif
