/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Every lock of core/locks.def, in each way of waiting, behind the one table of any.h. The compiler makes one copy of a
 * lock for each way, in which the way is a constant; the settings that are numbers are read where a waiter needs them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "all.h"
#include "any_rw.h"
#include "box.h"
#include "part/disguise.h"
#include "part/generation.h"
#include "part/hold.h"
#include "info.h"
#include "observer.h"
#include "poundlock.h"
#include "route.h"
#include "shares.h"
#include "spec.h"
#include "topology.h"

/* ---- Settings ---- */

static struct {
#define VALUE(lock, key, ...) W_ATOMIC(uint32_t) lock##_##key;
#define LOCK(name, kind, wait, promise, paper) name##_settings(VALUE)
#include "locks.def"
} settings = {
#define OTHERWISE(lock, key, otherwise, ...) .lock##_##key = (otherwise),
#define LOCK(name, kind, wait, promise, paper) name##_settings(OTHERWISE)
#include "locks.def"
};

static const struct setting all_settings[] = {
#define SETTING(lock, key, otherwise, least, most, small, ...) \
	{#lock, #key, &settings.lock##_##key, least, most, "" __VA_ARGS__},
#define LOCK(name, kind, wait, promise, paper) name##_settings(SETTING)
#include "locks.def"
};

#define SETTINGS (sizeof(all_settings) / sizeof(all_settings[0]))

/* What the functions of lock @name take as their policy, for a way of waiting. */
#define SET(lock, key, ...) .key = spec_value(&settings.lock##_##key),
#define POLICY(name, way) ((struct name##_policy){.wait = (way), name##_settings(SET)})

/* ---- Locks that do not fit: in a box of their own, from their first use to their destruction ---- */

/* Whether the box is @lock's: a lock copied while it was free has another's, and gets one of its own. */
static inline bool is_own(void *boxed, void *lock)
{
	return boxed && box_owner(boxed) == lock;
}

/* The lock in the box of @lock, made if there is none yet. */
static inline void *in_box(void *lock, size_t (*size)(void), void (*init)(void *lock, size_t size))
{
	W_ATOMIC(void *) *box = lock;
	void *seen, *made;
	size_t bytes;

	/* acquire: pairs with the release below; the lock as init() made it */
	seen = w_load_acquire(box);
	if (w_likely(is_own(seen, lock)))
		return seen;
	bytes = size();
	made = box_get(bytes, lock);
	init(made, bytes);
	/* release: pairs with the acquire above and below */
	if (w_compare_exchange_release(box, &seen, made))
		return made;
	box_put(made);
	/* acquire: pairs with the release of who was faster; what the failed compare-exchange read is not ordered by it */
	return w_load_acquire(box);
}

static inline void unbox(void *lock)
{
	W_ATOMIC(void *) *box = lock;
	/* relaxed, both: nobody else uses a lock that is being destroyed */
	void *boxed = w_load_relaxed(box);

	w_store_relaxed(box, NULL);
	if (is_own(boxed, lock))
		box_put(boxed);
}

#define IN_BOX(name, lock) name##_in_box(lock)
#define IN_PLACE(name, lock) ((struct name *)(lock))

#define BOX(name)                                                     \
	static void name##_init_in_box(void *lock, size_t size)       \
	{                                                             \
		name##_init(lock, size);                              \
	}                                                             \
	static inline struct name *name##_in_box(void *lock)          \
	{                                                             \
		return in_box(lock, name##_size, name##_init_in_box); \
	}

/* ---- Locks whose holders keep nothing ---- */

#define HOLDS_NOTHING(name, way, WAY, WHERE)                                                \
	ANY_WHOLE static int name##_##way##_lock(void *lock)                                \
	{                                                                                   \
		name##_acquire(WHERE(name, lock), POLICY(name, WAY), NULL);                 \
		return 0;                                                                   \
	}                                                                                   \
	static bool name##_##way##_trylock(void *lock)                                      \
	{                                                                                   \
		return name##_try_acquire(WHERE(name, lock));                               \
	}                                                                                   \
	static bool name##_##way##_timedlock(void *lock, const struct w_deadline *deadline) \
	{                                                                                   \
		return name##_acquire(WHERE(name, lock), POLICY(name, WAY), deadline);      \
	}                                                                                   \
	ANY_WHOLE static bool name##_##way##_unlock(void *lock)                             \
	{                                                                                   \
		return name##_release(WHERE(name, lock), POLICY(name, WAY));                \
	}

/* ---- Locks whose holders keep their node ---- */

/* A lock and where its holder's node is: any thread may unlock. */
struct kept {
	void *lock[1];
	W_ATOMIC(struct any_node *) holder; /* disguised; NULL: none */
};

/* A node of the pool. */
struct any_node {
	union {
		W_ATOMIC(uint32_t) status;
		struct mcs_node mcs;
		struct clh_node clh;
		struct c_bo_mcs_node c_bo_mcs;
		struct hmcs_node hmcs;
		struct cst_node cst;
		struct cna_node cna;
		struct malthusian_node malthusian;
		struct mcstp_node mcstp;
		struct reciprocating_node reciprocating;
		struct shfl_node shfl; /* a timed waiter's */
		struct ron_node ron;   /* the same */
		struct cfl_node cfl;
	};
	/* In which the queue that the node is in is sound (generation.h), while it is a waiter's or a holder's. */
	W_ATOMIC(uint32_t) generation;
};

_Static_assert(sizeof(struct any_node) <= sizeof(struct w_node), "a node must fit into the pool's");
_Static_assert(sizeof(struct kept) <= 16, "bytes 16 to 19 are the embedder's");

static inline struct any_node *new_node(void)
{
	struct any_node *node = w_node_get();

	/* relaxed: who comes to the node by its lock is ordered by that */
	w_store_relaxed(&node->generation, 2 * w_fork_generation());
	return node;
}

static inline void keep(struct kept *kept, struct any_node *node)
{
	/* relaxed: whoever unlocks holds the lock */
	w_store_relaxed(&kept->holder, disguise(node));
}

static inline struct any_node *unkeep(struct kept *kept)
{
	/* relaxed: as in keep() */
	struct any_node *node = w_load_relaxed(&kept->holder);

	if (w_unlikely(!node))
		return NULL;
	/* release: pairs with the acquire in drop_waiters(); the queue as it was made there */
	w_store_release(&kept->holder, NULL);
	return disguise(node);
}

typedef void (*drop_function)(struct kept *kept, struct any_node *node);

/* Drops what waited in another process for a lock that is held since before this one was forked, unless that is done. */
static W_SLOW void drop_waiters(struct kept *kept, drop_function drop)
{
	/* acquire: pairs with the release in unkeep(): of a lock that was released meanwhile, its queue */
	struct any_node *holder = w_load_acquire(&kept->holder);

	/* A holder that has put its node aside (preload/layout.h) is of this process, or never releases. */
	if (!is_disguised(holder))
		return;
	holder = disguise(holder);
	if (!generation_claim(&holder->generation))
		return;
	drop(kept, holder);
	generation_settle(&holder->generation);
}

/* For a thread that comes to wait for @kept, and for its holder before the release. */
static inline void see_to_fork(struct kept *kept, drop_function drop)
{
	if (w_unlikely(w_fork_generation()))
		drop_waiters(kept, drop);
}

#define HOLDS_NODE(name, way, WAY, WHERE)                                                         \
	static void name##_##way##_drop(struct kept *kept, struct any_node *node)                 \
	{                                                                                         \
		name##_drop_waiters(WHERE(name, kept), &node->name);                              \
	}                                                                                         \
	ANY_WHOLE static int name##_##way##_lock(void *lock)                                      \
	{                                                                                         \
		struct any_node *node = new_node();                                               \
                                                                                                  \
		see_to_fork(lock, name##_##way##_drop);                                           \
		name##_acquire(WHERE(name, lock), &node->name, POLICY(name, WAY), NULL);          \
		keep(lock, node);                                                                 \
		return 0;                                                                         \
	}                                                                                         \
	static bool name##_##way##_trylock(void *lock)                                            \
	{                                                                                         \
		struct any_node *node = new_node();                                               \
                                                                                                  \
		if (!name##_try_acquire(WHERE(name, lock), &node->name))                          \
			return false;                                                             \
		keep(lock, node);                                                                 \
		return true;                                                                      \
	}                                                                                         \
	static bool name##_##way##_timedlock(void *lock, const struct w_deadline *deadline)       \
	{                                                                                         \
		struct any_node *node = new_node();                                               \
                                                                                                  \
		see_to_fork(lock, name##_##way##_drop);                                           \
		if (!name##_acquire(WHERE(name, lock), &node->name, POLICY(name, WAY), deadline)) \
			return false;                                                             \
		keep(lock, node);                                                                 \
		return true;                                                                      \
	}                                                                                         \
	ANY_WHOLE static bool name##_##way##_unlock(void *lock)                                   \
	{                                                                                         \
		struct any_node *node;                                                            \
                                                                                                  \
		see_to_fork(lock, name##_##way##_drop);                                           \
		node = unkeep(lock);                                                              \
		if (node)                                                                         \
			name##_release(WHERE(name, lock), &node->name, POLICY(name, WAY));        \
		return node;                                                                      \
	}

/* ---- The kinds of locks.def ---- */

#define BARE(name)                                                                                                \
	_Static_assert(sizeof(struct name) <= ANY_LOCK_SIZE && _Alignof(struct name) <= 8, #name " needs a box"); \
	HOLDS_NOTHING(name, spin, WAIT_SPIN, IN_PLACE)                                                            \
	HOLDS_NOTHING(name, yield, WAIT_YIELD, IN_PLACE)                                                          \
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

/* ---- Locks whose policy may want hold times: they are measured around the lock, which knows nothing of it ---- */

#define MEASURED(name, way)                                                                          \
	static int name##_##way##_measured_lock(void *lock)                                          \
	{                                                                                            \
		(void)name##_##way##_lock(lock);                                                     \
		hold_begin(lock);                                                                    \
		return 0;                                                                            \
	}                                                                                            \
	static bool name##_##way##_measured_trylock(void *lock)                                      \
	{                                                                                            \
		bool taken = name##_##way##_trylock(lock);                                           \
                                                                                                     \
		if (taken)                                                                           \
			hold_begin(lock);                                                            \
		return taken;                                                                        \
	}                                                                                            \
	static bool name##_##way##_measured_timedlock(void *lock, const struct w_deadline *deadline) \
	{                                                                                            \
		bool taken = name##_##way##_timedlock(lock, deadline);                               \
                                                                                                     \
		if (taken)                                                                           \
			hold_begin(lock);                                                            \
		return taken;                                                                        \
	}                                                                                            \
	static bool name##_##way##_measured_unlock(void *lock)                                       \
	{                                                                                            \
		hold_end(lock);                                                                      \
		return name##_##way##_unlock(lock);                                                  \
	}

#define MEASURED_WAYS(name)   \
	MEASURED(name, spin)  \
	MEASURED(name, yield) \
	MEASURED(name, park)

MEASURED_WAYS(shfl_spin)
MEASURED_WAYS(shfl_mutex)

/* ---- The tables ---- */

#define DESTROY_BARE NULL
#define DESTROY_NODE NULL
#define DESTROY_BOXED_BARE unbox
#define DESTROY_BOXED_NODE unbox

enum {
#define LOCK(name, kind, wait, promise, paper) INDEX_##name,
#include "locks.def"
};

/* adaptive has its list of sleepers there, and hapax the number that departed last. */
#define SHARES_MIDDLE(name) (INDEX_##name == INDEX_adaptive || INDEX_##name == INDEX_hapax)

#define OPS(lock_name, kind, way, WAY)                      \
	[WAY] = {                                           \
		.name = #lock_name,                         \
		.wait = (WAY),                              \
		.lock = lock_name##_##way##_lock,           \
		.trylock = lock_name##_##way##_trylock,     \
		.timedlock = lock_name##_##way##_timedlock, \
		.unlock = lock_name##_##way##_unlock,       \
		.leaves_middle = !SHARES_MIDDLE(lock_name), \
		.destroy = DESTROY_##kind,                  \
	}

static const struct any_ops all_ops[][SPEC_WAYS] = {
#define LOCK(name, kind, wait, promise, paper) \
	{OPS(name, kind, spin, WAIT_SPIN), OPS(name, kind, yield, WAIT_YIELD), OPS(name, kind, park, WAIT_PARK)},
#include "locks.def"
};

#define LOCKS (sizeof(all_ops) / sizeof(all_ops[0]))

const struct any_ops *const any_default = &all_ops[INDEX_shfl_mutex][WAIT_PARK];

#define MEASURED_OPS(lock, way, WAY) OPS(lock, BARE, way##_measured, WAY)

static const struct {
	W_ATOMIC(uint32_t) *policy;
	struct any_ops ops[SPEC_WAYS];
} measured[] = {
#define MEASURED_TABLE(lock)                                                          \
	{&settings.lock##_policy,                                                     \
	 {MEASURED_OPS(lock, spin, WAIT_SPIN), MEASURED_OPS(lock, yield, WAIT_YIELD), \
	  MEASURED_OPS(lock, park, WAIT_PARK)}},
	MEASURED_TABLE(shfl_spin) MEASURED_TABLE(shfl_mutex)};

#define BOX_SIZE_BARE(name) NULL
#define BOX_SIZE_NODE(name) NULL
#define BOX_SIZE_BOXED_BARE(name) name##_size
#define BOX_SIZE_BOXED_NODE(name) name##_size

static const struct facts facts[LOCKS] = {
#define LOCK(name, kind, wait, promise, paper) \
	{#name, promise, paper, WAIT_##wait, BOX_SIZE_##kind(name), name##_bytes},
#include "locks.def"
};

/* ---- Choosing one ---- */

static const struct {
	const char *name, *lock;
} aliases[] = {
#define ALIAS(name, lock) {#name, #lock},
#include "locks.def"
};

static bool find_lock(const char *name, size_t length, size_t *lock)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strlen(aliases[i].name) == length && !memcmp(aliases[i].name, name, length))
			return find_lock(aliases[i].lock, strlen(aliases[i].lock), lock);
	for (*lock = 0; *lock < LOCKS; ++*lock)
		if (strlen(all_ops[*lock][0].name) == length && !memcmp(all_ops[*lock][0].name, name, length))
			return true;
	return false;
}

/* Whether what is @said of all settings asks for no policy that the program has not brought. */
static bool own_policy_is_there(const struct said *said)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (said[i].named && said[i].number == POLICY_OWN && !strcmp(all_settings[i].key, "policy"))
			return atomic_load(&w_own_policy);
	return true;
}

/* Reads @spec: which lock it names, how that waits, and what is @said of all settings. False, and @error says why. */
static bool read_spec(const char *spec, size_t *lock, enum wait *wait, struct said *said, char *error, size_t size)
{
	size_t length;
	const char *pairs = spec_split(spec, &length);

	if (!find_lock(spec, length, lock))
		return spec_wrong(error, size, "there is no lock '%.*s'", (int)length, spec);
	*wait = facts[*lock].wait;
	if (!spec_parse(all_ops[*lock][0].name, pairs, all_settings, SETTINGS, wait, said, error, size))
		return false;
	return own_policy_is_there(said) ||
	       spec_wrong(error, size, "policy=own: the program has brought none (pound_policy_use)");
}

/* The functions of @lock as it is set. */
static const struct any_ops *ops_for(size_t lock, enum wait wait)
{
	for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++)
		if (!strcmp(measured[i].ops[wait].name, all_ops[lock][wait].name) &&
		    policy_measures((enum policy)spec_value(measured[i].policy)))
			return &measured[i].ops[wait];
	return &all_ops[lock][wait];
}

/* Reads the route now if the lock @name, as it is set, will want it: a sandbox that is entered later may not let it. */
static void read_route(const char *name)
{
	bool wanted = !strncmp(name, "ron", strlen("ron"));

	for (size_t i = 0; i < SETTINGS; i++)
		if (!strcmp(all_settings[i].lock, name) && !strcmp(all_settings[i].key, "policy"))
			wanted = spec_value(all_settings[i].value) == POLICY_ROUTE;
	if (wanted)
		(void)w_route_position();
}

const struct any_ops *any_find(const char *spec, char *error, size_t size)
{
	struct said said[SETTINGS];
	enum wait wait;
	size_t lock;

	if (!read_spec(spec, &lock, &wait, said, error, size))
		return NULL;
	spec_set(all_settings, SETTINGS, said);
	read_route(all_ops[lock][0].name);
	return ops_for(lock, wait);
}

bool any_check(const char *spec, char *error, size_t size)
{
	struct said said[SETTINGS];
	enum wait wait;
	size_t lock;

	return read_spec(spec, &lock, &wait, said, error, size);
}

/* ---- What is known of them ---- */

const struct pound_lock_info *pound_lock_info(size_t index)
{
	return index < LOCKS ? info_of(&facts[index], all_settings, SETTINGS) : NULL;
}

/* ---- Start ---- */

/* Says once, on stderr, what is wrong with an environment variable. */
static void complain(const char *variable, const char *value, const char *expected)
{
	char line[256];
	int length = snprintf(line, sizeof(line), "poundlock: %s=%s: not one of %s\n", variable, value, expected);

	syscall(SYS_write, STDERR_FILENO, line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
}

/* Whether the environment names a kind of domain, or none. */
static bool choose_domain(void)
{
	const char *name = secure_getenv("POUNDLOCK_DOMAIN");
	enum w_domain_kind kind;

	if (!name || !*name)
		return true;
	if (!w_domain_kind_by_name(name, &kind)) {
		complain("POUNDLOCK_DOMAIN", name, "l3, die, node, package, core");
		return false;
	}
	w_domain_choose(kind);
	return true;
}

/* Whether the environment says whose shares are told apart, or nothing. */
static bool choose_shares(void)
{
	const char *name = secure_getenv("POUNDLOCK_SHARES");

	if (!name || !*name || !strcmp(name, "thread"))
		return true;
	if (strcmp(name, "process")) {
		complain("POUNDLOCK_SHARES", name, "thread, process");
		return false;
	}
	w_shares_of_process();
	return true;
}

bool any_start(void)
{
	static W_ATOMIC(uint32_t) started;
	static bool sound = true;

	if (atomic_exchange(&started, 1))
		return sound;
	sound = choose_domain();
	sound = choose_shares() && sound;
	/* The preload library may come back to here for the answer: it interposes what this calls. */
	w_process_watch();
	w_route_start();
	w_spin_calibrate();
	(void)w_domains_load();
	return sound;
}

/* ---- Statistics ---- */

const struct pound_observer *any_observer;

/* A static program has no loader, and does not link it for this. */
#pragma weak dlsym

#define NAME_OF(symbol) #symbol
#define STRING_OF(symbol) NAME_OF(symbol)

static void find_observer(void)
{
	const char *asked = secure_getenv("POUNDLOCK_STATS");

	if (asked && dlsym)
		any_observer = dlsym(RTLD_DEFAULT, STRING_OF(POUND_OBSERVER));
}

__attribute__((constructor)) static void start(void)
{
	(void)any_start();
	find_observer();
}

/* ---- The default mutex ---- */

bool pound_mutex_trylock_slow(pound_mutex_t *mutex, uint32_t seen)
{
	return shfl_mutex_try_acquire_slow((struct shfl_mutex *)mutex, seen);
}

static bool wait_for_mutex(void *mutex, const struct w_deadline *deadline)
{
	return shfl_mutex_acquire_slow(mutex, POLICY(shfl_mutex, WAIT_PARK), deadline);
}

static bool release_mutex(void *mutex)
{
	return shfl_mutex_release(mutex, POLICY(shfl_mutex, WAIT_PARK));
}

static bool lock_mutex_slow(pound_mutex_t *mutex, const struct w_deadline *deadline)
{
	if (w_unlikely(any_observer))
		return any_observer->mutex_wait(mutex, deadline, wait_for_mutex);
	return wait_for_mutex(mutex, deadline);
}

void pound_mutex_lock_slow(pound_mutex_t *mutex)
{
	(void)lock_mutex_slow(mutex, NULL);
}

void pound_mutex_unlock_slow(pound_mutex_t *mutex)
{
	if (w_unlikely(any_observer))
		(void)any_observer->mutex_release(mutex, release_mutex);
	else
		(void)release_mutex(mutex);
}

int pound_mutex_timedlock(pound_mutex_t *mutex, clockid_t clock, const struct timespec *deadline)
{
	struct w_deadline until = {.clock = clock, .at = *deadline};

	if (pound_mutex_trylock(mutex))
		return 0;
	if (!any_deadline_valid(&until))
		return EINVAL;
	return lock_mutex_slow(mutex, &until) ? 0 : ETIMEDOUT;
}

_Static_assert(sizeof(pound_mutex_t) == sizeof(struct shfl_mutex), "one and the same");
_Static_assert(offsetof(pound_mutex_t, pound_state) == offsetof(struct shfl_mutex, state), "one and the same");
_Static_assert(SHFL_MUTEX_LOCKED == 1, "as poundlock.h has it");
