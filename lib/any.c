/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tables of all locks of core/locks.def. The compiler makes one copy of a lock for each way of
 * waiting, in which the way is a constant; the functions read other settings from their table.
 */
#include "any.h"

#include <string.h>

#include "boxed.h"
#include "intern.h"
#include "kept.h"
#include "part/hold.h"
#include "settings.h"
#include "tables.h"

/* ---- The lock's memory: in place, or in a box ---- */

#define IN_BOX(name, lock) name##_in_box(lock)
#define IN_PLACE(name, lock) ((struct name *)(lock))

#define BOX(name)                                                        \
	static void name##_init_in_box(void *lock, size_t size)          \
	{                                                                \
		name##_init(lock, size);                                 \
	}                                                                \
	static inline struct name *name##_in_box(void *lock)             \
	{                                                                \
		return boxed_get(lock, name##_size, name##_init_in_box); \
	}

/* ---- Locks whose holders keep nothing ---- */

#define HOLDS_NOTHING(name, way, WAY, WHERE)                                                     \
	ANY_WHOLE static int name##_##way##_lock(void *lock, const struct any_ops *ops)          \
	{                                                                                        \
		name##_acquire(WHERE(name, lock), LOCK_POLICY(name, WAY, ops->settings), NULL);  \
		return 0;                                                                        \
	}                                                                                        \
	static bool name##_##way##_trylock(void *lock)                                           \
	{                                                                                        \
		return name##_try_acquire(WHERE(name, lock));                                    \
	}                                                                                        \
	static bool name##_##way##_timedlock(void *lock, const struct w_deadline *deadline,      \
					     const struct any_ops *ops)                          \
	{                                                                                        \
		return name##_acquire(WHERE(name, lock), LOCK_POLICY(name, WAY, ops->settings),  \
				      deadline);                                                 \
	}                                                                                        \
	ANY_WHOLE static bool name##_##way##_unlock(void *lock, const struct any_ops *ops)       \
	{                                                                                        \
		return name##_release(WHERE(name, lock), LOCK_POLICY(name, WAY, ops->settings)); \
	}

/* ---- Locks whose holders keep their node (kept.h) ---- */

#define HOLDS_NODE(name, way, WAY, WHERE)                                                    \
	static void name##_##way##_drop(struct kept *kept, struct any_node *node)            \
	{                                                                                    \
		name##_drop_waiters(WHERE(name, kept), &node->name);                         \
	}                                                                                    \
	ANY_WHOLE static int name##_##way##_lock(void *lock, const struct any_ops *ops)      \
	{                                                                                    \
		struct any_node *node = kept_new_node();                                     \
                                                                                             \
		kept_check_fork(lock, name##_##way##_drop);                                  \
		name##_acquire(WHERE(name, lock), &node->name,                               \
			       LOCK_POLICY(name, WAY, ops->settings), NULL);                 \
		kept_put(lock, node);                                                        \
		return 0;                                                                    \
	}                                                                                    \
	static bool name##_##way##_trylock(void *lock)                                       \
	{                                                                                    \
		struct any_node *node = kept_new_node();                                     \
                                                                                             \
		return kept_put_if(name##_try_acquire(WHERE(name, lock), &node->name), lock, \
				   node);                                                    \
	}                                                                                    \
	static bool name##_##way##_timedlock(void *lock, const struct w_deadline *deadline,  \
					     const struct any_ops *ops)                      \
	{                                                                                    \
		struct any_node *node = kept_new_node();                                     \
                                                                                             \
		kept_check_fork(lock, name##_##way##_drop);                                  \
		return kept_put_if(name##_acquire(WHERE(name, lock), &node->name,            \
						  LOCK_POLICY(name, WAY, ops->settings),     \
						  deadline),                                 \
				   lock, node);                                              \
	}                                                                                    \
	ANY_WHOLE static bool name##_##way##_unlock(void *lock, const struct any_ops *ops)   \
	{                                                                                    \
		struct any_node *node;                                                       \
                                                                                             \
		kept_check_fork(lock, name##_##way##_drop);                                  \
		node = kept_take(lock);                                                      \
		if (node)                                                                    \
			name##_release(WHERE(name, lock), &node->name,                       \
				       LOCK_POLICY(name, WAY, ops->settings));               \
		return node;                                                                 \
	}

/* ---- The kinds of locks.def ---- */

#define BARE(name)                                                                         \
	_Static_assert(sizeof(struct name) <= ANY_LOCK_SIZE && _Alignof(struct name) <= 8, \
		       #name " needs a box");                                              \
	HOLDS_NOTHING(name, spin, WAIT_SPIN, IN_PLACE)                                     \
	HOLDS_NOTHING(name, yield, WAIT_YIELD, IN_PLACE)                                   \
	HOLDS_NOTHING(name, park, WAIT_PARK, IN_PLACE)

#define NODE(name)                                                                   \
	_Static_assert(sizeof(struct name) <= sizeof(void *), #name " needs a box"); \
	HOLDS_NODE(name, spin, WAIT_SPIN, IN_PLACE)                                  \
	HOLDS_NODE(name, yield, WAIT_YIELD, IN_PLACE)                                \
	HOLDS_NODE(name, park, WAIT_PARK, IN_PLACE)

#define BOXED_BARE(name)                               \
	BOX(name)                                      \
	HOLDS_NOTHING(name, spin, WAIT_SPIN, IN_BOX)   \
	HOLDS_NOTHING(name, yield, WAIT_YIELD, IN_BOX) \
	HOLDS_NOTHING(name, park, WAIT_PARK, IN_BOX)

#define BOXED_NODE(name)                            \
	BOX(name)                                   \
	HOLDS_NODE(name, spin, WAIT_SPIN, IN_BOX)   \
	HOLDS_NODE(name, yield, WAIT_YIELD, IN_BOX) \
	HOLDS_NODE(name, park, WAIT_PARK, IN_BOX)

#define LOCK(name, kind, wait, promise, paper) kind(name)
#include "locks.def"

/* ---- Fair releases: shfl_mutex has its own ---- */

#define FAIR(way, WAY)                                                                             \
	static bool shfl_mutex_##way##_unlock_fair(void *lock, const struct any_ops *ops)          \
	{                                                                                          \
		return shfl_mutex_release_fair(lock, LOCK_POLICY(shfl_mutex, WAY, ops->settings)); \
	}

FAIR(spin, WAIT_SPIN)
FAIR(yield, WAIT_YIELD)
FAIR(park, WAIT_PARK)

/* ---- Locks with a policy that may need hold times: measured around the lock ---- */

#define MEASURED(name, way)                                                               \
	static int name##_##way##_measured_lock(void *lock, const struct any_ops *ops)    \
	{                                                                                 \
		(void)name##_##way##_lock(lock, ops);                                     \
		hold_begin(lock);                                                         \
		return 0;                                                                 \
	}                                                                                 \
	static bool name##_##way##_measured_trylock(void *lock)                           \
	{                                                                                 \
		bool taken = name##_##way##_trylock(lock);                                \
                                                                                          \
		if (taken)                                                                \
			hold_begin(lock);                                                 \
		return taken;                                                             \
	}                                                                                 \
	static bool name##_##way##_measured_timedlock(void *lock,                         \
						      const struct w_deadline *deadline,  \
						      const struct any_ops *ops)          \
	{                                                                                 \
		bool taken = name##_##way##_timedlock(lock, deadline, ops);               \
                                                                                          \
		if (taken)                                                                \
			hold_begin(lock);                                                 \
		return taken;                                                             \
	}                                                                                 \
	static bool name##_##way##_measured_unlock(void *lock, const struct any_ops *ops) \
	{                                                                                 \
		hold_end(lock);                                                           \
		return name##_##way##_unlock(lock, ops);                                  \
	}

#define FAIR_MEASURED(way)                                                                         \
	static bool shfl_mutex_##way##_measured_unlock_fair(void *lock, const struct any_ops *ops) \
	{                                                                                          \
		hold_end(lock);                                                                    \
		return shfl_mutex_##way##_unlock_fair(lock, ops);                                  \
	}

FAIR_MEASURED(spin)
FAIR_MEASURED(yield)
FAIR_MEASURED(park)

#define MEASURED_WAYS(name)   \
	MEASURED(name, spin)  \
	MEASURED(name, yield) \
	MEASURED(name, park)

#ifdef WITHOUT_shfl_spin
#define MEASURED_LOCKS(M) M(shfl_mutex)
#else
#define MEASURED_LOCKS(M) M(shfl_spin) M(shfl_mutex)
#endif

MEASURED_LOCKS(MEASURED_WAYS)

/* ---- The tables ---- */

/* shfl_ron has a gate to give back. */
#ifdef WITHOUT_shfl_ron
#define shfl_ron_destroy NULL
#endif
#define DESTROY_BARE(name) ((int)INDEX_##name == (int)INDEX_shfl_ron ? shfl_ron_destroy : NULL)
#define DESTROY_NODE(name) NULL
#define DESTROY_BOXED_BARE(name) boxed_destroy
#define DESTROY_BOXED_NODE(name) boxed_destroy

enum {
#define LOCK(name, kind, wait, promise, paper) INDEX_##name,
#include "locks.def"
};

/* The index of each lock that this build lacks. No lock has it. */
enum {
	INDEX_NONE = -1,
#define OMITTED_LOCK(name) INDEX_##name = INDEX_NONE,
#include "locks.def"
};

/*
 * Whether waiters use bytes 8 to 15 of a held lock: adaptive has its list of sleepers there, hapax
 * `depart`.
 */
#define SHARES_MIDDLE(name) \
	((int)INDEX_##name == (int)INDEX_adaptive || (int)INDEX_##name == (int)INDEX_hapax)

/* The fair release of a lock; of others than shfl_mutex, the only release. */
#define UNLOCK_FAIR(name, way)                                                       \
	((int)INDEX_##name == (int)INDEX_shfl_mutex ? shfl_mutex_##way##_unlock_fair \
						    : name##_##way##_unlock)

#define OPS(lock_name, kind, way, WAY)                               \
	[WAY] = {                                                    \
		.name = #lock_name,                                  \
		.wait = (WAY),                                       \
		.lock = lock_name##_##way##_lock,                    \
		.trylock = lock_name##_##way##_trylock,              \
		.timedlock = lock_name##_##way##_timedlock,          \
		.unlock = lock_name##_##way##_unlock,                \
		.unlock_fair = UNLOCK_FAIR(lock_name, way),          \
		.leaves_middle = !SHARES_MIDDLE(lock_name),          \
		.destroy = DESTROY_##kind(lock_name),                \
		.settings = {lock_name##_settings(SETTING_DEFAULT)}, \
	}

static const struct any_ops all_ops[][SPEC_WAYS] = {
#define LOCK(name, kind, wait, promise, paper)                                 \
	{OPS(name, kind, spin, WAIT_SPIN), OPS(name, kind, yield, WAIT_YIELD), \
	 OPS(name, kind, park, WAIT_PARK)},
#include "locks.def"
};

#define LOCKS (sizeof(all_ops) / sizeof(all_ops[0]))

const struct any_ops *const any_default = &all_ops[INDEX_shfl_mutex][WAIT_PARK];

/* ---- Locks whose fast path may be inlined ---- */

#ifdef WITHOUT_shfl_ron
#define is_shfl_ron(ops) ((void)(ops), false)
#define wait_for_shfl_ron(lock, seen, deadline, ops) ((void)(seen), false)
#else
static inline bool is_shfl_ron(const struct any_ops *ops)
{
	return ops->lock == shfl_ron_park_lock;
}

static inline bool wait_for_shfl_ron(void *lock, uint32_t seen, const struct w_deadline *deadline,
				     const struct any_ops *ops)
{
	return shfl_ron_acquire_slow(lock, seen,
				     shfl_ron_mutex_policy(
					     LOCK_POLICY(shfl_ron, WAIT_PARK, ops->settings)),
				     deadline);
}
#endif

bool any_is_inlined(const struct any_ops *ops)
{
	return any_is_default(ops) || (ops && is_shfl_ron(ops));
}

bool any_wait(void *lock, uint32_t seen, const struct w_deadline *deadline,
	      const struct any_ops *ops)
{
	if (is_shfl_ron(ops))
		return wait_for_shfl_ron(lock, seen, deadline, ops);
	return shfl_mutex_acquire_slow(lock, LOCK_POLICY(shfl_mutex, WAIT_PARK, ops->settings),
				       deadline);
}

#define MEASURED_OPS(lock, way, WAY) OPS(lock, BARE, way##_measured, WAY)

static const struct {
	size_t lock;
	uint32_t policy; /* its place among the settings */
	struct any_ops ops[SPEC_WAYS];
} measured[] = {
#define MEASURED_TABLE(lock)                                                          \
	{INDEX_##lock,                                                                \
	 lock##_policy_place,                                                         \
	 {MEASURED_OPS(lock, spin, WAIT_SPIN), MEASURED_OPS(lock, yield, WAIT_YIELD), \
	  MEASURED_OPS(lock, park, WAIT_PARK)}},
	MEASURED_LOCKS(MEASURED_TABLE)};

#define BOX_SIZE_BARE(name) NULL
#define BOX_SIZE_NODE(name) NULL
#define BOX_SIZE_BOXED_BARE(name) name##_size
#define BOX_SIZE_BOXED_NODE(name) name##_size

static const struct facts facts[LOCKS] = {
#define LOCK(name, kind, wait, promise, paper) \
	{#name, promise, paper, WAIT_##wait, BOX_SIZE_##kind(name), name##_bytes},
#include "locks.def"
};

const struct facts *any_facts(size_t lock)
{
	return lock < LOCKS ? &facts[lock] : NULL;
}

const uint32_t *any_defaults(size_t lock)
{
	return all_ops[lock][0].settings;
}

/* The constant table of the functions for these settings. */
static const struct any_ops *functions_for(size_t lock, enum wait wait, const uint32_t *settings)
{
	for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++)
		if (measured[i].lock == lock &&
		    policy_measures((enum policy)settings[measured[i].policy]))
			return &measured[i].ops[wait];
	return &all_ops[lock][wait];
}

INTERN(tables, struct any_ops, INTERN_MOST);

const struct any_ops *any_ops_for(size_t lock, enum wait wait, const uint32_t *settings)
{
	const struct any_ops *constant = functions_for(lock, wait, settings);
	struct any_ops table;

	/* Not by assignment, which may leave out padding. */
	memcpy(&table, constant, sizeof(table));
	memcpy(table.settings, settings, sizeof(table.settings));
	return memcmp(&table, constant, sizeof(table)) ? intern(&tables, &table) : constant;
}
