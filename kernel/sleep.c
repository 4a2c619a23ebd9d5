// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Locks of core/ whose waiters sleep, for tasks: those with waiters' nodes on the stack, or without
 * nodes.
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

/* The list of them. */
#define LOCKS(L) L(hapax) L(mutexee) L(shfl_mutex) L(shfl_spin) L(ticket)

/* ---- Settings, which are not those of the locks of the same name that spin ---- */

#define VALUE(lock, key, ...) u32 lock##_##key;
#define OTHERWISE(lock, key, otherwise, ...) .lock##_##key = (otherwise),
#define SETTING(lock, key, otherwise, least, most, ...) \
	{SLEEP_PREFIX #lock, #key, &settings.lock##_##key, least, most},
#define VALUES_OF(name) name##_settings(VALUE)
#define OTHERWISE_OF(name) name##_settings(OTHERWISE)
#define SETTINGS_OF(name) name##_settings(SETTING)

static struct {
	LOCKS(VALUES_OF)
} settings = {LOCKS(OTHERWISE_OF)};

const struct spin_setting sleep_settings[] = {LOCKS(SETTINGS_OF)};
const unsigned int sleep_settings_count = ARRAY_SIZE(sleep_settings);

#define SET(lock, key, ...) .key = READ_ONCE(settings.lock##_##key),
#define POLICY(name) ((struct name##_policy){.wait = WAIT_PARK, name##_settings(SET)})

/* ---- The locks ---- */

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

LOCKS(LOCK)

#define KIND(lock_name)                               \
	{                                             \
		.name = SLEEP_PREFIX #lock_name,      \
		.sleeps = true,                       \
		.size = lock_name##_sleep_size,       \
		.init = lock_name##_sleep_init,       \
		.lock = lock_name##_sleep_lock,       \
		.trylock = lock_name##_sleep_trylock, \
		.unlock = lock_name##_sleep_unlock,   \
	},

const struct spin_kind sleep_kinds[] = {LOCKS(KIND)};
const unsigned int sleep_kinds_count = ARRAY_SIZE(sleep_kinds);
