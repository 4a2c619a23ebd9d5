/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tables of all readers-writer locks of core/locks.def, made as those of any.c, and the choice
 * of one by its specification.
 */
#include "any_rw.h"

#include <stdio.h>
#include <string.h>

#include "info.h"
#include "intern.h"
#include "settings.h"

/* ---- The locks ---- */

#define FUNCTIONS(name, way, WAY)                                                                 \
	ANY_WHOLE static bool name##_##way##_rdlock(void *lock, bool again,                       \
						    const struct any_rw_ops *ops)                 \
	{                                                                                         \
		return name##_read(lock, again, LOCK_POLICY(name, WAY, ops->settings), NULL);     \
	}                                                                                         \
	static bool name##_##way##_timedrdlock(void *lock, bool again,                            \
					       const struct w_deadline *deadline,                 \
					       const struct any_rw_ops *ops)                      \
	{                                                                                         \
		return name##_read(lock, again, LOCK_POLICY(name, WAY, ops->settings), deadline); \
	}                                                                                         \
	ANY_WHOLE static bool name##_##way##_rdunlock(void *lock, const struct any_rw_ops *ops)   \
	{                                                                                         \
		return name##_release_read(lock, LOCK_POLICY(name, WAY, ops->settings));          \
	}                                                                                         \
	ANY_WHOLE static void name##_##way##_wrlock(void *lock, const struct any_rw_ops *ops)     \
	{                                                                                         \
		(void)name##_write(lock, LOCK_POLICY(name, WAY, ops->settings), NULL);            \
	}                                                                                         \
	static bool name##_##way##_timedwrlock(void *lock, const struct w_deadline *deadline,     \
					       const struct any_rw_ops *ops)                      \
	{                                                                                         \
		return name##_write(lock, LOCK_POLICY(name, WAY, ops->settings), deadline);       \
	}                                                                                         \
	ANY_WHOLE static bool name##_##way##_wrunlock(void *lock, const struct any_rw_ops *ops)   \
	{                                                                                         \
		return name##_release_write(lock, LOCK_POLICY(name, WAY, ops->settings));         \
	}                                                                                         \
	static bool name##_##way##_rdunlock_fair(void *lock, const struct any_rw_ops *ops)        \
	{                                                                                         \
		return name##_release_read_fair(lock, LOCK_POLICY(name, WAY, ops->settings));     \
	}                                                                                         \
	static bool name##_##way##_wrunlock_fair(void *lock, const struct any_rw_ops *ops)        \
	{                                                                                         \
		return name##_release_write_fair(lock, LOCK_POLICY(name, WAY, ops->settings));    \
	}

#define RWLOCK(name, wait, promise, paper)                                               \
	_Static_assert(sizeof(struct name) <= ANY_RW_SIZE && _Alignof(struct name) <= 8, \
		       #name " is large");                                               \
	static bool name##_tryrdlock(void *lock, bool again)                             \
	{                                                                                \
		return name##_try_read(lock, again);                                     \
	}                                                                                \
	static bool name##_is_full(void *lock)                                           \
	{                                                                                \
		return name##_full(lock);                                                \
	}                                                                                \
	static bool name##_trywrlock(void *lock)                                         \
	{                                                                                \
		return name##_try_write(lock);                                           \
	}                                                                                \
	FUNCTIONS(name, spin, WAIT_SPIN)                                                 \
	FUNCTIONS(name, yield, WAIT_YIELD)                                               \
	FUNCTIONS(name, park, WAIT_PARK)
#include "locks.def"

/* ---- The tables ---- */

#define OPS(lock_name, way, WAY)                                     \
	[WAY] = {                                                    \
		.name = #lock_name,                                  \
		.wait = (WAY),                                       \
		.rdlock = lock_name##_##way##_rdlock,                \
		.tryrdlock = lock_name##_tryrdlock,                  \
		.timedrdlock = lock_name##_##way##_timedrdlock,      \
		.rdunlock = lock_name##_##way##_rdunlock,            \
		.full = lock_name##_is_full,                         \
		.wrlock = lock_name##_##way##_wrlock,                \
		.trywrlock = lock_name##_trywrlock,                  \
		.timedwrlock = lock_name##_##way##_timedwrlock,      \
		.wrunlock = lock_name##_##way##_wrunlock,            \
		.rdunlock_fair = lock_name##_##way##_rdunlock_fair,  \
		.wrunlock_fair = lock_name##_##way##_wrunlock_fair,  \
		.settings = {lock_name##_settings(SETTING_DEFAULT)}, \
	}

static const struct any_rw_ops all_ops[][SPEC_WAYS] = {
#define RWLOCK(name, wait, promise, paper) \
	{OPS(name, spin, WAIT_SPIN), OPS(name, yield, WAIT_YIELD), OPS(name, park, WAIT_PARK)},
#include "locks.def"
};

#define LOCKS (sizeof(all_ops) / sizeof(all_ops[0]))

enum {
#define RWLOCK(name, wait, promise, paper) INDEX_##name,
#include "locks.def"
};

const struct any_rw_ops *const any_rw_default = &all_ops[INDEX_shfl_rw][WAIT_PARK];

static const struct facts facts[LOCKS] = {
#define RWLOCK(name, wait, promise, paper) {#name, promise, paper, WAIT_##wait, NULL, name##_bytes},
#include "locks.def"
};

/* ---- Choosing one ---- */

#define BRAVO "bravo"
#define UNDER ",under="
#define DEFAULT_UNDER "shfl_rw"

/*
 * Rewrites "bravo[,under=LOCK][,...]" to "bravo_LOCK[,...]", in the @room bytes at @name. Returns
 * any other @spec.
 */
static const char *expand_bravo(const char *spec, char *name, size_t room)
{
	const char *under = DEFAULT_UNDER, *rest = spec + strlen(BRAVO), *key;
	int length = (int)strlen(under);

	if (strncmp(spec, BRAVO, strlen(BRAVO)) || (*rest && *rest != ','))
		return spec;
	key = strstr(rest, UNDER);
	if (!key) {
		snprintf(name, room, BRAVO "_%s%s", under, rest);
		return name;
	}
	under = key + strlen(UNDER);
	length = (int)strcspn(under, ",");
	snprintf(name, room, BRAVO "_%.*s%.*s%s", length, under, (int)(key - rest), rest,
		 under + length);
	return name;
}

/*
 * The constant table of the lock that @asked names, and the settings that it specifies. NULL if it
 * is wrong; @error says why.
 */
static const struct any_rw_ops *read_spec(const char *asked, uint32_t *settings, char *error,
					  size_t size)
{
	char expanded[256];
	const char *spec = expand_bravo(asked, expanded, sizeof(expanded));
	size_t length;
	const char *pairs = spec_split(spec, &length);
	enum wait wait;

	for (size_t i = 0; i < LOCKS; i++) {
		const char *name = all_ops[i][0].name;

		if (strlen(name) != length || memcmp(name, spec, length))
			continue;
		wait = facts[i].wait;
		memcpy(settings, all_ops[i][0].settings, sizeof(all_ops[i][0].settings));
		if (!spec_parse(name, pairs, all_settings, SETTINGS, &wait, settings, error, size))
			return NULL;
		return &all_ops[i][wait];
	}
	spec_no_lock("readers-writer lock", spec, length, error, size);
	return NULL;
}

bool any_rw_names(const char *asked)
{
	char expanded[256];
	const char *spec = expand_bravo(asked, expanded, sizeof(expanded));
	size_t length;

	(void)spec_split(spec, &length);
	for (size_t i = 0; i < LOCKS; i++)
		if (strlen(facts[i].name) == length && !memcmp(facts[i].name, spec, length))
			return true;
	return false;
}

INTERN(tables, struct any_rw_ops, INTERN_MOST);

/* The table of @constant with these settings. NULL: there is no room for another one. */
static const struct any_rw_ops *with_settings(const struct any_rw_ops *constant,
					      const uint32_t *settings)
{
	struct any_rw_ops table;

	/* Not by assignment, which may leave out padding. */
	memcpy(&table, constant, sizeof(table));
	memcpy(table.settings, settings, sizeof(table.settings));
	return memcmp(&table, constant, sizeof(table)) ? intern(&tables, &table) : constant;
}

const struct any_rw_ops *any_rw_find(const char *spec, char *error, size_t size)
{
	uint32_t settings[SPEC_SETTINGS];
	const struct any_rw_ops *ops = read_spec(spec, settings, error, size);

	if (!ops)
		return NULL;
	if (!strncmp(ops->name, BRAVO, strlen(BRAVO)))
		w_process_tell(bravo_after_fork);
	/* Now: a sandbox that is entered later may not allow it. */
	if (setting_value(ops->name, "policy", settings, POLICY_NUMA) == POLICY_ROUTE)
		(void)w_route_position();
	ops = with_settings(ops, settings);
	if (!ops)
		(void)intern_full(error, size);
	return ops;
}

bool any_rw_check(const char *spec, char *error, size_t size)
{
	uint32_t settings[SPEC_SETTINGS];

	return read_spec(spec, settings, error, size);
}

const struct pound_lock_info *pound_rwlock_info(size_t index)
{
	return index < LOCKS ? info_of(&facts[index]) : NULL;
}
