/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Every lock of core/locks.def, in each way of waiting, behind the one table of any.h. The compiler makes one copy of a
 * lock for each way, in which the way is a constant; the settings that are numbers are read where a waiter needs them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "any.h"
#include "cna.h"
#include "mcs.h"
#include "poundlock.h"
#include "route.h"
#include "shfl_mutex.h"
#include "shfl_spin.h"
#include "ticket.h"
#include "topology.h"
#include "ttas.h"

/* ---- Settings ---- */

static struct {
	uint32_t backoff;
	uint32_t threshold;
	uint32_t reduction;
	uint32_t patience;
} settings = {
	.backoff = 0,
	.threshold = 65535,
	.reduction = 127,
	.patience = 4,
};

static const struct setting {
	const char *lock;
	const char *key;
	uint32_t *value;
	uint32_t least, most;
} number_settings[] = {
	{"ttas", "backoff", &settings.backoff, 0, 1000000},
	{"cna", "threshold", &settings.threshold, 1, UINT32_MAX - 1},
	{"cna", "reduction", &settings.reduction, 0, UINT32_MAX - 1},
	{"shfl_mutex", "patience", &settings.patience, 0, 1000000000},
};

#define SETTINGS (sizeof(number_settings) / sizeof(number_settings[0]))

/* What a lock's functions take as their policy, for a way of waiting. */
#define POLICY_ttas(way) ((struct ttas_policy){.wait = (way), .backoff = settings.backoff})
#define POLICY_ticket(way) (way)
#define POLICY_mcs(way) (way)
#define POLICY_cna(way) \
	((struct cna_policy){.wait = (way), .threshold = settings.threshold, .reduction = settings.reduction})
#define POLICY_shfl_spin(way) (way)
#define POLICY_shfl_mutex(way) ((struct shfl_mutex_policy){.wait = (way), .patience = settings.patience})

/* ---- Locks whose holders keep nothing ---- */

#define RELEASE_ttas(lock, way) ttas_release(lock, way)
#define RELEASE_ticket(lock, way) ticket_release(lock, way)
#define RELEASE_shfl_spin(lock, way) shfl_spin_release(lock)
#define RELEASE_shfl_mutex(lock, way) shfl_mutex_release(lock)

#define BARE(name, way, WAY)                                                                \
	static int name##_##way##_lock(void *lock)                                          \
	{                                                                                   \
		name##_acquire(lock, POLICY_##name(WAY), NULL);                             \
		return 0;                                                                   \
	}                                                                                   \
	static bool name##_##way##_trylock(void *lock)                                      \
	{                                                                                   \
		return name##_try_acquire(lock);                                            \
	}                                                                                   \
	static bool name##_##way##_timedlock(void *lock, const struct w_deadline *deadline) \
	{                                                                                   \
		return name##_acquire(lock, POLICY_##name(WAY), deadline);                  \
	}                                                                                   \
	static bool name##_##way##_unlock(void *lock)                                       \
	{                                                                                   \
		return RELEASE_##name(lock, WAY);                                           \
	}

/* ---- Locks whose holders keep their node ---- */

/* A lock and where its holder's node is: any thread may unlock. */
struct kept {
	void *lock[1];
	W_ATOMIC(struct any_node *) holder;
};

/* A node of the pool and, while it is a holder's, which lock it holds. */
struct any_node {
	union {
		W_ATOMIC(uint32_t) status;
		struct mcs_node mcs;
		struct cna_node cna;
		struct shfl_node shfl; /* a timed waiter's */
	};
	struct kept *holds;
	void (*drop_waiters)(struct kept *kept, struct any_node *node);
};

_Static_assert(sizeof(struct any_node) <= sizeof(struct w_node), "a node must fit into the pool's");
_Static_assert(sizeof(struct kept) <= 16, "bytes 16 to 19 are the embedder's");

static inline void keep(struct kept *kept, struct any_node *node,
			void (*drop_waiters)(struct kept *kept, struct any_node *node))
{
	node->holds = kept;
	node->drop_waiters = drop_waiters;
	/* relaxed: whoever unlocks holds the lock */
	w_store_relaxed(&kept->holder, node);
}

static inline struct any_node *unkeep(struct kept *kept)
{
	/* relaxed, both: as in keep */
	struct any_node *node = w_load_relaxed(&kept->holder);

	if (w_unlikely(!node))
		return NULL;
	w_store_relaxed(&kept->holder, NULL);
	node->holds = NULL;
	return node;
}

#define NODE(name, way, WAY)                                                                \
	static void name##_##way##_drop(struct kept *kept, struct any_node *node)           \
	{                                                                                   \
		name##_drop_waiters((struct name *)kept->lock, &node->name);                \
	}                                                                                   \
	static int name##_##way##_lock(void *lock)                                          \
	{                                                                                   \
		struct any_node *node = w_node_get();                                       \
                                                                                            \
		name##_acquire(lock, &node->name, POLICY_##name(WAY), NULL);                \
		keep(lock, node, name##_##way##_drop);                                      \
		return 0;                                                                   \
	}                                                                                   \
	static bool name##_##way##_trylock(void *lock)                                      \
	{                                                                                   \
		struct any_node *node = w_node_get();                                       \
                                                                                            \
		if (!name##_try_acquire(lock, &node->name))                                 \
			return false;                                                       \
		keep(lock, node, name##_##way##_drop);                                      \
		return true;                                                                \
	}                                                                                   \
	static bool name##_##way##_timedlock(void *lock, const struct w_deadline *deadline) \
	{                                                                                   \
		struct any_node *node = w_node_get();                                       \
                                                                                            \
		if (!name##_acquire(lock, &node->name, POLICY_##name(WAY), deadline))       \
			return false;                                                       \
		keep(lock, node, name##_##way##_drop);                                      \
		return true;                                                                \
	}                                                                                   \
	static bool name##_##way##_unlock(void *lock)                                       \
	{                                                                                   \
		struct any_node *node = unkeep(lock);                                       \
                                                                                            \
		if (node)                                                                   \
			name##_release(lock, &node->name, POLICY_##name(WAY));              \
		return node;                                                                \
	}

/* ---- The tables ---- */

static const char *const way_names[] = {[WAIT_SPIN] = "spin", [WAIT_YIELD] = "yield", [WAIT_PARK] = "park"};

const char *any_wait_name(enum wait wait)
{
	return way_names[wait];
}

#define WAYS (sizeof(way_names) / sizeof(way_names[0]))

#define LOCK(name, kind, wait, promise, paper)                                          \
	_Static_assert(sizeof(struct name) <= 32 && _Alignof(struct name) <= 8, #name); \
	kind(name, spin, WAIT_SPIN) kind(name, yield, WAIT_YIELD) kind(name, park, WAIT_PARK)
#include "locks.def"
#undef LOCK

#define OPS(lock_name, way, WAY)                            \
	[WAY] = {                                           \
		.name = #lock_name,                         \
		.wait = (WAY),                              \
		.lock = lock_name##_##way##_lock,           \
		.trylock = lock_name##_##way##_trylock,     \
		.timedlock = lock_name##_##way##_timedlock, \
		.unlock = lock_name##_##way##_unlock,       \
	}

static const struct any_ops all_ops[][WAYS] = {
#define LOCK(name, kind, wait, promise, paper) \
	{OPS(name, spin, WAIT_SPIN), OPS(name, yield, WAIT_YIELD), OPS(name, park, WAIT_PARK)},
#include "locks.def"
#undef LOCK
};

#define LOCKS (sizeof(all_ops) / sizeof(all_ops[0]))

enum { KEPT_BARE, KEPT_NODE };

/* Bytes that the lock itself needs (the embedder's, which some carry along, are not its own), a waiter and a holder. */
#define BYTES_ttas sizeof(struct ttas), 0, 0
#define BYTES_ticket sizeof(struct ticket), 0, 0
#define BYTES_mcs sizeof(struct mcs), sizeof(struct mcs_node), sizeof(struct mcs_node)
#define BYTES_cna sizeof(struct cna), sizeof(struct cna_node), sizeof(struct cna_node)
#define BYTES_shfl_spin sizeof(struct shfl_spin), sizeof(struct shfl_node), 0
#define BYTES_shfl_mutex sizeof(struct shfl_mutex) - sizeof(uint32_t), sizeof(struct shfl_node), 0

static const struct {
	const char *promise, *paper;
	enum wait wait;
	size_t bytes_lock, bytes_waiter, bytes_holder;
} facts[LOCKS] = {
#define LOCK(name, kind, wait, promise, paper) {promise, paper, WAIT_##wait, BYTES_##name},
#include "locks.def"
#undef LOCK
};

/* ---- Choosing one ---- */

/* Writes one line into @error and returns false. */
__attribute__((format(printf, 3, 4))) static bool wrong(char *error, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (size)
		vsnprintf(error, size, format, arguments);
	va_end(arguments);
	return false;
}

static bool find_lock(const char *name, size_t length, size_t *lock)
{
	for (*lock = 0; *lock < LOCKS; ++*lock)
		if (strlen(all_ops[*lock][0].name) == length && !memcmp(all_ops[*lock][0].name, name, length))
			return true;
	return false;
}

static bool set_wait(const char *value, enum wait *wait, char *error, size_t size)
{
	for (size_t way = 0; way < WAYS; way++) {
		if (!strcmp(value, way_names[way])) {
			*wait = (enum wait)way;
			return true;
		}
	}
	return wrong(error, size, "wait=%s: not one of spin, yield, park", value);
}

static bool parse_number(const struct setting *setting, const char *value, uint32_t *number, char *error, size_t size)
{
	unsigned long long parsed = 0;
	const char *digit;

	for (digit = value; *digit >= '0' && *digit <= '9' && parsed <= UINT32_MAX; digit++)
		parsed = parsed * 10 + (unsigned long long)(*digit - '0');
	if (digit == value || *digit || parsed < setting->least || parsed > setting->most)
		return wrong(error, size, "%s=%s: not a number from %u to %u", setting->key, value, setting->least,
			     setting->most);
	*number = (uint32_t)parsed;
	return true;
}

/* What a spec asks for, applied only when all of it is right. */
struct wish {
	enum wait wait;
	uint32_t numbers[SETTINGS];
};

/* Notes one "key=value" of @lock in @wish. */
static bool note(size_t lock, char *pair, struct wish *wish, char *error, size_t size)
{
	const char *name = all_ops[lock][0].name;
	char *value = strchr(pair, '=');

	if (!value)
		return wrong(error, size, "'%s' of lock %s is not key=value", pair, name);
	*value++ = 0;
	if (!strcmp(pair, "wait"))
		return set_wait(value, &wish->wait, error, size);
	for (size_t i = 0; i < SETTINGS; i++)
		if (!strcmp(name, number_settings[i].lock) && !strcmp(pair, number_settings[i].key))
			return parse_number(&number_settings[i], value, &wish->numbers[i], error, size);
	return wrong(error, size, "lock %s has no key '%s'", name, pair);
}

static bool note_all(size_t lock, char *pairs, struct wish *wish, char *error, size_t size)
{
	for (char *pair = pairs, *rest; pair; pair = rest) {
		rest = strchr(pair, ',');
		if (rest)
			*rest++ = 0;
		if (!note(lock, pair, wish, error, size))
			return false;
	}
	return true;
}

const struct any_ops *any_find(const char *spec, char *error, size_t size)
{
	size_t length = strcspn(spec, ","), lock;
	struct wish wish;
	char copy[256];

	if (!find_lock(spec, length, &lock)) {
		wrong(error, size, "there is no lock '%.*s'", (int)length, spec);
		return NULL;
	}
	if (strlen(spec) >= sizeof(copy)) {
		wrong(error, size, "'%.32s...' is too long for a lock", spec);
		return NULL;
	}
	strcpy(copy, spec);
	wish.wait = facts[lock].wait;
	for (size_t i = 0; i < SETTINGS; i++)
		wish.numbers[i] = *number_settings[i].value;
	if (!note_all(lock, spec[length] ? copy + length + 1 : NULL, &wish, error, size))
		return NULL;
	for (size_t i = 0; i < SETTINGS; i++)
		*number_settings[i].value = wish.numbers[i];
	return &all_ops[lock][wish.wait];
}

/* ---- What is known of them ---- */

/* The keys of @lock, comma-separated, into @keys. */
static void list_keys(size_t lock, char *keys, size_t size)
{
	size_t used = (size_t)snprintf(keys, size, "wait");

	for (size_t i = 0; i < SETTINGS; i++)
		if (!strcmp(all_ops[lock][0].name, number_settings[i].lock))
			used += (size_t)snprintf(keys + used, size - used, ",%s", number_settings[i].key);
}

const struct pound_lock_info *pound_lock_info(size_t index)
{
	static _Thread_local struct pound_lock_info info;
	static _Thread_local char keys[64];

	if (index >= LOCKS)
		return NULL;
	list_keys(index, keys, sizeof(keys));
	info = (struct pound_lock_info){
		.name = all_ops[index][0].name,
		.wait = way_names[facts[index].wait],
		.promise = facts[index].promise,
		.paper = facts[index].paper,
		.keys = keys,
		.bytes_per_lock = facts[index].bytes_lock,
		.bytes_per_waiter = facts[index].bytes_waiter,
		.bytes_per_holder = facts[index].bytes_holder,
	};
	return &info;
}

/* ---- Fork ---- */

/* Drops the waiters behind a holder's node. An abandoned one stays: its lock, another thread's, still has it. */
static void after_fork(void *memory)
{
	struct any_node *node = memory;

	if (node->holds)
		node->drop_waiters(node->holds, node);
}

static void after_fork_in_child(void)
{
	w_after_fork_in_child();
	w_nodes_in_use(after_fork);
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

bool any_start(void)
{
	static W_ATOMIC(uint32_t) started;
	static bool sound = true;

	if (atomic_exchange(&started, 1))
		return sound;
	w_route_start();
	w_spin_calibrate();
	sound = choose_domain();
	pthread_atfork(NULL, NULL, after_fork_in_child);
	return sound;
}

__attribute__((constructor)) static void start(void)
{
	(void)any_start();
}

/* ---- The default mutex ---- */

bool pound_mutex_trylock_slow(pound_mutex_t *mutex, uint32_t seen)
{
	return shfl_mutex_try_acquire_slow((struct shfl_mutex *)mutex, seen);
}

void pound_mutex_lock_slow(pound_mutex_t *mutex)
{
	(void)shfl_mutex_acquire_slow((struct shfl_mutex *)mutex, POLICY_shfl_mutex(WAIT_PARK), NULL);
}

void pound_mutex_unlock_slow(pound_mutex_t *mutex)
{
	(void)shfl_mutex_release((struct shfl_mutex *)mutex);
}

int pound_mutex_timedlock(pound_mutex_t *mutex, clockid_t clock, const struct timespec *deadline)
{
	struct w_deadline until = {.clock = clock, .at = *deadline};

	if (pound_mutex_trylock(mutex))
		return 0;
	if (!any_deadline_valid(&until))
		return EINVAL;
	return shfl_mutex_acquire_slow((struct shfl_mutex *)mutex, POLICY_shfl_mutex(WAIT_PARK), &until) ? 0
													 : ETIMEDOUT;
}

_Static_assert(sizeof(pound_mutex_t) == sizeof(struct shfl_mutex), "one and the same");
_Static_assert(offsetof(pound_mutex_t, pound_state) == offsetof(struct shfl_mutex, state), "one and the same");
_Static_assert(SHFL_MUTEX_LOCKED == 1, "as poundlock.h has it");
