/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * This process's statistics file, mapped: made, grown, and left to the parent by a forked child.
 *
 * Nothing here calls malloc, takes a lock or changes errno. Pages are allocated in the file before
 * they are written, so that a full file system only ends the growth: no access fails.
 */
#ifndef POUNDLOCK_STATS_REGION_H
#define POUNDLOCK_STATS_REGION_H

#include "stack.h"

/* The mapping of the file; NULL until stats_region_reserve(). */
extern W_HIDDEN struct stats_header *stats_region;

#define STATS_LOCKS_MOST 16384u
#define STATS_THREADS_MOST 2048u
#define STATS_LOCK_SLOTS (2 * STATS_LOCKS_MOST)
#define STATS_STACK_SLOTS 8192u

/* A wait in a profile, whose stack is counted when the lock is released. */
struct stats_pending {
	uint64_t key; /* 0: none */
	uint64_t ns;
	struct stats_frames stack;
};

/* Data for one file that are not part of it. */
struct stats_private {
	/* One more than an item's index, by hash. */
	W_ATOMIC(uint32_t) locks[STATS_LOCK_SLOTS];
	W_ATOMIC(uint32_t) stacks[STATS_STACK_SLOTS];
	struct stats_pending pending[STATS_THREADS_MOST];
};

extern W_HIDDEN struct stats_private *stats_private;

/* Reserves the addresses for files in @folder. False if there are none left. */
W_HIDDEN bool stats_region_reserve(const char *folder, bool profile, const char *lock,
				   const char *rwlock);

/*
 * Makes the file if this process has none yet. False if there is none. @report: print a line to
 * stderr then; only while no other thread can hold a lock of the C library.
 */
W_HIDDEN bool stats_region_open(bool report);

/* Whether there is a file. */
W_HIDDEN bool stats_region_is_open(void);

/*
 * In a forked child: leaves the file to the parent. Until the next open, nobody reads the region.
 */
W_HIDDEN void stats_region_leave(void);

/* Takes a zeroed item of an array, and its index. NULL if no more than @spare items are left. */
W_HIDDEN void *stats_take(enum stats_area_name area, uint32_t spare, uint32_t *index);

/* The path of the file. */
W_HIDDEN const char *stats_region_path(void);

W_HIDDEN void *stats_item(enum stats_area_name area, uint32_t index);
/* Bound of the items of an array that are in use. */
W_HIDDEN uint32_t stats_used(enum stats_area_name area);

/* Locks come first, at a constant offset: every lock's path uses their array. */
#define STATS_LOCKS_OFFSET 4096u
_Static_assert(sizeof(struct stats_header) <= STATS_LOCKS_OFFSET, "the header is a page");

static inline struct stats_lock *stats_lock_item(uint32_t index)
{
	return (struct stats_lock *)((char *)stats_region + STATS_LOCKS_OFFSET) + index;
}

#endif
