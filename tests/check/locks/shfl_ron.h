/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any choice between the ways, at any sample: more than the trials make. */
#define shfl_ron_choose(lock, gate, sample)          \
	((void)(lock), (void)(gate), (void)(sample), \
	 w_random() ? SHFL_RON_AT_GATE : SHFL_RON_SHORT_TURNS)
/*
 * The first thread of shfl_ron.c may remember anything, at any time. More such threads would be too
 * many states; shfl_ron_steady.c has several that remember.
 */
#ifdef MADE
#define CHECK_REMEMBERS() (check_self() == 0 && w_random() != 0)
#else
#define CHECK_REMEMBERS() false
#endif
/* Whether the thread came through the gate, at the first place: there is one CPU. */
#define CHECK_NOTE() (w_random() & SHFL_RON_NOTE_GATED)
#ifndef MADE
/* The first thread races for any time. */
#define CHECK_RACE_END() (check_self() == 0 ? UINT64_C(1) : UINT64_C(0))
/* At a release, the thread's streak is over. In other clients it never is. */
#define shfl_ron_release_fair(lock, policy) (shfl_ron_look(lock), shfl_ron_release(lock, policy))
#define RELEASE_FAIRLY(lock) (&(lock)->mutex)
#endif
#define UNCHECKED_QUEUE
/*
 * A table of two gates, behind the slot; where a lock has one from the start, a table of one, for
 * the lock that comes next.
 */
#ifdef MADE
#define GATES_WAYS 1u
#else
#define GATES_WAYS 2u
/* A lock never has two gates. */
#define AT_REST()                                                                   \
	(!gates_table() || w_load_relaxed(&gates_table()->owners[0]) != &M->lock || \
	 w_load_relaxed(&gates_table()->owners[1]) != &M->lock)
#endif
#define GATES_SETS 1u
#define CHECK_COMMON 256
#define CHECK_GATES (CHECK_COMMON + 64)
#define COMMON_ROOM 1024
#define PROMISES_PARKED 0 /* too many states */
#define WHEN_3 ""
#define WHEN_5 ""
#define STIRRED 1
#define LARGE
