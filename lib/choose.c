/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* From a specification, NAME[,KEY=VALUE...], to the lock that it names. */
#include "any.h"

#include <string.h>

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

static const char *const omitted[] = {
#define OMITTED_LOCK(name) #name,
#include "locks.def"
	NULL,
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
	return spec_no_lock("lock", omitted, name, length, error, size);
}

/*
 * False if the settings @given ask for the program's own policy, and the program has registered
 * none.
 */
static bool own_policy_exists(const struct given *given)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (given[i].named && given[i].number == POLICY_OWN &&
		    !strcmp(all_settings[i].key, "policy"))
			return atomic_load(&w_own_policy);
	return true;
}

/*
 * Reads @spec: the lock's index, its way of waiting, and the settings @given. False if it is wrong;
 * @error says why.
 */
static bool read_spec(const char *spec, size_t *lock, enum wait *wait, struct given *given,
		      char *error, size_t size)
{
	size_t length;
	const char *pairs = spec_split(spec, &length);
	const struct facts *facts;

	if (!find_lock(spec, length, lock, error, size))
		return false;
	facts = any_facts(*lock);
	*wait = facts->wait;
	if (!spec_parse(facts->name, pairs, all_settings, SETTINGS, wait, given, error, size))
		return false;
	return own_policy_exists(given) ||
	       spec_wrong(error, size,
			  "policy=own: the program has registered no policy (pound_policy_use)");
}

/*
 * Reads the route now if the lock @name will need it: a sandbox that is entered later may not allow
 * it.
 */
static void read_route(const char *name)
{
	bool needed = !strncmp(name, "ron", strlen("ron"));

	for (size_t i = 0; i < SETTINGS; i++)
		if (!strcmp(all_settings[i].lock, name) && !strcmp(all_settings[i].key, "policy"))
			needed = spec_value(all_settings[i].value) == POLICY_ROUTE;
	if (needed)
		(void)w_route_position();
}

const struct any_ops *any_find(const char *spec, char *error, size_t size)
{
	struct given given[SETTINGS];
	enum wait wait;
	size_t lock;

	if (!read_spec(spec, &lock, &wait, given, error, size))
		return NULL;
	spec_set(all_settings, SETTINGS, given);
	read_route(any_facts(lock)->name);
	return any_ops_now(lock, wait);
}

bool any_check(const char *spec, char *error, size_t size)
{
	struct given given[SETTINGS];
	enum wait wait;
	size_t lock;

	return read_spec(spec, &lock, &wait, given, error, size);
}

const struct pound_lock_info *pound_lock_info(size_t index)
{
	const struct facts *facts = any_facts(index);

	return facts ? info_of(facts, all_settings, SETTINGS) : NULL;
}
