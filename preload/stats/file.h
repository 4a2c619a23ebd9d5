/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the library saw of a process's locks, as a file that the process has mapped and others may read at any time, also
 * after it was killed. docs/statistics.md describes it for readers.
 *
 * A header, and five arrays behind it, at the offsets that the header tells; an item of zeroes is not in use. Arrays grow
 * by their use, which the header tells too, up to a bound. Numbers are the machine's. The file is sparse.
 *
 *   modules   the program and its libraries: from where to where in memory
 *   locks     one item for each, with the sums over threads whose own counts were given up; item 0 is all locks that
 *             found no room
 *   stacks    what called, and for how long it waited or was waited for
 *   threads   one item for each that is alive, or has not been replaced by one since it ended: its counts by lock. Only
 *             that thread writes there
 *   shares    how often a thread whose counts were given up took a lock
 *
 * A lock's figures are the sums of its item and of all threads' rows that name it.
 */
#ifndef POUNDLOCK_STATS_FILE_H
#define POUNDLOCK_STATS_FILE_H

#include "world.h"

#define STATS_MAGIC "poundlock stats"
#define STATS_VERSION 1

/* COUNTER(name, sum or max over threads). Times are in nanoseconds. */
#define STATS_COUNTERS(COUNTER)          \
	COUNTER(acquisitions, SUM)       \
	COUNTER(contended, SUM)          \
	COUNTER(trylock_failures, SUM)   \
	COUNTER(timeouts, SUM)           \
	COUNTER(wait_ns, SUM)            \
	COUNTER(wait_max_ns, MAX)        \
	COUNTER(queue_sum, SUM)          \
	COUNTER(queue_max, MAX)          \
	COUNTER(holds_timed, SUM)        \
	COUNTER(hold_timed_ns, SUM)      \
	COUNTER(hold_timed_max_ns, MAX)  \
	COUNTER(handovers_local, SUM)    \
	COUNTER(handovers_remote, SUM)   \
	COUNTER(parks, SUM)              \
	COUNTER(wakeups_in_section, SUM) \
	COUNTER(holds_first, SUM)        \
	COUNTER(hold_first_ns, SUM)

enum stats_counter {
#define COUNTER(name, how) STATS_##name,
	STATS_COUNTERS(COUNTER)
#undef COUNTER
		STATS_COUNTS
};

enum stats_area_name { STATS_MODULES, STATS_LOCKS, STATS_STACKS, STATS_THREADS, STATS_SHARES, STATS_AREAS };

struct stats_area {
	uint64_t offset;
	uint32_t bytes; /* of an item */
	uint32_t most;
	W_ATOMIC(uint32_t) used; /* may be more than the most, by those that found no room */
	uint32_t unused;
};

struct stats_header {
	char magic[16];
	uint32_t version;
	uint32_t bytes; /* of the header */
	uint32_t pid;
	uint32_t profile;    /* whether all waits and the holds that they waited for have their stacks */
	uint64_t start_ns;   /* on CLOCK_MONOTONIC */
	uint64_t start_s;    /* since 1970 */
	uint32_t hold_every; /* mean acquisitions per timed one, after a lock's first */
	uint32_t rows;       /* of a thread */
	struct stats_area areas[STATS_AREAS];
	W_ATOMIC(uint64_t) threads;            /* that there have been */
	W_ATOMIC(uint64_t) threads_unobserved; /* that found no room */
	W_ATOMIC(uint64_t) locks_unobserved;   /* how often a lock found none, and was counted in item 0 */
	W_ATOMIC(uint64_t) stacks_unobserved;
	W_ATOMIC(uint64_t) shares_unobserved;
	char lock[64];
	char rwlock[64];
	char program[64];
	char counters[512]; /* names in the order of a row's counts, with a blank after each */
	char events[1024];  /* the same of a thread's events */
};

#define STATS_PATH 232

struct stats_module {
	W_ATOMIC(uint64_t) start; /* set last */
	uint64_t end;
	uint64_t bias; /* what the loader added to the file's addresses */
	char path[STATS_PATH];
};

/* A lock is known by its address; the side of readers by the address + 1. */
#define STATS_READERS 1u

/* Bits. */
enum stats_lock_kind { STATS_READERS_WRITER = 1, STATS_API = 2 /* of the program's own use of poundlock.h */ };

struct stats_lock {
	/* Hardly ever written. */
	W_ATOMIC(uint64_t) key;   /* 0: nobody uses the lock any more */
	uint64_t address;         /* and the side */
	uint32_t kind;            /* enum stats_lock_kind */
	uint32_t lives;           /* how many locks were made in turn at this address and are this item */
	W_ATOMIC(uint32_t) stack; /* one more than the index of the stack that first contended it; 0: none */
	/* Written by those who wait, and by holders that have waiters. */
	_Alignas(64) W_ATOMIC(uint32_t) waiting;
	W_ATOMIC(uint32_t) domain; /* one more than that of the last holder that released it to waiters; 0: none */
	_Alignas(64) W_ATOMIC(uint64_t) counts[STATS_COUNTS];
};

enum stats_stack_kind { STATS_FIRST, STATS_WAITER, STATS_HOLDER };

#define STATS_DEPTH 58

struct stats_stack {
	W_ATOMIC(uint32_t) depth; /* set last */
	uint32_t kind;
	uint32_t lock;
	uint32_t hash;
	W_ATOMIC(uint64_t) count;
	W_ATOMIC(uint64_t) ns;
	uint64_t frames[STATS_DEPTH]; /* return addresses, innermost first */
};

/* A row's key whose lock is no more, and may be another's memory. */
#define STATS_STALE 2u

/* Only its thread writes to it, but for the key. */
struct stats_row {
	W_ATOMIC(uint64_t) key; /* 0: none */
	uint32_t lock;          /* its item */
	uint16_t readers_writer;
	uint16_t first; /* number of acquisitions from the first on that are all timed; also counted in holds_first */
	struct stats_lock *item; /* the same, where the process has it */
	uint64_t since;          /* when it was taken, while it is held by this thread and timed; else 0 */
	uint64_t since_taken;    /* the acquisition that this was */
	uint64_t counts[STATS_COUNTS];
};

#define STATS_ROWS 64

struct stats_thread {
	W_ATOMIC(uint32_t) tid; /* 0: free */
	uint32_t unused;
	W_ATOMIC(uint64_t) serial; /* from 1 on, another one for each thread */
	W_ATOMIC(uint64_t) merges; /* odd while a row's counts go into the lock's */
	W_ATOMIC(uint64_t) events[W_EVENTS];
	struct stats_row rows[STATS_ROWS];
};

struct stats_share {
	W_ATOMIC(uint64_t) thread; /* its serial; set last */
	uint32_t lock;
	uint32_t unused;
	uint64_t acquisitions;
};

#endif
