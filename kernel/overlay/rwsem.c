// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Replaces Linux's kernel/locking/rwsem.c: the same struct rw_semaphore and functions, with the
 * lock that the boot parameter chooses:
 *
 *	poundlock.rwsem=stock|shfl
 *
 * stock is the replaced file, unchanged. shfl is core/rw/shfl_rw.h in the bytes of the struct
 * rw_semaphore:
 *
 *   count       the word of core/part/rw_word.h; its other half is 0, so that a free one is 0
 *   owner       as stock's: the writer's task; or a reader's, with a flag, which may have left
 *   osq         unused
 *   wait_lock   unused
 *   wait_list   `tail` and `heir`; without waiters `tail` is its own address, like an empty list
 *
 * So a struct rw_semaphore has stock's size and initialisers, and the inline functions
 * rwsem_is_locked() and rwsem_is_contended() work.
 *
 * Promises: readers share, a writer is alone, and no reader enters while the queue head waits for
 * readers to leave. Order and bypass bound are those of core/rw/shfl_rw.h with default settings.
 * Waiters spin for a bounded time, not while their CPU is needed, and then sleep. The queue head
 * does not spin while the writer that it waits for does not run, and closes the rwsem to newcomers
 * after 4 ms. An interrupted waiter leaves at once, as described in mutex.c. Interrupt handlers and
 * tasks other than the holder may release. The last access is the store that releases it.
 */
#include <linux/debug_locks.h>
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/debug.h>
#include <linux/sched/rt.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/wake_q.h>
#include <linux/string.h>
#include <linux/threads.h>
#include <linux/trace_events.h>

#include "choice.h"
#include "own_policy.h"

#ifdef CONFIG_PREEMPT_RT
#error "under PREEMPT_RT a rwsem is another lock: build without"
#endif

/* ---- The original, under other names ---- */

#define down_read stock_down_read
#define down_read_interruptible stock_down_read_interruptible
#define down_read_killable stock_down_read_killable
#define down_read_trylock stock_down_read_trylock
#define down_write stock_down_write
#define down_write_killable stock_down_write_killable
#define down_write_trylock stock_down_write_trylock
#define up_read stock_up_read
#define up_write stock_up_write
#define downgrade_write stock_downgrade_write
void down_read(struct rw_semaphore *sem);
int down_read_interruptible(struct rw_semaphore *sem);
int down_read_killable(struct rw_semaphore *sem);
int down_read_trylock(struct rw_semaphore *sem);
void down_write(struct rw_semaphore *sem);
int down_write_killable(struct rw_semaphore *sem);
int down_write_trylock(struct rw_semaphore *sem);
void up_read(struct rw_semaphore *sem);
void up_write(struct rw_semaphore *sem);
void downgrade_write(struct rw_semaphore *sem);
#ifdef CONFIG_DEBUG_LOCK_ALLOC
#define down_read_nested stock_down_read_nested
#define down_read_killable_nested stock_down_read_killable_nested
#define _down_write_nest_lock stock_down_write_nest_lock
#define down_read_non_owner stock_down_read_non_owner
#define down_write_nested stock_down_write_nested
#define down_write_killable_nested stock_down_write_killable_nested
#define up_read_non_owner stock_up_read_non_owner
void down_read_nested(struct rw_semaphore *sem, int subclass);
int down_read_killable_nested(struct rw_semaphore *sem, int subclass);
void _down_write_nest_lock(struct rw_semaphore *sem, struct lockdep_map *nest);
void down_read_non_owner(struct rw_semaphore *sem);
void down_write_nested(struct rw_semaphore *sem, int subclass);
int down_write_killable_nested(struct rw_semaphore *sem, int subclass);
void up_read_non_owner(struct rw_semaphore *sem);
#endif

#include <../kernel/locking/rwsem.c>

#undef down_read
#undef down_read_interruptible
#undef down_read_killable
#undef down_read_trylock
#undef down_write
#undef down_write_killable
#undef down_write_trylock
#undef up_read
#undef up_write
#undef downgrade_write
#ifdef CONFIG_DEBUG_LOCK_ALLOC
#undef down_read_nested
#undef down_read_killable_nested
#undef _down_write_nest_lock
#undef down_read_non_owner
#undef down_write_nested
#undef down_write_killable_nested
#undef up_read_non_owner
#endif

#include "poundlock_trace.h"

static DEFINE_STATIC_KEY_FALSE(by_shfl);

/* The original needs the kernel's `current`, which the world undefines. */
#ifdef CONFIG_DEBUG_RWSEMS
#define RWSEM_WARN_ON(condition) DEBUG_LOCKS_WARN_ON(condition)
#else
#define RWSEM_WARN_ON(condition)
#endif

/* ---- ShflLock in a struct rw_semaphore ---- */

#define W_SLEEPS
#define W_TAIL_IN_LIST
#define W_SHARES
#include "park.h"
#include "part/rw_word.h"
#include "part/shuffle.h"

#define LOCK_LAYOUT
#define SET(lock, key, otherwise, ...) .key = (otherwise),

struct shfl_rw;

/*
 * Whether the owner that @lock names is a writer that does not run. Preemption is off, and a writer
 * clears the owner before it leaves, so its task's memory is not freed meanwhile.
 */
static inline bool writer_sleeps(struct shfl_rw *lock)
{
	const unsigned long owner = atomic_long_read(&((struct rw_semaphore *)lock)->owner);

	return owner && !(owner & RWSEM_OWNER_FLAGS_MASK) &&
	       !owner_on_cpu((struct task_struct *)owner);
}

#define shfl_rw_writer_sleeps(lock) writer_sleeps(lock)

#include "task_rwsem.h"

/* Reports to lockdep whether @sem was entered. Returns @error. */
static __always_inline int tell(struct rw_semaphore *sem, int error, unsigned long ip)
{
	if (error)
		rwsem_release(&sem->dep_map, ip);
	else
		lock_acquired(&sem->dep_map, ip);
	return error;
}

static __always_inline int shfl_read(struct rw_semaphore *sem, unsigned int state, int subclass,
				     unsigned long ip)
{
	might_sleep();
	rwsem_acquire_read(&sem->dep_map, subclass, 0, ip);
	return tell(sem, enter(sem, false, state, ip), ip);
}

static __always_inline int shfl_write(struct rw_semaphore *sem, unsigned int state, int subclass,
				      struct lockdep_map *nest, unsigned long ip)
{
	might_sleep();
	rwsem_acquire_nest(&sem->dep_map, subclass, 0, nest, ip);
	return tell(sem, enter(sem, true, state, ip), ip);
}

/* ---- The kernel's functions ---- */

void __sched down_read(struct rw_semaphore *sem)
{
	if (static_branch_unlikely(&by_shfl))
		(void)shfl_read(sem, TASK_UNINTERRUPTIBLE, 0, _RET_IP_);
	else
		stock_down_read(sem);
}
EXPORT_SYMBOL(down_read);

int __sched down_read_interruptible(struct rw_semaphore *sem)
{
	if (static_branch_unlikely(&by_shfl))
		return shfl_read(sem, TASK_INTERRUPTIBLE, 0, _RET_IP_);
	return stock_down_read_interruptible(sem);
}
EXPORT_SYMBOL(down_read_interruptible);

int __sched down_read_killable(struct rw_semaphore *sem)
{
	if (static_branch_unlikely(&by_shfl))
		return shfl_read(sem, TASK_KILLABLE, 0, _RET_IP_);
	return stock_down_read_killable(sem);
}
EXPORT_SYMBOL(down_read_killable);

int down_read_trylock(struct rw_semaphore *sem)
{
	bool entered;

	if (!static_branch_unlikely(&by_shfl))
		return stock_down_read_trylock(sem);
	entered = enter_free(sem, false, true);
	if (entered)
		rwsem_acquire_read(&sem->dep_map, 0, 1, _RET_IP_);
	return entered;
}
EXPORT_SYMBOL(down_read_trylock);

void __sched down_write(struct rw_semaphore *sem)
{
	if (static_branch_unlikely(&by_shfl))
		(void)shfl_write(sem, TASK_UNINTERRUPTIBLE, 0, NULL, _RET_IP_);
	else
		stock_down_write(sem);
}
EXPORT_SYMBOL(down_write);

int __sched down_write_killable(struct rw_semaphore *sem)
{
	if (static_branch_unlikely(&by_shfl))
		return shfl_write(sem, TASK_KILLABLE, 0, NULL, _RET_IP_);
	return stock_down_write_killable(sem);
}
EXPORT_SYMBOL(down_write_killable);

int down_write_trylock(struct rw_semaphore *sem)
{
	bool entered;

	if (!static_branch_unlikely(&by_shfl))
		return stock_down_write_trylock(sem);
	entered = enter_free(sem, true, true);
	if (entered)
		rwsem_acquire(&sem->dep_map, 0, 1, _RET_IP_);
	return entered;
}
EXPORT_SYMBOL(down_write_trylock);

void up_read(struct rw_semaphore *sem)
{
	if (!static_branch_unlikely(&by_shfl)) {
		stock_up_read(sem);
		return;
	}
	rwsem_release(&sem->dep_map, _RET_IP_);
	leave(sem, false);
}
EXPORT_SYMBOL(up_read);

void up_write(struct rw_semaphore *sem)
{
	if (!static_branch_unlikely(&by_shfl)) {
		stock_up_write(sem);
		return;
	}
	rwsem_release(&sem->dep_map, _RET_IP_);
	leave(sem, true);
}
EXPORT_SYMBOL(up_write);

void downgrade_write(struct rw_semaphore *sem)
{
	if (!static_branch_unlikely(&by_shfl)) {
		stock_downgrade_write(sem);
		return;
	}
	lock_downgrade(&sem->dep_map, _RET_IP_);
	preempt_disable();
	downgrade(sem);
	preempt_enable();
}
EXPORT_SYMBOL(downgrade_write);

#ifdef CONFIG_DEBUG_LOCK_ALLOC

void down_read_nested(struct rw_semaphore *sem, int subclass)
{
	if (static_branch_unlikely(&by_shfl))
		(void)shfl_read(sem, TASK_UNINTERRUPTIBLE, subclass, _RET_IP_);
	else
		stock_down_read_nested(sem, subclass);
}
EXPORT_SYMBOL(down_read_nested);

int down_read_killable_nested(struct rw_semaphore *sem, int subclass)
{
	if (static_branch_unlikely(&by_shfl))
		return shfl_read(sem, TASK_KILLABLE, subclass, _RET_IP_);
	return stock_down_read_killable_nested(sem, subclass);
}
EXPORT_SYMBOL(down_read_killable_nested);

void _down_write_nest_lock(struct rw_semaphore *sem, struct lockdep_map *nest)
{
	if (static_branch_unlikely(&by_shfl))
		(void)shfl_write(sem, TASK_UNINTERRUPTIBLE, 0, nest, _RET_IP_);
	else
		stock_down_write_nest_lock(sem, nest);
}
EXPORT_SYMBOL(_down_write_nest_lock);

void down_read_non_owner(struct rw_semaphore *sem)
{
	if (!static_branch_unlikely(&by_shfl)) {
		stock_down_read_non_owner(sem);
		return;
	}
	might_sleep();
	(void)enter(sem, false, TASK_UNINTERRUPTIBLE, _RET_IP_);
}
EXPORT_SYMBOL(down_read_non_owner);

void down_write_nested(struct rw_semaphore *sem, int subclass)
{
	if (static_branch_unlikely(&by_shfl))
		(void)shfl_write(sem, TASK_UNINTERRUPTIBLE, subclass, NULL, _RET_IP_);
	else
		stock_down_write_nested(sem, subclass);
}
EXPORT_SYMBOL(down_write_nested);

int __sched down_write_killable_nested(struct rw_semaphore *sem, int subclass)
{
	if (static_branch_unlikely(&by_shfl))
		return shfl_write(sem, TASK_KILLABLE, subclass, NULL, _RET_IP_);
	return stock_down_write_killable_nested(sem, subclass);
}
EXPORT_SYMBOL(down_write_killable_nested);

void up_read_non_owner(struct rw_semaphore *sem)
{
	if (!static_branch_unlikely(&by_shfl)) {
		stock_up_read_non_owner(sem);
		return;
	}
	leave(sem, false);
}
EXPORT_SYMBOL(up_read_non_owner);

#endif

/* ---- The choice ---- */

static const struct choice choices[] = {{"stock"}, {"shfl", &by_shfl.key}};

CHOICE(rwsem)
