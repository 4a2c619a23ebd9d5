/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Compiles every lock of core/locks.def for the simulator into a table (locks.h). Each way of
 * waiting is a compile-time constant, as in libpoundlock.
 */
#include "locks.h"

#include "all.h"
#include "world.h"

uint32_t sim_group_weights[W_GROUPS];

const size_t sim_self_size = sizeof(struct sim_self);

void sim_self_make(void *memory, uint32_t random, uint32_t weight, uint32_t group)
{
	struct sim_self *self = memory;

	self->random = random;
	self->weight = weight;
	self->group = group;
}

void sim_group_weight_set(uint32_t group, uint32_t weight)
{
	sim_group_weights[group] = weight;
}

const char *const sim_event_names[] = {
#define EVENT(name, meaning) #name,
#include "events.def"
#undef EVENT
	NULL,
};

/* ---- Settings ---- */

#define KEY(lock, key, default_, least_, most_, ...)    \
	{.name = #key,                                  \
	 .offset = offsetof(struct lock##_policy, key), \
	 .value = default_,                             \
	 .least = least_,                               \
	 .most = most_,                                 \
	 .names = "" __VA_ARGS__},

#define SETTINGS(lock)                              \
	static struct lock##_policy lock##_policy_; \
	static const struct sim_setting lock##_keys[] = {lock##_settings(KEY){.name = NULL}};
#define LOCK(lock, kind, way, promise, paper) SETTINGS(lock)
#define RWLOCK(lock, way, promise, paper) SETTINGS(lock)
#include "locks.def"

#define POLICY(name, way)                                      \
	({                                                     \
		struct name##_policy policy_ = name##_policy_; \
		policy_.wait = (way);                          \
		policy_;                                       \
	})

/* ---- Locks ---- */

#define BARE_WAY(name, way, WAY)                                          \
	static void *name##_##way##_lock(void *lock)                      \
	{                                                                 \
		(void)name##_acquire(lock, POLICY(name, WAY), NULL);      \
		return NULL;                                              \
	}                                                                 \
	static void name##_##way##_unlock(void *lock, void *node)         \
	{                                                                 \
		(void)node;                                               \
		if (!name##_release(lock, POLICY(name, WAY)))             \
			sim_fail(#name " was released without a holder"); \
	}
#define NODE_WAY(name, way, WAY)                                           \
	static void *name##_##way##_lock(void *lock)                       \
	{                                                                  \
		void *node = w_node_get();                                 \
                                                                           \
		(void)name##_acquire(lock, node, POLICY(name, WAY), NULL); \
		return node;                                               \
	}                                                                  \
	static void name##_##way##_unlock(void *lock, void *node)          \
	{                                                                  \
		name##_release(lock, node, POLICY(name, WAY));             \
	}

#define WAYS(define, name) \
	define(name, spin, WAIT_SPIN) define(name, yield, WAIT_YIELD) define(name, park, WAIT_PARK)

#define IN_PLACE(name)                                   \
	static size_t name##_room(void)                  \
	{                                                \
		return sizeof(struct name);              \
	}                                                \
	static void name##_make(void *lock, size_t size) \
	{                                                \
		(void)lock, (void)size;                  \
	}
#define IN_BOX(name)                                     \
	static size_t name##_room(void)                  \
	{                                                \
		return name##_size();                    \
	}                                                \
	static void name##_make(void *lock, size_t size) \
	{                                                \
		name##_init(lock, size);                 \
	}

#define DEFINE_BARE(name) WAYS(BARE_WAY, name) IN_PLACE(name)
#define DEFINE_NODE(name) WAYS(NODE_WAY, name) IN_PLACE(name)
#define DEFINE_BOXED_BARE(name) WAYS(BARE_WAY, name) IN_BOX(name)
#define DEFINE_BOXED_NODE(name) WAYS(NODE_WAY, name) IN_BOX(name)

#define RW_WAY(name, way, WAY)                                           \
	static void *name##_##way##_lock(void *lock)                     \
	{                                                                \
		(void)name##_write(lock, POLICY(name, WAY), NULL);       \
		return NULL;                                             \
	}                                                                \
	static void name##_##way##_unlock(void *lock, void *node)        \
	{                                                                \
		(void)node;                                              \
		(void)name##_release_write(lock, POLICY(name, WAY));     \
	}                                                                \
	static void name##_##way##_lock_shared(void *lock)               \
	{                                                                \
		(void)name##_read(lock, false, POLICY(name, WAY), NULL); \
	}                                                                \
	static void name##_##way##_unlock_shared(void *lock)             \
	{                                                                \
		(void)name##_release_read(lock, POLICY(name, WAY));      \
	}

#define LOCK(lock, kind, way, promise, paper) DEFINE_##kind(lock)
#define RWLOCK(lock, way, promise, paper) WAYS(RW_WAY, lock) IN_PLACE(lock)
#include "locks.def"

/* ---- The table ---- */

#define OPS(name, way)                                                       \
	{                                                                    \
		.lock = name##_##way##_lock, .unlock = name##_##way##_unlock \
	}
#define RW_OPS(name, way)                                                     \
	{                                                                     \
		.lock = name##_##way##_lock, .unlock = name##_##way##_unlock, \
		.lock_shared = name##_##way##_lock_shared,                    \
		.unlock_shared = name##_##way##_unlock_shared                 \
	}
#define ENTRY(lock_name, default_wait, of)                                        \
	{.name = #lock_name,                                                      \
	 .size = lock_name##_room,                                                \
	 .init = lock_name##_make,                                                \
	 .ops = {of(lock_name, spin), of(lock_name, yield), of(lock_name, park)}, \
	 .wait = WAIT_##default_wait,                                             \
	 .policy = &lock_name##_policy_,                                          \
	 .settings = lock_name##_keys},
#define LOCK(lock_name, kind, way, promise, paper) ENTRY(lock_name, way, OPS)
#define RWLOCK(lock_name, way, promise, paper) ENTRY(lock_name, way, RW_OPS)
#define ALIAS(other_name, lock_name) {.name = #other_name, .alias = #lock_name},

const struct sim_lock sim_locks[] = {
#include "locks.def"
	{.name = NULL},
};
