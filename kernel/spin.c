// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Every mutual-exclusion lock of core/locks.def, but a few, compiled as a spin lock of the kernel's
 * world, behind one table. A lock whose holder keeps a node stores it beside the lock.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/kconfig.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "all.h"
#include "poundlock.h"
#include "spin.h"

/* ---- Settings ---- */

static struct {
#define VALUE(lock, key, ...) u32 lock##_##key;
#define LOCK(name, kind, wait, promise, paper) name##_settings(VALUE)
#include "locks.def"
} settings = {
#define OTHERWISE(lock, key, otherwise, ...) .lock##_##key = (otherwise),
#define LOCK(name, kind, wait, promise, paper) name##_settings(OTHERWISE)
#include "locks.def"
};

static const struct spin_setting spin_settings[] = {
#define SETTING(lock, key, otherwise, least, most, ...) \
	{#lock, #key, &settings.lock##_##key, least, most},
#define LOCK(name, kind, wait, promise, paper) name##_settings(SETTING)
#include "locks.def"
};

/*
 * Sets the setting @key, of @length characters, of the lock @name to @value, if it is among the
 * @count @settings and @value is in its range.
 */
static bool set_among(const struct spin_setting *settings, unsigned int count, const char *name,
		      const char *key, size_t length, u32 value)
{
	const struct spin_setting *setting;

	for (setting = settings; setting < settings + count; setting++)
		if (!strcmp(setting->lock, name) && strlen(setting->key) == length &&
		    !memcmp(setting->key, key, length))
			break;
	if (setting == settings + count || value < setting->least || value > setting->most)
		return false;
	WRITE_ONCE(*setting->value, value);
	return true;
}

bool spin_set(const char *name, const char *key, size_t length, u32 value)
{
	return set_among(spin_settings, ARRAY_SIZE(spin_settings), name, key, length, value) ||
	       set_among(sleep_settings, sleep_settings_count, name, key, length, value);
}

#define SET(lock, key, ...) .key = READ_ONCE(settings.lock##_##key),
#define POLICY(name) ((struct name##_policy){.wait = WAIT_SPIN, name##_settings(SET)})

/* ---- Locks whose holders keep nothing ---- */

#define HOLDS_NOTHING(name)                                        \
	static void name##_spin_lock(void *lock)                   \
	{                                                          \
		(void)name##_acquire(lock, POLICY(name), NULL);    \
	}                                                          \
	static bool name##_spin_trylock(void *lock)                \
	{                                                          \
		return name##_try_acquire(lock);                   \
	}                                                          \
	static void name##_spin_unlock(void *lock)                 \
	{                                                          \
		WARN_ON_ONCE(!name##_release(lock, POLICY(name))); \
	}

/* ---- Locks whose holders keep their node ---- */

/* The holder's node, stored before the lock in a cache line of its own. */
struct kept {
	void *node;
} ____cacheline_aligned;

static struct kept *kept_of(void *lock)
{
	return (struct kept *)lock - 1;
}

#define HOLDS_NODE(name)                                                   \
	static_assert(sizeof(struct name##_node) <= sizeof(struct w_node), \
		      "a node fits the pool's");                           \
	static void name##_spin_lock(void *lock)                           \
	{                                                                  \
		void *node = w_node_get();                                 \
                                                                           \
		(void)name##_acquire(lock, node, POLICY(name), NULL);      \
		kept_of(lock)->node = node;                                \
	}                                                                  \
	static bool name##_spin_trylock(void *lock)                        \
	{                                                                  \
		void *node = w_node_get();                                 \
                                                                           \
		if (!name##_try_acquire(lock, node))                       \
			return false;                                      \
		kept_of(lock)->node = node;                                \
		return true;                                               \
	}                                                                  \
	static void name##_spin_unlock(void *lock)                         \
	{                                                                  \
		name##_release(lock, kept_of(lock)->node, POLICY(name));   \
	}

/* ---- The kinds of locks.def ---- */

#define OF_ONE_SIZE(name)                                     \
	static size_t name##_spin_size(void)                  \
	{                                                     \
		return sizeof(struct name);                   \
	}                                                     \
	static void name##_spin_init(void *lock, size_t size) \
	{                                                     \
	}

#define OF_ANY_SIZE(name)                                     \
	static size_t name##_spin_size(void)                  \
	{                                                     \
		return name##_size();                         \
	}                                                     \
	static void name##_spin_init(void *lock, size_t size) \
	{                                                     \
		name##_init(lock, size);                      \
	}

#define BARE(name) HOLDS_NOTHING(name) OF_ONE_SIZE(name)
#define NODE(name) HOLDS_NODE(name) OF_ONE_SIZE(name)
#define BOXED_BARE(name) HOLDS_NOTHING(name) OF_ANY_SIZE(name)
#define BOXED_NODE(name) HOLDS_NODE(name) OF_ANY_SIZE(name)

/*
 * Not here: scl throttles threads, which must sleep then; nobody would come to the gate of shfl_ron
 * (w_has_own_cpu()).
 */
#define LEFT_OUT_scl 1
#define LEFT_OUT_shfl_ron 1

#define SPINS_0(...) __VA_ARGS__
#define SPINS_1(...)
/* The remaining arguments if the lock @name is here. */
#define SPINS(name, ...) CONCATENATE(SPINS_, __is_defined(LEFT_OUT_##name))(__VA_ARGS__)

#define LOCK(name, kind, wait, promise, paper) SPINS(name, kind(name))
#include "locks.def"

/* ---- The table ---- */

#define KIND(lock_name)                                                                           \
	{                                                                                         \
		.name = #lock_name, .size = lock_name##_spin_size, .init = lock_name##_spin_init, \
		.lock = lock_name##_spin_lock, .trylock = lock_name##_spin_trylock,               \
		.unlock = lock_name##_spin_unlock,                                                \
	}

const struct spin_kind spin_kinds[] = {
#define LOCK(name, kind, wait, promise, paper) SPINS(name, KIND(name), )
#include "locks.def"
};

const unsigned int spin_kinds_count = ARRAY_SIZE(spin_kinds);

/* ---- One that is broken: it looks, and takes a while later ---- */

#define BROKEN_PAUSES 32

static size_t broken_spin_size(void)
{
	return sizeof(u32);
}

static void broken_spin_init(void *lock, size_t size)
{
}

static bool broken_spin_trylock(void *lock)
{
	if (READ_ONCE(*(u32 *)lock))
		return false;
	w_pause_for(BROKEN_PAUSES);
	WRITE_ONCE(*(u32 *)lock, 1);
	return true;
}

static void broken_spin_lock(void *lock)
{
	while (!broken_spin_trylock(lock))
		cpu_relax();
}

static void broken_spin_unlock(void *lock)
{
	smp_store_release((u32 *)lock, 0);
}

const struct spin_kind spin_broken = KIND(broken);

/* ---- The kernel's own, to compare with ---- */

static size_t native_spin_size(void)
{
	return sizeof(arch_spinlock_t);
}

/* Zeroed memory is a free lock. */
static void native_spin_init(void *lock, size_t size)
{
}

static void native_spin_lock(void *lock)
{
	arch_spin_lock((arch_spinlock_t *)lock);
}

static bool native_spin_trylock(void *lock)
{
	return arch_spin_trylock((arch_spinlock_t *)lock);
}

static void native_spin_unlock(void *lock)
{
	arch_spin_unlock((arch_spinlock_t *)lock);
}

const struct spin_kind spin_native = KIND(native);

const struct spin_kind *spin_find(const char *name)
{
	const struct spin_kind *const others[] = {&spin_native, &mutex_native, &rwsem_native,
						  &spin_broken, &task_broken,  &rwsem_broken};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spin_kinds); i++)
		if (!strcmp(spin_kinds[i].name, name))
			return &spin_kinds[i];
	for (i = 0; i < sleep_kinds_count; i++)
		if (!strcmp(sleep_kinds[i].name, name))
			return &sleep_kinds[i];
	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(others[i]->name, name))
			return others[i];
	return NULL;
}

/* ---- For other modules ---- */

struct pound_spin {
	const struct spin_kind *kind;
	struct kept kept; /* directly before the lock */
	char lock[] ____cacheline_aligned;
};

static_assert(offsetof(struct pound_spin, kept) + sizeof(struct kept) ==
	      offsetof(struct pound_spin, lock));

struct pound_spin *pound_spin_create(const char *name, gfp_t gfp)
{
	const struct spin_kind *kind = spin_find(name);
	struct pound_spin *made;

	if (!kind)
		return ERR_PTR(-ENOENT);
	/* A size that is not a power of 2 may be aligned to less than a cache line. */
	made = kzalloc(roundup_pow_of_two(sizeof(*made) + kind->size()), gfp);
	if (!made)
		return ERR_PTR(-ENOMEM);
	made->kind = kind;
	kind->init(made->lock, kind->size());
	return made;
}
EXPORT_SYMBOL_GPL(pound_spin_create);

void pound_spin_destroy(struct pound_spin *lock)
{
	kfree(lock);
}
EXPORT_SYMBOL_GPL(pound_spin_destroy);

void pound_spin_lock(struct pound_spin *lock)
{
	if (!lock->kind->sleeps)
		preempt_disable();
	lock->kind->lock(lock->lock);
}
EXPORT_SYMBOL_GPL(pound_spin_lock);

bool pound_spin_trylock(struct pound_spin *lock)
{
	if (!lock->kind->sleeps)
		preempt_disable();
	if (lock->kind->trylock(lock->lock))
		return true;
	if (!lock->kind->sleeps)
		preempt_enable();
	return false;
}
EXPORT_SYMBOL_GPL(pound_spin_trylock);

void pound_spin_unlock(struct pound_spin *lock)
{
	lock->kind->unlock(lock->lock);
	if (!lock->kind->sleeps)
		preempt_enable();
}
EXPORT_SYMBOL_GPL(pound_spin_unlock);

const struct spin_kind *spin_kind_of(const struct pound_spin *lock)
{
	return lock->kind;
}

void *spin_bytes_of(struct pound_spin *lock)
{
	return lock->lock;
}
