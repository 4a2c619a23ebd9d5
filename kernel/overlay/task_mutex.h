/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ShflLock in a struct mutex, and the paths of both locks that a mutex can be; included by mutex.c,
 * which describes the layout and has CFL, and by the model checker's clients
 * (tests/check/kernel_mutex.c). The including file has defined LOCK_LAYOUT and W_TAIL_IN_LIST,
 * SET(), the initialiser of a setting, and no_generation(), the address of a word that is 0.
 */
#ifndef POUNDLOCK_KERNEL_TASK_MUTEX_H
#define POUNDLOCK_KERNEL_TASK_MUTEX_H

#include "mutex_layout.h"

/* @owner is the holder, as stock's. It is 0 while the mutex is free, and a moment longer. */
struct shfl_mutex {
	MUTEX_MEMBERS(atomic_long_t owner, unused_3);
};

MUTEX_MEMBERS_FIT(struct shfl_mutex, unused_3);

static inline W_ATOMIC(uint32_t) *shfl_mutex_generation(struct shfl_mutex *lock)
{
	return no_generation();
}

#include "shfl_mutex.h"
#include "tuning.h"

/* ---- Both locks ---- */

static const struct shfl_mutex_policy shfl_settings = {.wait = WAIT_PARK, shfl_mutex_settings(SET)};

static __always_inline struct shfl_mutex *shfl_of(struct mutex *mutex)
{
	return (struct shfl_mutex *)mutex;
}

/*
 * Whether stock took @mutex, which the caller holds. Others may not ask: a free mutex seems to be
 * stock's, and a ww_mutex that has waiters to be ours, since stock locks its wait_lock then.
 */
static __always_inline bool is_stock(struct mutex *mutex)
{
	/* relaxed: only the holder clears the flag, so it reads its own store */
	return !(w_load_relaxed(&shfl_of(mutex)->state) & SHFL_MUTEX_LOCKED);
}

/* Names the caller, which has just taken @mutex by shfl, for waiters that spin, and for tools. */
static __always_inline void name_holder(struct mutex *mutex)
{
	atomic_long_set(&mutex->owner, (long)get_current());
}

/* Takes @mutex by shfl if it is free. There are no waiters of a parent process to discard. */
static __always_inline bool shfl_take_free(struct mutex *mutex)
{
	uint32_t seen;

	if (unlikely(!shfl_mutex_take_free(shfl_of(mutex), &seen)))
		return false;
	name_holder(mutex);
	return true;
}

/* As the holder, which shfl has named. */
static __always_inline bool shfl_give(struct mutex *mutex)
{
	/* Before the release, after which the mutex may be another task's, or gone */
	atomic_long_set(&mutex->owner, 0);
	return shfl_mutex_release(shfl_of(mutex), shfl_settings);
}

/* Begins to measure the hold of @mutex, which the caller has just taken, if that is wanted. */
static __always_inline void begin_hold(struct mutex *mutex)
{
	if (!measures_holds())
		return;
	preempt_disable();
	hold_begin(shfl_of(mutex));
	preempt_enable();
}

/* Takes @mutex if it is free; a cfl task must also be owed time to pass waiters. */
static __always_inline bool take_free(struct mutex *mutex)
{
	bool taken;

	if (!static_branch_unlikely(&by_cfl))
		return shfl_take_free(mutex);
	/* Charged to its account. */
	preempt_disable();
	taken = cfl_mutex_try_acquire(cfl_of(mutex));
	preempt_enable();
	return taken;
}

/*
 * Releases @mutex, and is not preempted before the wake-up: meanwhile nobody would hold the lock,
 * and newcomers could not take a closed one. A cfl task also charges its account.
 */
static __always_inline bool give(struct mutex *mutex)
{
	bool held;

	preempt_disable();
	if (measures_holds())
		hold_end(shfl_of(mutex));
	held = static_branch_unlikely(&by_cfl) ? cfl_mutex_release(cfl_of(mutex), cfl_settings)
					       : shfl_give(mutex);
	preempt_enable();
	return held;
}

/* The settings @by for a mutex. */
static inline struct shfl_mutex_policy shfl_settings_by(struct tuning by)
{
	struct shfl_mutex_policy settings = shfl_settings;

	settings.policy = by.policy;
	settings.batch = by.batch;
	return settings;
}

/* Waits for @mutex by the settings @by; false after a signal. @deadline NULL: not interruptible. */
static bool wait_by_settings(struct mutex *mutex, struct shfl_mutex_policy by,
			     const struct w_deadline *deadline)
{
	struct shfl_mutex *lock = shfl_of(mutex);
	struct shfl_node *node;

	if (!deadline)
		return shfl_mutex_acquire_slow(lock, by, NULL);
	if (shfl_mutex_spin(lock, by, deadline))
		return true;
	if (w_expired(deadline))
		return false;
	node = w_node_claim();
	return node ? shfl_mutex_acquire_queued(lock, node, by, deadline)
		    : shfl_mutex_acquire_slow(lock, by, NULL);
}

/* Waits for @mutex by shfl, as wait_by_settings(). */
static bool wait_by_shfl(struct mutex *mutex, const struct w_deadline *deadline)
{
	const struct tuning by = tuning_of(TUNED_MUTEX, mutex);
	bool taken = wait_by_settings(mutex, shfl_settings_by(by), deadline);

	tuning_end(by);
	return taken;
}

/* Takes @mutex, which a fast path found held: 0, or -EINTR after a signal that @state admits. */
static noinline int __sched wait_for(struct mutex *mutex, unsigned int state, unsigned long ip)
{
	const struct w_deadline signal = {.state = state},
				*deadline = state == TASK_UNINTERRUPTIBLE ? NULL : &signal;
	bool taken;

	lock_contended(&mutex->dep_map, ip);
	trace_contention_begin(mutex, LCB_F_MUTEX);
	/* A waiter is not preempted before its node is linked: its successor waits for the link. */
	preempt_disable();
	taken = static_branch_unlikely(&by_cfl) ? wait_by_cfl(mutex, deadline)
						: wait_by_shfl(mutex, deadline);
	if (taken && !static_branch_unlikely(&by_cfl))
		name_holder(mutex);
	preempt_enable();
	if (taken)
		trace_poundlock_handover(mutex);
	trace_contention_end(mutex, taken ? 0 : -EINTR);
	return taken ? 0 : -EINTR;
}

static __always_inline int take(struct mutex *mutex, unsigned int state, unsigned int subclass,
				struct lockdep_map *nest, unsigned long ip)
{
	int error = 0;

	might_sleep();
	MUTEX_WARN_ON(mutex->magic != mutex);
	mutex_acquire_nest(&mutex->dep_map, subclass, 0, nest, ip);
	if (unlikely(!take_free(mutex)))
		error = wait_for(mutex, state, ip);
	if (error)
		mutex_release(&mutex->dep_map, ip);
	else
		lock_acquired(&mutex->dep_map, ip);
	if (!error)
		begin_hold(mutex);
	return error;
}

#endif
