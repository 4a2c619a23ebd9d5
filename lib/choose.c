/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* From a specification, NAME[,KEY=VALUE...], to the lock that it names. */
#include "any.h"

#include <string.h>

#include "intern.h"
#include "policies.h"
#include "poundlock.h"
#include "route.h"
#include "settings.h"
#include "tables.h"

static const struct {
	const char *name, *lock;
} aliases[] = {
#define ALIAS(name, lock) {#name, #lock},
#include "locks.def"
};

static bool is_name(const char *lock, const char *name, size_t length)
{
	return strlen(lock) == length && !memcmp(lock, name, length);
}

/* The lock's own name if @name, of @length bytes, is an alias; otherwise @name. */
static const char *resolve_alias(const char *name, size_t *length)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (is_name(aliases[i].name, name, *length)) {
			*length = strlen(aliases[i].lock);
			return aliases[i].lock;
		}
	return name;
}

/* Finds the index of the lock called @name, of @length bytes. False if there is none: @error. */
static bool find_lock(const char *name, size_t length, size_t *lock, char *error, size_t size)
{
	const struct facts *facts;

	name = resolve_alias(name, &length);
	for (*lock = 0; (facts = any_facts(*lock)); ++*lock)
		if (is_name(facts->name, name, length))
			return true;
	return spec_no_lock("lock", name, length, error, size);
}

/* A lock as a specification describes it. */
struct choice {
	size_t lock;
	enum wait wait;
	uint32_t settings[SPEC_SETTINGS];
};

static enum policy policy_of(const char *name, const uint32_t *settings)
{
	return (enum policy)setting_value(name, "policy", settings, POLICY_NUMA);
}

/* Reads @spec. False if it is wrong; @error says why. */
static bool read_spec(const char *spec, struct choice *choice, char *error, size_t size)
{
	size_t length;
	const char *pairs = spec_split(spec, &length);
	const struct facts *facts;

	if (!find_lock(spec, length, &choice->lock, error, size))
		return false;
	facts = any_facts(choice->lock);
	choice->wait = facts->wait;
	memcpy(choice->settings, any_defaults(choice->lock), sizeof(choice->settings));
	return spec_parse(facts->name, pairs, all_settings, SETTINGS, &choice->wait,
			  choice->settings, error, size);
}

bool any_route_waits;

/* Whether a lock was chosen whose waiters may need the route, which was not read. */
static W_ATOMIC(bool) route_due;

void any_read_route(void)
{
	if (atomic_load(&route_due))
		(void)w_route_position();
}

/*
 * Reads the route now if the lock will need it, unless that can wait: a sandbox that is entered
 * later may not allow it.
 */
static void read_route(const struct choice *choice)
{
	const char *name = any_facts(choice->lock)->name;
	const bool by_route = policy_of(name, choice->settings) == POLICY_ROUTE;

	if (any_route_waits && !by_route && !strcmp(name, "shfl_ron"))
		atomic_store(&route_due, true);
	else if (by_route || strstr(name, "ron")) /* ron*, shfl_ron */
		(void)w_route_position();
}

const struct any_ops *any_find(const char *spec, char *error, size_t size)
{
	const struct any_ops *ops;
	struct choice choice;

	if (!read_spec(spec, &choice, error, size))
		return NULL;
	read_route(&choice);
	ops = any_ops_for(choice.lock, choice.wait, choice.settings);
	if (!ops)
		(void)intern_full(error, size);
	return ops;
}

bool any_hold(const struct any_ops *ops, char *error, size_t size)
{
	return policies_hold(policy_of(ops->name, ops->settings)) ||
	       spec_wrong(error, size, "another thread has removed or replaced the policy");
}

void any_drop(const struct any_ops *ops)
{
	policies_drop(policy_of(ops->name, ops->settings));
}

bool any_check(const char *spec, char *error, size_t size)
{
	struct choice choice;

	return read_spec(spec, &choice, error, size);
}

const struct pound_lock_info *pound_lock_info(size_t index)
{
	const struct facts *facts = any_facts(index);

	return facts ? info_of(facts) : NULL;
}
