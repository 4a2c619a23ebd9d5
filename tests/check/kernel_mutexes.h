/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by the clients of the kernel's mutex: the mutex in the kernel's world
 * (world/kernel/objects.h), where a tail in a list's head is its own address if nobody waits, and
 * the threads. With MUTEX_BY_CFL all of them use CFL, otherwise ShflLock. The includer defines
 * mutex_check_owner(task), which checks the mutex's owner. It may define mutex_hints(), which
 * declares the lock's hints to the engine, and CFL_ORDER, a header that replaces parts of
 * core/cfl/.
 */
#ifndef POUNDLOCK_CHECK_KERNEL_MUTEXES_H
#define POUNDLOCK_CHECK_KERNEL_MUTEXES_H

#define CHECK_OBJECTS "../../tests/check/kernel.h"
#define W_TAIL_IN_LIST
#define KERNEL_INTS 0
#define KERNEL_PLACES 0
#include "check.h"
#include "entry.h"
#include "kernel_tasks.h"

#ifndef mutex_hints
#define mutex_hints() ((void)0)
#endif

/* As in the kernel, without debugging. */
#define CONFIG_MUTEX_SPIN_ON_OWNER
struct mutex {
	atomic_long_t owner;
	u32 wait_lock, osq;
	struct list_head wait_list;
};

struct memory {
	struct mutex mutex;
	uint32_t entered; /* under the mutex */
	W_ATOMIC(uint32_t) generation;
};

struct notes {
	struct task_notes tasks;
	uint32_t entered, users;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

#define MUTEX_WARN_ON(condition) ((void)0)
#define mutex_acquire_nest(map, subclass, trylock, nest, ip) ((void)0)
#define mutex_release(map, ip) ((void)0)

/* Of policies that are loaded. */
#define measures_holds() false

struct lockdep_map;

static inline W_ATOMIC(uint32_t) *no_generation(void)
{
	return &M->generation;
}

/* CFL, or declarations of what task_mutex.h uses of it. */
#ifdef MUTEX_BY_CFL
#ifdef CFL_ORDER
#include CFL_ORDER
#endif
#undef static_branch_unlikely
#define static_branch_unlikely(key) true
#include "../../kernel/overlay/cfl_task_mutex.h"
#else
struct cfl_mutex;
static const struct {
	char unused;
} cfl_settings;
struct cfl_mutex *cfl_of(struct mutex *mutex);
bool cfl_mutex_try_acquire(struct cfl_mutex *lock);
#define cfl_mutex_release(lock, settings) ((void)(settings), false)
bool wait_by_cfl(struct mutex *mutex, const struct w_deadline *deadline);
#endif

/* The owner is set to a thread's number + 1, or to 0. */
#define get_current() ((s64)(check_self() + 1))
#define atomic_long_set(owner, task) \
	((task) ? task_acquired(true) : (void)0, WRITE_ONCE((owner)->counter, task))

#include "../../kernel/overlay/task_mutex.h"

/* ---- Threads ---- */

/* As mutex_lock() and the functions beside it. */
static int lock_in(unsigned int state)
{
	int error;

	task_acquires();
	error = take(&M->mutex, state, 0, NULL, 0);
	check_returned();
	task_acquired(!error);
	check_assert(!UNPREEMPTIBLE);
	return error;
}

/* As mutex_unlock(). */
static void unlock(void)
{
	check_assert(!is_stock(&M->mutex));
	check_assert(give(&M->mutex));
	check_assert(!UNPREEMPTIBLE);
}

static void enter(void)
{
	mutex_check_owner(get_current());
	M->entered++;
	(void)check_add(&NOTES->entered, 1);
}

static void once(uint32_t self)
{
	(void)self;
	check_assert(!lock_in(TASK_UNINTERRUPTIBLE));
	enter();
	unlock();
}

static void twice(uint32_t self)
{
	once(self);
	once(self);
}

static void or_try(uint32_t self)
{
	if (self != 1) {
		once(self);
	} else if (take_free(&M->mutex)) {
		enter();
		unlock();
	}
}

/* Threads other than the first may be interrupted. */
static void interrupted(uint32_t self)
{
	if (!self) {
		once(self);
	} else if (!lock_in(TASK_INTERRUPTIBLE)) {
		enter();
		unlock();
	} else {
		(void)check_add(&TASK_NOTES->interrupted, 1);
	}
}

/* The last user frees the mutex right after its unlock. */
static void freed(uint32_t self)
{
	bool last;

	(void)self;
	check_assert(!lock_in(TASK_UNINTERRUPTIBLE));
	enter();
	last = M->entered == NOTES->users;
	unlock();
	if (last)
		check_ended(&M->mutex);
}

/* ---- Starts and ends ---- */

static void prepare(void)
{
	check_queue(&shfl_of(&M->mutex)->tail);
	mutex_hints();
	w_init(&M->mutex.wait_list.next, &M->mutex.wait_list);
	NOTES->users = 2;
}

static void finish(void)
{
	check_assert(M->entered == NOTES->entered);
	finish_tasks();
}

/* Nobody holds the mutex or waits for it: to stock's code, it is free and its list is empty. */
static void finish_free(void)
{
	finish();
	mutex_check_owner(0);
	check_assert(READ_ONCE(M->mutex.wait_list.next) == &M->mutex.wait_list);
	check_assert(take_free(&M->mutex));
}

#endif
