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
 *   owner       unused
 *   osq         unused
 *   wait_lock   unused
 *   wait_list   `tail` and `heir`; without waiters `tail` is its own address, like an empty list
 *
 * So a struct rw_semaphore has stock's size and initialisers, and the inline functions
 * rwsem_is_locked() and rwsem_is_contended() work.
 *
 * Promises: readers share, a writer is alone, and no reader enters while the queue head waits for
 * readers to leave. Order and bypass bound are those of core/rw/shfl_rw.h with default settings.
 * Waiters spin for a bounded time, not while their CPU is needed, and then sleep. An interrupted
 * waiter leaves at once, as described in mutex.c. Interrupt handlers and tasks other than the
 * holder may release. The last access is the store that releases it.
 */
#include <linux/debug_locks.h>
#include <linux/export.h>
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
#include "park.h"
#include "part/rw_word.h"
#include "part/shuffle.h"

#define LOCK_LAYOUT
struct shfl_rw {
#ifdef __LITTLE_ENDIAN
	rw_word word;
	W_ATOMIC(uint32_t) generation; /* always 0: the kernel does not fork */
#else
	W_ATOMIC(uint32_t) generation;
	rw_word word;
#endif
	char unused[offsetof(struct rw_semaphore, wait_list) - 2 * sizeof(uint32_t)];
	shfl_tail tail;
	W_ATOMIC(uint32_t) *heir;
};

static_assert(offsetof(struct rw_semaphore, count) == 0);
static_assert(offsetof(struct shfl_rw, tail) == offsetof(struct rw_semaphore, wait_list.next));
static_assert(sizeof(struct shfl_rw) <= sizeof(struct rw_semaphore), "no larger than stock's");

#include "rw/shfl_rw.h"

static_assert(PID_MAX_LIMIT < RW_FULL / RW_READER, "down_read() has no error for too many readers");

#define SET(lock, key, otherwise, ...) .key = (otherwise),
static const struct shfl_rw_policy settings = {.wait = WAIT_PARK, shfl_rw_settings(SET)};

static __always_inline struct shfl_rw *shfl_of(struct rw_semaphore *sem)
{
	return (struct shfl_rw *)sem;
}

/* Waits interruptibly for @lock; false after a signal. */
static bool wait_or_leave(struct shfl_rw *lock, bool writes, const struct w_deadline *deadline)
{
	struct shfl_node *node;

	if (w_expired(deadline))
		return false;
	node = w_node_claim();
	return node ? shfl_rw_queue(lock, node, writes, settings, deadline)
		    : shfl_rw_slow(lock, writes, settings, NULL);
}

/* Enters @sem, which a fast path could not: 0, or -EINTR after a signal that @state admits. */
static noinline int __sched wait_for(struct rw_semaphore *sem, bool writes, unsigned int state,
				     unsigned long ip)
{
	const struct w_deadline deadline = {.state = state};
	bool entered;

	lock_contended(&sem->dep_map, ip);
	trace_contention_begin(sem, writes ? LCB_F_WRITE : LCB_F_READ);
	/* A waiter is not preempted before its node is linked: its successor waits for the link. */
	preempt_disable();
	entered = state == TASK_UNINTERRUPTIBLE ? shfl_rw_slow(shfl_of(sem), writes, settings, NULL)
						: wait_or_leave(shfl_of(sem), writes, &deadline);
	preempt_enable();
	trace_contention_end(sem, entered ? 0 : -EINTR);
	return entered ? 0 : -EINTR;
}

/* The rest of an acquisition, after lockdep's hook. */
static __always_inline int enter(struct rw_semaphore *sem, bool writes, unsigned int state,
				 unsigned long ip)
{
	RWSEM_WARN_ON(sem->magic != sem);
	return likely(shfl_rw_try(shfl_of(sem), writes, false)) ? 0
								: wait_for(sem, writes, state, ip);
}

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

/*
 * Releases @sem, and is not preempted before the wake-up: meanwhile nobody would be inside, and
 * newcomers could not enter a closed one.
 */
static __always_inline void leave(struct rw_semaphore *sem, bool writes)
{
	bool held;

	preempt_disable();
	held = writes ? shfl_rw_release_write(shfl_of(sem), settings)
		      : shfl_rw_release_read(shfl_of(sem), settings);
	preempt_enable();
	RWSEM_WARN_ON(!held);
}

/*
 * Turns the writer into a reader and wakes sleepers, since readers may enter now. Preemption is
 * off, as in leave().
 */
static void downgrade(struct shfl_rw *lock)
{
	/*
	 * relaxed: only the writer clears WRITER and sets HEIR, so it reads its own stores; the
	 * compare-exchange decides
	 */
	uint32_t seen = w_load_relaxed(&lock->word);
	W_ATOMIC(uint32_t) *heir = NULL;

	do {
		if (seen & RW_HEIR)
			heir = lock->heir;
		/* release: as in rw_leave_write(); publishes the writes to readers that enter */
	} while (!w_compare_exchange_release(&lock->word, &seen,
					     (seen & ~(RW_WRITER | RW_HEIR | RW_PARKED)) +
						     RW_READER));
	if (heir)
		w_unpark(heir);
	if (seen & RW_PARKED)
		w_unpark(&lock->word);
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
	entered = shfl_rw_try_read(shfl_of(sem), false);
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
	entered = shfl_rw_try_write(shfl_of(sem));
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
	downgrade(shfl_of(sem));
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
