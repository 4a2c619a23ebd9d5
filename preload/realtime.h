/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Readers and writers of SCHED_FIFO and SCHED_RR (POSIX: Thread Execution Scheduling). A real-time
 * reader passes the writers that are blocked on a lock if all of them have a lower priority.
 * Implemented by realtime.c.
 *
 * In a process that no thread of which has ever been real-time, this is one load where a thread is
 * about to wait.
 */
#ifndef POUNDLOCK_REALTIME_H
#define POUNDLOCK_REALTIME_H

#include "preload.h"

/*
 * 0: no thread is or was real-time. Odd otherwise, and different after each change of a thread's
 * scheduling.
 */
extern W_HIDDEN W_ATOMIC(uint32_t) realtime_changes;

/* Real-time writers that are about to wait, or wait. */
struct realtime_writer;

W_HIDDEN W_SLOW bool realtime_outranks(const void *lock);
W_HIDDEN W_SLOW struct realtime_writer *realtime_list(const void *lock);
W_HIDDEN W_SLOW void realtime_remove(struct realtime_writer *writer);

/* Called once, before the threads that use locks exist. */
W_HIDDEN void realtime_start(void);

/* relaxed: who changes a thread's scheduling is that thread, or is ordered before it waits */
static inline bool realtime_is_possible(void)
{
	return w_unlikely(w_load_relaxed(&realtime_changes));
}

/*
 * Returns whether the caller is a real-time reader, and no writer of its priority or a higher one
 * is blocked on @lock.
 */
static inline bool realtime_passes(const void *lock)
{
	return realtime_is_possible() && realtime_outranks(lock);
}

/*
 * Lists the caller as a writer that is about to wait for @lock. Returns NULL if it is not
 * real-time; otherwise what realtime_unblock() gets after the wait.
 */
static inline struct realtime_writer *realtime_block(const void *lock)
{
	return realtime_is_possible() ? realtime_list(lock) : NULL;
}

static inline void realtime_unblock(struct realtime_writer *writer)
{
	if (w_unlikely(writer))
		realtime_remove(writer);
}

#endif
