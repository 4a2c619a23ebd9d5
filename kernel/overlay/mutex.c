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
 *   owner       its halves are `spinner` (cfl: `limit`) and `state`; core/shfl_mutex.h and
 *               core/cfl/cfl.h have the diagrams. A mutex that stock took, as a ww_mutex, has a
 *               pointer here; its highest bit is set, which no state has
 *   wait_lock   unused, as is osq (cfl: `start`)
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
 * cfl nodes come from the pool; other shfl nodes are on the waiters' stacks. While the pool is
 * empty, new waiters use their stacks and keep their place, and signals do not end their waits. The
 * last access to the mutex is the store that releases it, so the next holder may free it, which
 * stock does not promise. The word has no owner: nothing in a mutex identifies its holder, and
 * waiters do not check whether the holder runs.
 */
#include <linux/debug_locks.h>
#include <linux/export.h>
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

/* Whether a lock other than stock is chosen, and which. */
static DEFINE_STATIC_KEY_FALSE(ours);
static DEFINE_STATIC_KEY_FALSE(by_cfl);

/* ---- ShflLock in a struct mutex ---- */

#define W_TAIL_IN_LIST
#define W_SHARES
/* Also defines the world's sleeping and accounts: in the kernel, this is their only file. */
#include "park.c"
#include "accounts.c"

#include "part/shuffle.h"

#define LOCK_LAYOUT
struct shfl_mutex {
#ifdef __LITTLE_ENDIAN
	W_ATOMIC(uint32_t) spinner;
	W_ATOMIC(uint32_t) state;
#else
	W_ATOMIC(uint32_t) state;
	W_ATOMIC(uint32_t) spinner;
#endif
	W_ATOMIC(uint32_t) generation; /* always 0: the kernel does not fork */
	char unused[offsetof(struct mutex, wait_list) - 3 * sizeof(uint32_t)];
	shfl_tail tail;
	W_ATOMIC(uint32_t) *heir;
};

static_assert(offsetof(struct shfl_mutex, spinner) / 8 == offsetof(struct mutex, owner) / 8);
static_assert(offsetof(struct shfl_mutex, tail) == offsetof(struct mutex, wait_list.next));
static_assert(sizeof(struct shfl_mutex) <= sizeof(struct mutex), "no larger than stock's");

#include "shfl_mutex.h"

/* ---- CFL in a struct mutex ---- */

#include "ledgers.h"

struct cfl {
#ifdef __LITTLE_ENDIAN
	W_ATOMIC(uint32_t) limit;
	W_ATOMIC(uint32_t) state;
#else
	W_ATOMIC(uint32_t) state;
	W_ATOMIC(uint32_t) limit;
#endif
	uint64_t start;
	char unused[offsetof(struct mutex, wait_list) - 2 * sizeof(uint64_t)];
	shfl_tail tail;
	W_ATOMIC(uint32_t) *heir;
};

static_assert(offsetof(struct cfl, state) == offsetof(struct shfl_mutex, state));
static_assert(offsetof(struct cfl, tail) == offsetof(struct mutex, wait_list.next));
static_assert(sizeof(struct cfl) <= sizeof(struct mutex), "no larger than stock's");

/* Always 0: the kernel does not fork. */
static inline W_ATOMIC(uint32_t) *cfl_generation(struct cfl *lock)
{
	static W_ATOMIC(uint32_t) generation;

	return &generation;
}

#include "cfl_mutex.h"

static_assert(sizeof(struct cfl_node) <= sizeof(struct w_node), "a node fits the pool's");
static_assert(CFL_LOCKED == SHFL_MUTEX_LOCKED);

/* ---- Both locks ---- */

#define SET(lock, key, otherwise, ...) .key = (otherwise),
static const struct shfl_mutex_policy shfl_settings = {.wait = WAIT_PARK, shfl_mutex_settings(SET)};
static const struct cfl_mutex_policy cfl_settings = {.wait = WAIT_PARK, cfl_mutex_settings(SET)};

static __always_inline struct shfl_mutex *shfl_of(struct mutex *mutex)
{
	return (struct shfl_mutex *)mutex;
}

static __always_inline struct cfl_mutex *cfl_of(struct mutex *mutex)
{
	return (struct cfl_mutex *)mutex;
}

/* Whether stock took @mutex. */
static __always_inline bool is_stock(const struct mutex *mutex)
{
	return atomic_long_read(&mutex->owner) < 0;
}

/* Takes @mutex if it is free; a cfl task must also be owed time to pass waiters. */
static __always_inline bool take_free(struct mutex *mutex)
{
	bool taken;

	if (!static_branch_unlikely(&by_cfl))
		return shfl_mutex_try_acquire(shfl_of(mutex));
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
	held = static_branch_unlikely(&by_cfl) ? cfl_mutex_release(cfl_of(mutex), cfl_settings)
					       : shfl_mutex_release(shfl_of(mutex), shfl_settings);
	preempt_enable();
	return held;
}

/* Waits for @mutex by shfl; false after a signal. @deadline NULL: not interruptible. */
static bool wait_by_shfl(struct mutex *mutex, const struct w_deadline *deadline)
{
	struct shfl_mutex *lock = shfl_of(mutex);
	struct shfl_node *node;

	if (!deadline)
		return shfl_mutex_acquire_slow(lock, shfl_settings, NULL);
	if (shfl_mutex_spin(lock, shfl_settings, deadline))
		return true;
	if (w_expired(deadline))
		return false;
	node = w_node_claim();
	return node ? shfl_mutex_acquire_queued(lock, node, shfl_settings, deadline)
		    : shfl_mutex_acquire_slow(lock, shfl_settings, NULL);
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
	preempt_enable();
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
	return error;
}

/* ---- The kernel's functions ---- */

bool mutex_is_locked(struct mutex *lock)
{
	if (static_branch_unlikely(&ours) && !is_stock(lock))
		/* relaxed: a hint that may change at any moment */
		return w_load_relaxed(&shfl_of(lock)->state) & SHFL_MUTEX_LOCKED;
	return stock_mutex_is_locked(lock);
}
EXPORT_SYMBOL(mutex_is_locked);

int __sched mutex_trylock(struct mutex *lock)
{
	bool taken;

	if (!static_branch_unlikely(&ours))
		return stock_mutex_trylock(lock);
	MUTEX_WARN_ON(lock->magic != lock);
	taken = take_free(lock);
	if (taken)
		mutex_acquire(&lock->dep_map, 0, 1, _RET_IP_);
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
