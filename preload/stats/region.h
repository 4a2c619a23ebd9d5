/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The file of statistics of this process, mapped: made, grown, and left to the parent by a forked child.
 *
 * Nothing here allocates, takes a lock or changes errno. Memory is in the file before it is written to, so that a full
 * file system ends the growth, and no access ever fails.
 */
#ifndef POUNDLOCK_STATS_REGION_H
#define POUNDLOCK_STATS_REGION_H

#include "stack.h"

/* Where the file is or will be mapped; NULL until stats_region_reserve(). */
extern W_HIDDEN struct stats_header *stats_region;

#define STATS_LOCKS_MOST 16384u
#define STATS_THREADS_MOST 2048u
#define STATS_LOCK_SLOTS (2 * STATS_LOCKS_MOST)
#define STATS_STACK_SLOTS 8192u

/* A wait whose stack is counted once the lock that was waited for is released. */
struct stats_pending {
	uint64_t key; /* 0: none */
	uint64_t ns;
	struct stats_frames stack;
};

/* What belongs to a file, but is no part of it. */
struct stats_private {
	/* One more than an item's index, by hash. */
	W_ATOMIC(uint32_t) locks[STATS_LOCK_SLOTS];
	W_ATOMIC(uint32_t) stacks[STATS_STACK_SLOTS];
	struct stats_pending pending[STATS_THREADS_MOST];
};

extern W_HIDDEN struct stats_private *stats_private;

/* Reserves the addresses for files in @folder. False if there are none left. */
W_HIDDEN bool stats_region_reserve(const char *folder, bool profile, const char *lock, const char *rwlock);

/*
 * Whether there is a file, made now if this process has none yet. @say: after a line on stderr if it cannot be made;
 * only while no other thread can hold a lock of the C library.
 */
W_HIDDEN bool stats_region_open(bool say);

/* In a forked child: the file is the parent's, and what is written to the region reaches nobody until it is opened anew. */
W_HIDDEN void stats_region_leave(void);

/* A new item of an array, all zero, and its index. NULL if there is no room. The first @spare are for others. */
W_HIDDEN void *stats_take(enum stats_area_name area, uint32_t spare, uint32_t *index);

/* The path of the file. */
W_HIDDEN const char *stats_region_path(void);

W_HIDDEN void *stats_item(enum stats_area_name area, uint32_t index);
/* How many items of an array may be in use. */
W_HIDDEN uint32_t stats_used(enum stats_area_name area);

/* The locks follow the header at once: their array is on the paths of all locks. */
#define STATS_LOCKS_OFFSET 4096u
_Static_assert(sizeof(struct stats_header) <= STATS_LOCKS_OFFSET, "the header is a page");

static inline struct stats_lock *stats_lock_item(uint32_t index)
{
	return (struct stats_lock *)((char *)stats_region + STATS_LOCKS_OFFSET) + index;
}

#endif
