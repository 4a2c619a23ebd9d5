/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Layout of the statistics file, which a process maps and others may read at any time, also after
 * it was killed. docs/statistics.md documents it for readers.
 *
 * A header, then five arrays at the offsets in the header. An item of zeroes is unused. Arrays grow
 * up to a bound; the header has the number of items in use. Byte order is the machine's. The file
 * is sparse.
 *
 *   modules  the program and its libraries: their address ranges
 *   locks    one item per lock: sums of the rows that threads gave up. Item 0: locks without room
 *   stacks   call stacks, and how long they waited or were waited for
 *   threads  one item per live thread, and per ended one that is not replaced yet: its rows by
 *            lock. Only that thread writes to it
 *   shares   how often a thread took a lock, of rows that it gave up
 *
 * A lock's figures are the sums of its item and of all threads' rows that name it.
 */
#ifndef POUNDLOCK_STATS_FILE_H
#define POUNDLOCK_STATS_FILE_H

#include "world.h"

#define STATS_MAGIC "poundlock stats"
#define STATS_VERSION 4

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

enum stats_area_name {
	STATS_MODULES,
	STATS_LOCKS,
	STATS_STACKS,
	STATS_THREADS,
	STATS_SHARES,
	STATS_AREAS
};

struct stats_area {
	uint64_t offset;
	uint32_t bytes; /* of an item */
	uint32_t most;
	W_ATOMIC(uint32_t) used; /* may exceed `most`, by attempts without room */
	uint32_t unused;
};

struct stats_header {
	char magic[16];
	uint32_t version;
	uint32_t bytes; /* of the header */
	uint32_t pid;
	uint32_t profile;    /* 1: stacks of all waits, and of holds that were waited for */
	uint64_t start_ns;   /* on CLOCK_MONOTONIC */
	uint64_t start_s;    /* since 1970 */
	uint32_t hold_every; /* mean acquisitions per timed one, after a lock's first */
	uint32_t rows;       /* of a thread */
	struct stats_area areas[STATS_AREAS];
	W_ATOMIC(uint64_t) threads;            /* total */
	W_ATOMIC(uint64_t) threads_unobserved; /* without room */
	W_ATOMIC(uint64_t) locks_unobserved;   /* times that a lock found no room: item 0 */
	W_ATOMIC(uint64_t) stacks_unobserved;
	W_ATOMIC(uint64_t) shares_unobserved;
	W_ATOMIC(uint64_t) end_ns;    /* on CLOCK_MONOTONIC; 0: it has not ended, or was killed */
	W_ATOMIC(uint64_t) thread_ns; /* of threads whose tables were emptied */
	char lock[64];
	char rwlock[64];
	char program[64];
	char counters[512]; /* names in the order of a row's counts, a blank after each */
	char events[1024];  /* the same for a thread's events */
};

#define STATS_PATH 232

struct stats_module {
	W_ATOMIC(uint64_t) start; /* set last */
	uint64_t end;
	uint64_t bias; /* added by the loader to the file's addresses */
	char path[STATS_PATH];
};

/* A lock's key is its address; that of its side of readers, the address + 1. */
#define STATS_READERS 1u

/*
 * Bits. STATS_API: a lock of the program's own use of poundlock.h. STATS_SPIN: a pthread_spinlock_t
 * of the C library.
 */
enum stats_lock_kind { STATS_READERS_WRITER = 1, STATS_API = 2, STATS_SPIN = 4 };

/* Words of four bytes. The last byte is 0. */
#define STATS_NAME_WORDS 8

struct stats_lock {
	/* Rarely written. */
	W_ATOMIC(uint64_t) key;   /* 0: the lock is destroyed */
	uint64_t address;         /* and the side */
	uint32_t kind;            /* enum stats_lock_kind */
	uint32_t lives;           /* locks in turn at this address that share this item */
	W_ATOMIC(uint32_t) stack; /* of its first contention: index + 1; 0: none */
	W_ATOMIC(uint32_t) name[STATS_NAME_WORDS]; /* by the program: text; empty: none */
	/* Written by waiters, and by holders that have waiters. */
	_Alignas(64) W_ATOMIC(uint32_t) waiting;
	W_ATOMIC(uint32_t) domain; /* of the last holder that had waiters: + 1; 0: none */
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

/* Bit of a row's key: the lock is destroyed, and its memory may be another lock's. */
#define STATS_STALE 2u

/*
 * The first holds of a lock by each thread are all timed: sampling alone would miss locks that are
 * taken rarely.
 */
#define STATS_HOLDS_FIRST 64

/* Only its thread writes to it, except for the key. */
struct stats_row {
	W_ATOMIC(uint64_t) key; /* 0: none */
	uint32_t lock;          /* index of its item */
	uint16_t readers_writer;
	uint16_t first;          /* acquisitions, from the first, that are all timed: holds_first */
	struct stats_lock *item; /* its address in the process */
	uint64_t since;          /* start of a timed hold; 0: not timed */
	uint64_t since_taken;    /* the number of that acquisition */
	uint32_t until_timed;    /* acquisitions until the next hold that is timed */
	uint32_t unused;
	uint64_t counts[STATS_COUNTS];
};

#ifndef STATS_ROWS_BITS /* the model checker has fewer */
#define STATS_ROWS_BITS 6
#endif
#define STATS_ROWS (1 << STATS_ROWS_BITS)

struct stats_thread {
	W_ATOMIC(uint32_t) tid; /* 0: free */
	uint32_t unused;
	W_ATOMIC(uint64_t) serial; /* from 1, unique */
	/* On CLOCK_MONOTONIC: its first operation, the last time it read the clock, its end or 0 */
	W_ATOMIC(uint64_t) start_ns, seen_ns, end_ns;
	W_ATOMIC(uint64_t) merges; /* odd while a row is added to its lock's item */
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
