/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's mutex with ShflLock in a struct mutex (kernel/overlay/task_mutex.h), in
 * the kernel's world (world/kernel/objects.h): a tail in a list's head is its own address if nobody
 * waits, and the owner is the holder's task. CFL is not among them. In changed/... the settings
 * change while the mutex is used.
 */
#define CHECK_OBJECTS "../../tests/check/kernel.h"
#define W_TAIL_IN_LIST
#define KERNEL_INTS 0
#define KERNEL_PLACES 0
#include "check.h"
#include "entry.h"
#include "kernel_tasks.h"

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
#define SHARED_BYTES sizeof(struct memory)

#define MUTEX_WARN_ON(condition) ((void)0)
#define mutex_acquire_nest(map, subclass, trylock, nest, ip) ((void)0)
#define mutex_release(map, ip) ((void)0)

/* Of policies that are loaded. */
#define measures_holds() false

/* Of CFL, which is not chosen. */
struct lockdep_map;
struct cfl_mutex;
static const struct {
	char unused;
} cfl_settings;
struct cfl_mutex *cfl_of(struct mutex *mutex);
bool cfl_mutex_try_acquire(struct cfl_mutex *lock);
#define cfl_mutex_release(lock, settings) ((void)(settings), false)
bool wait_by_cfl(struct mutex *mutex, const struct w_deadline *deadline);

static inline W_ATOMIC(uint32_t) *no_generation(void)
{
	return &M->generation;
}

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

/* The mutex names its holder. */
static void enter(void)
{
	check_assert(READ_ONCE(M->mutex.owner.counter) == get_current());
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
	check_hint(&shfl_of(&M->mutex)->spinner);
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
	check_assert(!READ_ONCE(M->mutex.owner.counter));
	check_assert(READ_ONCE(M->mutex.wait_list.next) == &M->mutex.wait_list);
	check_assert(take_free(&M->mutex));
}

const struct check_client check_clients[] = {
	ENTRY("2x1", once, 2, "park", "0", prepare, finish_free),
	ENTRY("2x2", twice, 2, "park close", "0", prepare, finish_free, .bound = 2),
	ENTRY("3x1", once, 3, "park wake_late", "0", prepare, finish_free, .bound = 2),
	ENTRY("trylock/3", or_try, 3, NULL, "0", prepare, finish_free, .bound = 2),
	ENTRY("interrupted/2", interrupted, 2, "abandon", "0 1", prepare, finish_free),
	ENTRY("interrupted/3", interrupted, 3, "abandon skip", "0 1 2", prepare, finish_free,
	      .bound = 2),
	ENTRY("interrupted/empty/2", interrupted, 2, "abandon", "0 1", prepare_empty, finish_free),
	ENTRY("freed/2", freed, 2, NULL, "0", prepare, finish),
	ENTRY("order/2", twice, 2, "close", "0", prepare, finish_free, ORDERED),
	ENTRY("order/3", twice, 3, "close", "0", prepare, finish_free, ORDERED, .bound = 2),
	ENTRY("changed/2x2", twice, 2, "park close", "0", prepare_changes, finish_free, .bound = 2),
	ENTRY("changed/3x1", once, 3, "park wake_late", "0", prepare_changes, finish_free,
	      .bound = 2),
	ENTRY("changed/4x2", twice, 4, "shuffle", NULL, prepare_changes, finish_free,
	      .walks = 20000),
	ENTRY("changed/interrupted/3", interrupted, 3, "abandon skip", "0 1 2", prepare_changes,
	      finish_free, .bound = 2),
	ENTRY("changed/order/3", twice, 3, "close", "0", prepare_changes, finish_free, ORDERED,
	      .bound = 2),
	{.name = NULL},
};
