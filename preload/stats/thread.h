/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The calling thread's state, and the tables of the file that threads count in. A table belongs to
 * one thread at a time: when the file has no room for another one, the tables of threads that have
 * ended are emptied and used again.
 */
#ifndef POUNDLOCK_STATS_THREAD_H
#define POUNDLOCK_STATS_THREAD_H

#include "region.h"

struct stats_self {
	struct stats_thread *table; /* stats_no_table: the thread is not observed now */
	struct stats_row *last[2];  /* taken last: mutex, readers-writer lock */
	struct stats_row *observed; /* of the operation in progress; NULL: none */
	struct stats_thread *own;   /* NULL: the thread has no table */
	uint32_t begun;             /* in the process whose file this is about; 0: not yet */
	uint32_t random;
	bool inside;  /* signal handlers, and locks that the unwinder takes, are not observed */
	bool refused; /* there was no room for a table */
};

extern W_HIDDEN __thread struct stats_self stats_self __attribute__((tls_model("initial-exec")));

extern W_HIDDEN struct stats_thread stats_no_table;
extern W_HIDDEN struct stats_row stats_no_row;

/* Gives the calling thread a table. False if there is no room for one; later calls fail at once. */
W_HIDDEN bool stats_attach(void);

/* Acquisitions until the next one that is timed: a random number whose mean is hold_every. */
W_HIDDEN uint32_t stats_next_timed(void);

/*
 * The same from a moment at random on, with which a row begins: however often a lock loses its row,
 * any acquisition is as likely to be timed.
 */
W_HIDDEN uint32_t stats_first_timed(void);

/* Sets the mean for stats_next_timed(). Before the first thread is observed. */
W_HIDDEN void stats_time_one_of(uint32_t hold_every);

/* Lets ends of threads be noted. Before the first thread is observed. */
W_HIDDEN void stats_watch_threads(void);

/* The calling thread has read the clock. Returns @now. */
static inline uint64_t stats_seen_at(uint64_t now)
{
	/* relaxed: a figure */
	if (w_likely(stats_self.own))
		w_store_relaxed(&stats_self.own->seen_ns, now);
	return now;
}

/* The row for operations that are not observed. Nobody reads it. */
static inline struct stats_row *stats_scratch_row(void)
{
	_Static_assert(sizeof(struct stats_row) <= sizeof(w_block()->preload),
		       "a row fits in the thread's block");
	return (struct stats_row *)w_block()->preload;
}

/* From here on the calling thread is not observed, until stats_resume(). */
static inline void stats_suspend(void)
{
	stats_self.inside = true;
	stats_self.table = &stats_no_table;
	stats_self.last[false] = &stats_no_row;
	stats_self.last[true] = &stats_no_row;
}

/* Ends stats_suspend(). @table: what stats_self.table was before. */
static inline void stats_resume(struct stats_thread *table)
{
	stats_self.table = table;
	stats_self.inside = false;
}

W_HIDDEN W_SLOW void stats_leave_to_parent(void);

/*
 * Begins every operation: a child, however it was forked, must not count in its parent's file. A
 * vfork child shares its parent's memory, and what it does counts as the parent thread's.
 */
static inline void stats_check_fork(void)
{
	if (w_unlikely(stats_self.begun != w_fork_generation() + 1))
		stats_leave_to_parent();
}

/* Whether stats_check_fork() has nothing to do, if the calling thread has a table. */
static inline bool stats_is_in_process(void)
{
	return w_likely(stats_self.begun == w_fork_generation_begun());
}

static inline struct stats_pending *stats_pending_of(struct stats_thread *table)
{
	return &stats_private->pending[table - (struct stats_thread *)stats_item(STATS_THREADS, 0)];
}

#endif
