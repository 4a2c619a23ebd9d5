/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CFL in a struct mutex; included by mutex.c, which describes the layout, before task_mutex.h, and
 * by the model checker's client (tests/check/kernel_cfl_mutex.c). The including file has defined
 * LOCK_LAYOUT, W_TAIL_IN_LIST, W_SHARES, SET(), the initialiser of a setting, and no_generation(),
 * the address of a word that is 0.
 */
#ifndef POUNDLOCK_KERNEL_CFL_TASK_MUTEX_H
#define POUNDLOCK_KERNEL_CFL_TASK_MUTEX_H

#include "ledgers.h"
#include "mutex_layout.h"

struct cfl {
	MUTEX_MEMBERS(uint64_t start, limit);
};

MUTEX_MEMBERS_FIT(struct cfl, limit);

static inline W_ATOMIC(uint32_t) *cfl_generation(struct cfl *lock)
{
	return no_generation();
}

#include "cfl_mutex.h"

static const struct cfl_mutex_policy cfl_settings = {.wait = WAIT_PARK, cfl_mutex_settings(SET)};

static __always_inline struct cfl_mutex *cfl_of(struct mutex *mutex)
{
	return (struct cfl_mutex *)mutex;
}

/* Waits for @lock with a node on the stack, regardless of signals. Returns true. */
static noinline bool cfl_wait_on_stack(struct cfl *lock, struct cfl_arrival arrival)
{
	W_OWN_LINE struct cfl_node node;
	bool taken = cfl_acquire_queued(lock, &node, CFL_POLICY(cfl_settings, true), arrival, NULL);

	/*
	 * A walker on another CPU, which is not preempted, may still read the node. acquire: pairs
	 * with [WAIT-8]; its last access
	 */
	(void)w_await_acquire(&node.node.status, VAL == SHFL_FREE);
	return taken;
}

/* As wait_by_shfl(), by cfl. */
static bool wait_by_cfl(struct mutex *mutex, const struct w_deadline *deadline)
{
	struct cfl *lock = &cfl_of(mutex)->cfl;
	struct cfl_arrival arrival = cfl_arrive(lock, w_now());
	struct cfl_node *node;

	if (cfl_steal(lock, arrival))
		return true;
	if (w_expired(deadline))
		return false;
	node = w_node_claim();
	return node ? cfl_acquire_queued(lock, node, CFL_POLICY(cfl_settings, true), arrival,
					 deadline)
		    : cfl_wait_on_stack(lock, arrival);
}

#endif
