// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The kernel's own sleeping locks, through the functions that all of the kernel uses, to torture
 * and compare them: whichever implementation the running kernel has chosen.
 */
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>

#include "spin.h"

/* Classes for lockdep: one of each depth. */
static struct lock_class_key mutex_keys[SPIN_DEPTHS], rwsem_keys[SPIN_DEPTHS];

/* ---- mutex ---- */

static size_t mutex_native_size(void)
{
	return sizeof(struct mutex);
}

static void mutex_native_init(void *lock, size_t size)
{
	__mutex_init(lock, "native:mutex", &mutex_keys[0]);
}

static void mutex_native_nest(void *lock, unsigned int depth)
{
	lockdep_set_class_and_name((struct mutex *)lock, &mutex_keys[depth], "native:mutex");
}

static void mutex_native_lock(void *lock)
{
	mutex_lock(lock);
}

static bool mutex_native_trylock(void *lock)
{
	return mutex_trylock(lock);
}

static int mutex_native_lock_state(void *lock, unsigned int state)
{
	return state == TASK_KILLABLE ? mutex_lock_killable(lock) : mutex_lock_interruptible(lock);
}

static void mutex_native_unlock(void *lock)
{
	WARN_ON_ONCE(!mutex_is_locked(lock));
	mutex_unlock(lock);
}

static bool mutex_native_has_queue(void *lock)
{
	return !list_empty(&((struct mutex *)lock)->wait_list);
}

/* The lowest bits of a mutex's or rwsem's owner. */
#define OWNER_FLAGS 7ul

/* As perf, drgn and the kernel itself read it. */
static unsigned long mutex_native_owner(const void *lock)
{
	return (unsigned long)atomic_long_read(&((const struct mutex *)lock)->owner) & ~OWNER_FLAGS;
}

const struct spin_kind mutex_native = {
	.name = "native:mutex",
	.sleeps = true,
	.size = mutex_native_size,
	.init = mutex_native_init,
	.nest = mutex_native_nest,
	.lock = mutex_native_lock,
	.trylock = mutex_native_trylock,
	.lock_state = mutex_native_lock_state,
	.unlock = mutex_native_unlock,
	.has_queue = mutex_native_has_queue,
	.owner = mutex_native_owner,
};

/* ---- rwsem ---- */

static size_t rwsem_native_size(void)
{
	return sizeof(struct rw_semaphore);
}

static void rwsem_native_init(void *lock, size_t size)
{
	__init_rwsem(lock, "native:rwsem", &rwsem_keys[0]);
}

static void rwsem_native_nest(void *lock, unsigned int depth)
{
	lockdep_set_class_and_name((struct rw_semaphore *)lock, &rwsem_keys[depth], "native:rwsem");
}

/* Set in a rwsem's owner by readers. */
#define OWNER_READS 1ul

/*
 * Checks, after @entered, that @sem names its owner, which tools read: the writer; of readers, any
 * that have been inside. With DEBUG_RWSEMS, a reader that leaves may take its name away. Returns
 * @entered.
 */
static bool check_owner(struct rw_semaphore *sem, bool writes, bool entered)
{
	const unsigned long owner = atomic_long_read(&sem->owner);

	if (entered && writes)
		WARN_ON_ONCE(owner != (unsigned long)current);
	else if (entered)
		WARN_ON_ONCE(!(owner & OWNER_READS) ||
			     !(owner & ~OWNER_FLAGS || IS_ENABLED(CONFIG_DEBUG_RWSEMS)));
	return entered;
}

static void rwsem_native_lock(void *lock)
{
	down_write(lock);
	(void)check_owner(lock, true, true);
}

static bool rwsem_native_trylock(void *lock)
{
	return check_owner(lock, true, down_write_trylock(lock));
}

/* A writer's wait ends by fatal signals only. */
static int rwsem_native_lock_state(void *lock, unsigned int state)
{
	const int error = down_write_killable(lock);

	(void)check_owner(lock, true, !error);
	return error;
}

static void rwsem_native_unlock(void *lock)
{
	WARN_ON_ONCE(!rwsem_is_locked(lock));
	up_write(lock);
}

static void rwsem_native_read(void *lock)
{
	down_read(lock);
	(void)check_owner(lock, false, true);
}

static bool rwsem_native_tryread(void *lock)
{
	return check_owner(lock, false, down_read_trylock(lock));
}

static int rwsem_native_read_state(void *lock, unsigned int state)
{
	const int error =
		state == TASK_KILLABLE ? down_read_killable(lock) : down_read_interruptible(lock);

	(void)check_owner(lock, false, !error);
	return error;
}

static void rwsem_native_unread(void *lock)
{
	WARN_ON_ONCE(!rwsem_is_locked(lock));
	up_read(lock);
}

static void rwsem_native_downgrade(void *lock)
{
	downgrade_write(lock);
	(void)check_owner(lock, false, true);
}

static bool rwsem_native_has_queue(void *lock)
{
	return rwsem_is_contended(lock);
}

const struct spin_kind rwsem_native = {
	.name = "native:rwsem",
	.sleeps = true,
	.size = rwsem_native_size,
	.init = rwsem_native_init,
	.nest = rwsem_native_nest,
	.lock = rwsem_native_lock,
	.trylock = rwsem_native_trylock,
	.lock_state = rwsem_native_lock_state,
	.unlock = rwsem_native_unlock,
	.has_queue = rwsem_native_has_queue,
	.read = rwsem_native_read,
	.tryread = rwsem_native_tryread,
	.read_state = rwsem_native_read_state,
	.unread = rwsem_native_unread,
	.downgrade = rwsem_native_downgrade,
};

/* ---- One that is broken: it looks, and takes a tick later ---- */

static size_t task_broken_size(void)
{
	return sizeof(u32);
}

static void task_broken_init(void *lock, size_t size)
{
}

static bool task_broken_trylock(void *lock)
{
	if (READ_ONCE(*(u32 *)lock))
		return false;
	schedule_timeout_uninterruptible(1);
	WRITE_ONCE(*(u32 *)lock, 1);
	return true;
}

static void task_broken_lock(void *lock)
{
	while (!task_broken_trylock(lock))
		schedule_timeout_uninterruptible(1);
}

static int task_broken_lock_state(void *lock, unsigned int state)
{
	task_broken_lock(lock);
	return 0;
}

static void task_broken_unlock(void *lock)
{
	smp_store_release((u32 *)lock, 0);
}

const struct spin_kind task_broken = {
	.name = "broken:mutex",
	.sleeps = true,
	.size = task_broken_size,
	.init = task_broken_init,
	.lock = task_broken_lock,
	.trylock = task_broken_trylock,
	.lock_state = task_broken_lock_state,
	.unlock = task_broken_unlock,
};

/* ---- One that is broken: readers take no notice of writers, who are a mutex's ---- */

static void rwsem_broken_read(void *lock)
{
}

static bool rwsem_broken_tryread(void *lock)
{
	return true;
}

static int rwsem_broken_read_state(void *lock, unsigned int state)
{
	return 0;
}

const struct spin_kind rwsem_broken = {
	.name = "broken:rwsem",
	.sleeps = true,
	.size = mutex_native_size,
	.init = mutex_native_init,
	.nest = mutex_native_nest,
	.lock = mutex_native_lock,
	.trylock = mutex_native_trylock,
	.lock_state = mutex_native_lock_state,
	.unlock = mutex_native_unlock,
	.read = rwsem_broken_read,
	.tryread = rwsem_broken_tryread,
	.read_state = rwsem_broken_read_state,
	.unread = rwsem_broken_read,
	.downgrade = mutex_native_unlock,
};
