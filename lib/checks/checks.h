/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Checks of how a program uses its locks: the functions pound_debug_*() of poundlock_watch.h, which
 * the headers and the preload library call around each operation. The locks know nothing of them.
 *
 * All that is known about locks and threads is found by the locks' addresses and is guarded by one
 * mutex of this folder. Memory comes from the kernel and is kept. A thread that is inside does not
 * enter again: operations of its signal handlers, and of functions that the checks call, are not
 * checked.
 *
 *   checks.c  the process, threads, the locks that they hold, and each check
 *   order.c   the graph of the locks' order
 *   stack.c   call stacks
 *   report.c  the text of a report
 */
#ifndef POUNDLOCK_CHECKS_H
#define POUNDLOCK_CHECKS_H

#include "poundlock_watch.h"
#include "world.h"

#define DEBUG_DEPTH 24

/* Each distinct stack exists once, and is never freed. */
struct debug_stack {
	struct debug_stack *next; /* with the same hash */
	uint32_t depth;
	uint32_t reported; /* bits: enum debug_error */
	uintptr_t frames[DEBUG_DEPTH];
};

struct debug_thread {
	struct debug_hold *holds; /* the latest first */
	struct debug_thread *next_free;
	uint32_t number;
	uint32_t tid;
	uint32_t generation; /* the process that it runs in */
	uint32_t rounds;     /* calls of the destructor at its end */
};

/* One acquisition that has not been released. */
struct debug_hold {
	struct debug_lock *lock;
	struct debug_thread *thread;
	struct debug_stack *stack;
	unsigned flags;
	struct debug_hold *next_of_lock, *next_of_thread;
};

/* A thread locked @to while it held the edge's lock. */
struct debug_edge {
	struct debug_edge *next;
	struct debug_lock *to;
	uint32_t to_life; /* of @to: the edge is void once that has been destroyed */
	uint32_t tid;
	struct debug_stack *held_at, *locked_at;
};

struct debug_lock {
	struct debug_lock *next; /* with the same hash */
	uintptr_t address;
	uint32_t life;       /* incremented when it is destroyed: a later lock has its address */
	uint32_t generation; /* the process that locked it last */
	struct debug_hold *holds;
	struct debug_edge *edges;
	struct debug_stack *made_at; /* NULL: not initialised, or needs no destroying */
	uint32_t made_by;
	uint32_t made_in; /* the process */
	struct debug_stack *released_at;
	uint32_t released_by;
	/* A search for a path (order.c). */
	uint32_t search;
	struct debug_lock *previous, *next_found;
	const struct debug_edge *by;
};

/* ---- Reports ---- */

/* ERROR(name in POUNDLOCK_DEBUG, first line of the report) */
#define DEBUG_ERRORS(ERROR)                                                     \
	ERROR(relock, "a thread locks a lock that it holds")                    \
	ERROR(stranger, "a thread unlocks a lock that another one holds")       \
	ERROR(free, "a thread unlocks a lock that no thread holds")             \
	ERROR(order, "locks are locked in opposite orders, which can deadlock") \
	ERROR(destroy, "a lock is destroyed while it is held")                  \
	ERROR(init, "a lock is initialised over one that was not destroyed")    \
	ERROR(end, "a thread ends while it holds a lock")                       \
	ERROR(held, "the process ends while a thread holds a lock")             \
	ERROR(leak, "the process ends, and a lock has not been destroyed")      \
	ERROR(assertion, "a thread does not hold a lock that it is assumed to hold")

enum debug_error {
#define ERROR(name, line) DEBUG_##name,
	DEBUG_ERRORS(ERROR)
#undef ERROR
		DEBUG_ERROR_KINDS
};

/* A thread did something with a lock, somewhere. */
struct debug_site {
	uint32_t tid;
	const char *did;
	uintptr_t lock;
	uintptr_t held; /* 0: none */
	const struct debug_stack *stack;
};

#define DEBUG_SITES 12

struct debug_report {
	enum debug_error error;
	uint32_t sites; /* 0: nothing to report */
	struct debug_site site[DEBUG_SITES];
};

/* Adds a site. Those that find no room are left out. */
W_HIDDEN void debug_add_site(struct debug_report *report, struct debug_site site);

/* Prints @report. The caller does not hold the mutex. */
W_HIDDEN void debug_print(const struct debug_report *report);

/* Prints a line. */
W_HIDDEN void debug_say(const char *line);

/* ---- Stacks ---- */

/* Frames from @debug_skip_from up to @debug_skip_to are left out: those of the preload library. */
extern W_HIDDEN uintptr_t debug_skip_from, debug_skip_to;

/* Loads what is needed later, which may allocate. */
W_HIDDEN void debug_stack_start(void);

/* The stack from the frame that @caller returns to outwards. Needs no mutex. */
W_HIDDEN void debug_capture(struct debug_stack *stack, void *caller);

/* The one stack that equals @captured. NULL without memory. */
W_HIDDEN struct debug_stack *debug_stack_keep(const struct debug_stack *captured);

/* ---- The mutexes of this folder ---- */

/* The fork generation + 1 of the process whose thread holds it; 0: free. A parent's is free. */
struct debug_mutex {
	W_ATOMIC(uint32_t) holder;
};

static inline void debug_mutex_lock(struct debug_mutex *mutex)
{
	uint32_t mine = w_fork_generation() + 1, seen = 0;

	/* acquire: pairs with the release in debug_mutex_unlock() */
	while (!atomic_compare_exchange_weak_explicit(&mutex->holder, &seen, mine,
						      memory_order_acquire, memory_order_relaxed))
		if (seen == mine) {
			w_yield();
			seen = 0;
		}
}

static inline void debug_mutex_unlock(struct debug_mutex *mutex)
{
	/* release: pairs with the acquire in debug_mutex_lock() */
	atomic_store_explicit(&mutex->holder, 0, memory_order_release);
}

/* ---- Memory: NULL, and no checks from then on, if there is none ---- */

W_HIDDEN void *debug_take(size_t size);

/* ---- Order ---- */

/*
 * Notes that @self, which holds locks, waits for @lock at @stack. Describes the first inversion of
 * an order that has been observed, if there is one, in @report.
 */
W_HIDDEN void debug_order(struct debug_thread *self, struct debug_lock *lock,
			  struct debug_stack *stack, struct debug_report *report);

/* Removes what is known of the order of @lock, which is destroyed. */
W_HIDDEN void debug_order_forget(struct debug_lock *lock);

/* ---- The preload library's part ---- */

/* Whether POUNDLOCK_DEBUG asks for checks. False, and a line on stderr, also if it is wrong. */
W_HIDDEN bool debug_is_asked(void);

#endif
