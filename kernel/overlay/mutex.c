// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Replaces Linux's kernel/locking/mutex.c: the same struct mutex and functions, with the lock that
 * the boot parameter chooses:
 *
 *	poundlock.mutex=stock|shfl|cfl
 *
 * stock is the replaced file, unchanged; ww_mutex is always built on it. shfl is core/shfl_mutex.h
 * and cfl is core/cfl_mutex.h, in the bytes of the struct mutex:
 *
 *   owner       shfl: as stock's, the holder's task. cfl: `start`, for want of room elsewhere
 *   wait_lock   `state`; core/shfl_mutex.h and core/cfl/cfl.h have the diagrams. While stock holds
 *               a mutex, as a ww_mutex, it is not LOCKED for long, and the highest bit of `owner`,
 *               a pointer, is set, which no `start` has
 *   osq         cfl: `limit`
 *   wait_list   `tail` and `heir`; without waiters `tail` is its own address, like an empty list
 *
 * So a struct mutex has stock's size and initialisers. The remaining data of a cfl lock are in one
 * of LEDGERS ledgers, chosen by the mutex's address (ledgers.h); the data of a task's use are the
 * task's (accounts.c).
 *
 * Promises: mutual exclusion. Order and bypass bound are those of core/shfl_mutex.h and
 * core/cfl_mutex.h with default settings. cfl shares time among groups, which are the cgroups of
 * the cpu controller by cpu.weight, and inside a group among its tasks by nice. Waiters spin for a
 * bounded time, not while their CPU is needed, and then sleep. An interrupted waiter leaves at
 * once; its node, of a pool (park.h), stays queued until its predecessors have had their turn. All
 * cfl nodes come from the pool; other shfl nodes are on the waiters' stacks. While a user has none
 * left, its new waiters use their stacks and keep their place, and signals do not end their waits.
 * The last access to the mutex is the store that releases it, so the next holder may free it, which
 * stock does not promise. A shfl mutex names its holder, and neither the queue head nor a newcomer
 * spins while the holder does not run. Nothing in a cfl mutex identifies its holder.
 */
#include <linux/debug_locks.h>
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/osq_lock.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/sched/debug.h>
#include <linux/sched/rt.h>
#include <linux/sched/signal.h>
#include <linux/sched/wake_q.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/trace_events.h>
#include <linux/ww_mutex.h>

#include "choice.h"

#define own_policy_held(lock) (measures_holds() ? w_account(lock)->recent : 0)
#include "own_policy.h"

#ifdef CONFIG_PREEMPT_RT
#error "under PREEMPT_RT a mutex is another lock: build without"
#endif

/* ---- The original, under other names ---- */

#define mutex_is_locked stock_mutex_is_locked
#define mutex_trylock stock_mutex_trylock
#define mutex_unlock stock_mutex_unlock
#define atomic_dec_and_mutex_lock stock_atomic_dec_and_mutex_lock
bool mutex_is_locked(struct mutex *lock);
int mutex_trylock(struct mutex *lock);
void mutex_unlock(struct mutex *lock);
int atomic_dec_and_mutex_lock(atomic_t *count, struct mutex *lock);
#ifdef CONFIG_DEBUG_LOCK_ALLOC
#define mutex_lock_nested stock_mutex_lock_nested
#define _mutex_lock_nest_lock stock_mutex_lock_nest_lock
#define mutex_lock_killable_nested stock_mutex_lock_killable_nested
#define mutex_lock_interruptible_nested stock_mutex_lock_interruptible_nested
#define mutex_lock_io_nested stock_mutex_lock_io_nested
void mutex_lock_nested(struct mutex *lock, unsigned int subclass);
void _mutex_lock_nest_lock(struct mutex *lock, struct lockdep_map *nest);
int mutex_lock_killable_nested(struct mutex *lock, unsigned int subclass);
int mutex_lock_interruptible_nested(struct mutex *lock, unsigned int subclass);
void mutex_lock_io_nested(struct mutex *lock, unsigned int subclass);
#else
#define mutex_lock stock_mutex_lock
#define mutex_lock_killable stock_mutex_lock_killable
#define mutex_lock_interruptible stock_mutex_lock_interruptible
#define mutex_lock_io stock_mutex_lock_io
void mutex_lock(struct mutex *lock);
int mutex_lock_killable(struct mutex *lock);
int mutex_lock_interruptible(struct mutex *lock);
void mutex_lock_io(struct mutex *lock);
#endif

#include <../kernel/locking/mutex.c>

/* The original defines the trace points of locks; our own code must not define them again. */
#undef CREATE_TRACE_POINTS

#undef mutex_is_locked
#undef mutex_trylock
#undef mutex_unlock
#undef atomic_dec_and_mutex_lock
#ifdef CONFIG_DEBUG_LOCK_ALLOC
#undef mutex_lock_nested
#undef _mutex_lock_nest_lock
#undef mutex_lock_killable_nested
#undef mutex_lock_interruptible_nested
#undef mutex_lock_io_nested
#else
#undef mutex_lock
#undef mutex_lock_killable
#undef mutex_lock_interruptible
#undef mutex_lock_io
#endif

#include "poundlock_trace.h"

/* Whether a lock other than stock is chosen, and which. */
static DEFINE_STATIC_KEY_FALSE(ours);
static DEFINE_STATIC_KEY_FALSE(by_cfl);

/* Whether shfl's holds are measured, for a policy that an operator has loaded. */
static __always_inline bool measures_holds(void)
{
#ifdef OWN_POLICIES
	return static_branch_unlikely(&own_policy_measures) && !static_branch_unlikely(&by_cfl);
#else
	return false;
#endif
}

/* ---- Sleeping and accounts ---- */

#define W_TAIL_IN_LIST
#define W_SHARES
/* Also defines the world's sleeping and accounts: in the kernel, this is their only file. */
#include "park.c"
#include "accounts.c"

#include "part/shuffle.h"

#define LOCK_LAYOUT
#define SET(lock, key, otherwise, ...) .key = (otherwise),

/* ---- The locks in a struct mutex ---- */

/* Always 0: the kernel does not fork. */
static inline W_ATOMIC(uint32_t) *no_generation(void)
{
	static W_ATOMIC(uint32_t) generation;

	return &generation;
}

#include "cfl_task_mutex.h"

static_assert(sizeof(struct cfl_node) <= sizeof(struct w_node), "a node fits the pool's");

struct shfl_mutex;

/*
 * Whether @lock names a holder that does not run. Preemption is off, and a holder clears the owner
 * before it releases, so its task's memory is not freed meanwhile.
 */
static inline bool holder_sleeps(struct shfl_mutex *lock)
{
	struct task_struct *holder = __mutex_owner((struct mutex *)lock);

	return holder && !owner_on_cpu(holder);
}

#define shfl_mutex_holder_sleeps(lock) holder_sleeps(lock)

#include "task_mutex.h"

static_assert(CFL_LOCKED == SHFL_MUTEX_LOCKED);

/* ---- The kernel's functions ---- */

bool mutex_is_locked(struct mutex *lock)
{
	if (!static_branch_unlikely(&ours))
		return stock_mutex_is_locked(lock);
	/* relaxed: a hint that may change at any moment. data_race: cfl's `start` is plain */
	return (w_load_relaxed(&shfl_of(lock)->state) & SHFL_MUTEX_LOCKED) ||
	       data_race(atomic_long_read(&lock->owner) < 0);
}
EXPORT_SYMBOL(mutex_is_locked);

int __sched mutex_trylock(struct mutex *lock)
{
	bool taken;

	if (!static_branch_unlikely(&ours))
		return stock_mutex_trylock(lock);
	MUTEX_WARN_ON(lock->magic != lock);
	taken = take_free(lock);
	if (taken) {
		mutex_acquire(&lock->dep_map, 0, 1, _RET_IP_);
		begin_hold(lock);
	}
	return taken;
}
EXPORT_SYMBOL(mutex_trylock);

/*
 * A mutex taken before the choice is released as it was taken: the one that the static keys' change
 * itself holds.
 */
void __sched mutex_unlock(struct mutex *lock)
{
	bool held;

	if (!static_branch_unlikely(&ours) || is_stock(lock)) {
		stock_mutex_unlock(lock);
		return;
	}
	MUTEX_WARN_ON(lock->magic != lock);
	mutex_release(&lock->dep_map, _RET_IP_);
	held = give(lock);
	MUTEX_WARN_ON(!held);
}
EXPORT_SYMBOL(mutex_unlock);

#ifdef CONFIG_DEBUG_LOCK_ALLOC

void __sched mutex_lock_nested(struct mutex *lock, unsigned int subclass)
{
	if (static_branch_unlikely(&ours))
		(void)take(lock, TASK_UNINTERRUPTIBLE, subclass, NULL, _RET_IP_);
	else
		stock_mutex_lock_nested(lock, subclass);
}
EXPORT_SYMBOL_GPL(mutex_lock_nested);

void __sched _mutex_lock_nest_lock(struct mutex *lock, struct lockdep_map *nest)
{
	if (static_branch_unlikely(&ours))
		(void)take(lock, TASK_UNINTERRUPTIBLE, 0, nest, _RET_IP_);
	else
		stock_mutex_lock_nest_lock(lock, nest);
}
EXPORT_SYMBOL_GPL(_mutex_lock_nest_lock);

int __sched mutex_lock_killable_nested(struct mutex *lock, unsigned int subclass)
{
	if (static_branch_unlikely(&ours))
		return take(lock, TASK_KILLABLE, subclass, NULL, _RET_IP_);
	return stock_mutex_lock_killable_nested(lock, subclass);
}
EXPORT_SYMBOL_GPL(mutex_lock_killable_nested);

int __sched mutex_lock_interruptible_nested(struct mutex *lock, unsigned int subclass)
{
	if (static_branch_unlikely(&ours))
		return take(lock, TASK_INTERRUPTIBLE, subclass, NULL, _RET_IP_);
	return stock_mutex_lock_interruptible_nested(lock, subclass);
}
EXPORT_SYMBOL_GPL(mutex_lock_interruptible_nested);

void __sched mutex_lock_io_nested(struct mutex *lock, unsigned int subclass)
{
	int token = io_schedule_prepare();

	mutex_lock_nested(lock, subclass);
	io_schedule_finish(token);
}
EXPORT_SYMBOL_GPL(mutex_lock_io_nested);

#else

void __sched mutex_lock(struct mutex *lock)
{
	if (static_branch_unlikely(&ours))
		(void)take(lock, TASK_UNINTERRUPTIBLE, 0, NULL, _RET_IP_);
	else
		stock_mutex_lock(lock);
}
EXPORT_SYMBOL(mutex_lock);

int __sched mutex_lock_interruptible(struct mutex *lock)
{
	if (static_branch_unlikely(&ours))
		return take(lock, TASK_INTERRUPTIBLE, 0, NULL, _RET_IP_);
	return stock_mutex_lock_interruptible(lock);
}
EXPORT_SYMBOL(mutex_lock_interruptible);

int __sched mutex_lock_killable(struct mutex *lock)
{
	if (static_branch_unlikely(&ours))
		return take(lock, TASK_KILLABLE, 0, NULL, _RET_IP_);
	return stock_mutex_lock_killable(lock);
}
EXPORT_SYMBOL(mutex_lock_killable);

void __sched mutex_lock_io(struct mutex *lock)
{
	int token = io_schedule_prepare();

	mutex_lock(lock);
	io_schedule_finish(token);
}
EXPORT_SYMBOL_GPL(mutex_lock_io);

#endif

/* Returns true, with @lock held, if @count drops to 0. */
int atomic_dec_and_mutex_lock(atomic_t *count, struct mutex *lock)
{
	if (atomic_add_unless(count, -1, 1))
		return 0;
	mutex_lock(lock);
	if (atomic_dec_and_test(count))
		return 1;
	mutex_unlock(lock);
	return 0;
}
EXPORT_SYMBOL(atomic_dec_and_mutex_lock);

/* ---- The choice ---- */

static const struct choice choices[] = {{"stock"},
					{"shfl", &ours.key},
					{"cfl", &ours.key, &by_cfl.key}};

CHOICE(mutex)

static int __init begin(void)
{
	if (static_key_enabled(&by_cfl))
		w_accounts_start();
	return 0;
}
early_initcall(begin);
