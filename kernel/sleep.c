// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Locks of core/ whose waiters sleep, for tasks: those whose waiters' nodes are on the stack, or that have none.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#define W_SLEEPS
#include "hapax.h"
#include "mutexee.h"
#include "shfl_mutex.h"
#include "shfl_spin.h"
#include "ticket.h"

#include "spin.h"

#define SET(lock, key, otherwise, ...) .key = (otherwise),
#define POLICY(name) ((struct name##_policy){.wait = WAIT_PARK, name##_settings(SET)})

#define LOCK(name)                                                 \
	static size_t name##_sleep_size(void)                      \
	{                                                          \
		return sizeof(struct name);                        \
	}                                                          \
	static void name##_sleep_init(void *lock, size_t size)     \
	{                                                          \
	}                                                          \
	static void name##_sleep_lock(void *lock)                  \
	{                                                          \
		might_sleep();                                     \
		(void)name##_acquire(lock, POLICY(name), NULL);    \
	}                                                          \
	static bool name##_sleep_trylock(void *lock)               \
	{                                                          \
		return name##_try_acquire(lock);                   \
	}                                                          \
	static void name##_sleep_unlock(void *lock)                \
	{                                                          \
		WARN_ON_ONCE(!name##_release(lock, POLICY(name))); \
	}

LOCK(hapax)
LOCK(mutexee)
LOCK(shfl_mutex)
LOCK(shfl_spin)
LOCK(ticket)

#define KIND(lock_name)                                                                                               \
	{                                                                                                             \
		.name = SLEEP_PREFIX #lock_name, .sleeps = true, .size = lock_name##_sleep_size,                      \
		.init = lock_name##_sleep_init, .lock = lock_name##_sleep_lock, .trylock = lock_name##_sleep_trylock, \
		.unlock = lock_name##_sleep_unlock,                                                                   \
	}

const struct spin_kind sleep_kinds[] = {KIND(hapax), KIND(mutexee), KIND(shfl_mutex), KIND(shfl_spin), KIND(ticket)};
const unsigned int sleep_kinds_count = ARRAY_SIZE(sleep_kinds);
