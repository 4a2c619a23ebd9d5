// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The kernel's own locks whose waiters sleep, to torture and compare them by the functions that all of the kernel uses: those
 * of the kernel that the module is loaded by, whatever that has chosen.
 */
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/sched.h>

#include "spin.h"

/* ---- mutex ---- */

static size_t mutex_native_size(void)
{
	return sizeof(struct mutex);
}

static void mutex_native_init(void *lock, size_t size)
{
	mutex_init((struct mutex *)lock);
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

const struct spin_kind mutex_native = {
	.name = "native:mutex",
	.sleeps = true,
	.size = mutex_native_size,
	.init = mutex_native_init,
	.lock = mutex_native_lock,
	.trylock = mutex_native_trylock,
	.lock_state = mutex_native_lock_state,
	.unlock = mutex_native_unlock,
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
