/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by the clients of the kernel's locks of tasks: what these use beside kernel.h. The
 * includer has included check.h with kernel.h's objects, struct task_notes is the first member of
 * its struct notes, and it defines prepare().
 */
#ifndef POUNDLOCK_CHECK_KERNEL_TASKS_H
#define POUNDLOCK_CHECK_KERNEL_TASKS_H

#include <errno.h>

#include "kernel_signal.h"
#include "small.h"

struct task_notes {
	uint32_t unpreemptible[MOST_TASKS]; /* preemption is off, by thread */
	uint32_t interrupted;               /* the threads that were */
	bool may_be_empty;                  /* the pool of nodes */
	bool changes;                       /* the locks' settings, at any moment */
	bool still;                         /* no time passes */
	bool acquires[MOST_TASKS];          /* by thread */
};

#define TASK_NOTES check_ghost(struct task_notes)
#define KERNEL_CHANGES TASK_NOTES->changes
#define UNPREEMPTIBLE TASK_NOTES->unpreemptible[check_self()]
#define preempt_disable() ((void)UNPREEMPTIBLE++)
#define preempt_enable() ((void)UNPREEMPTIBLE--)

/* An acquisition of the thread begins. */
static void task_acquires(void)
{
	check_acquires();
	TASK_NOTES->acquires[check_self()] = true;
}

/*
 * It has ended, unless it had before: at the store that names the owner, which another thread may
 * precede by its next acquisition.
 */
static void task_acquired(bool taken)
{
	if (TASK_NOTES->acquires[check_self()])
		check_acquired(taken);
	TASK_NOTES->acquires[check_self()] = false;
}

/* Preemption is off from a release to the wake-up, or the lock would be idle meanwhile. */
static inline void unpark_unpreemptible(W_ATOMIC(uint32_t) *p)
{
	check_assert(UNPREEMPTIBLE);
	w_unpark(p);
}
#undef w_unpark
#define w_unpark(p) unpark_unpreemptible(p)

/* A node on the stack cannot be left in the queue. */
#undef w_waiter_node
#define w_waiter_node(on_stack, may_leave) (check_assert(!(may_leave)), (void *)(on_stack))

static void *w_node_claim(void)
{
	if (TASK_NOTES->may_be_empty && CHECK_DO("empty", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0))
		return NULL;
	return w_node_get();
}

static void prepare(void);

static inline void prepare_empty(void)
{
	prepare();
	TASK_NOTES->may_be_empty = true;
}

static inline void prepare_changes(void)
{
	prepare();
	TASK_NOTES->changes = true;
}

/* No node is left behind. */
static inline void finish_tasks(void)
{
	check_assert(!check_busy_nodes());
	check_outcome(0, TASK_NOTES->interrupted);
}

/* Of a client: from the closing on, no later arrival bypasses a waiter. */
#define ORDERED .flags = CHECK_CLIENT_ORDER, .bypass = 0, .since = 1 + W_EVENT_close

#define LOCK_LAYOUT
#define SET(lock, key, ...) .key = SMALL_##lock##_##key,

#include "part/rw_word.h"
#include "part/shuffle.h"

#endif
