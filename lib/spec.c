/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Specifications are read before the first lock, which may be an allocator's: nothing here
 * allocates.
 */
#include "spec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policies.h"
#include "policy/policy.h"

static const char *const way_names[SPEC_WAYS] = {
	[WAIT_SPIN] = "spin",
	[WAIT_YIELD] = "yield",
	[WAIT_PARK] = "park",
};
static const char way_choices[] = "spin yield park";

const char *spec_wait_name(enum wait wait)
{
	return way_names[wait];
}

bool spec_wrong(char *error, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (size)
		vsnprintf(error, size, format, arguments);
	va_end(arguments);
	return false;
}

static const char *const omitted[] = {
#define OMITTED_LOCK(name) #name,
#define OMITTED_RWLOCK(name) #name,
#include "locks.def"
	NULL,
};

bool spec_no_lock(const char *kind, const char *name, size_t length, char *error, size_t size)
{
	for (const char *const *lock = omitted; *lock; lock++)
		if (strlen(*lock) == length && !memcmp(*lock, name, length))
			return spec_wrong(error, size, "this build has no %s", *lock);
	return spec_wrong(error, size, "there is no %s '%.*s'", kind, (int)length, name);
}

const char *spec_split(const char *spec, size_t *length)
{
	*length = strcspn(spec, ",");
	return spec[*length] ? spec + *length + 1 : NULL;
}

/* Finds @value of @key among the space-separated @choices: its index. */
static bool parse_choice(const char *key, const char *value, const char *choices, uint32_t *number,
			 char *error, size_t size)
{
	char list[128];
	size_t length = strlen(value), used = 0;

	*number = 0;
	for (const char *choice = choices; *choice;
	     choice += strcspn(choice, " "), choice += *choice == ' ', ++*number)
		if (length && strcspn(choice, " ") == length && !memcmp(choice, value, length))
			return true;
	for (const char *c = choices; *c && used < sizeof(list) - 2; c++) {
		if (*c == ' ')
			list[used++] = ',';
		list[used++] = *c;
	}
	return spec_wrong(error, size, "%s=%s: not one of %.*s", key, value, (int)used, list);
}

static bool parse_number(const struct setting *setting, const char *value, uint32_t *number,
			 char *error, size_t size)
{
	unsigned long long parsed = 0;
	const char *digit;

	for (digit = value; *digit >= '0' && *digit <= '9' && parsed <= UINT32_MAX; digit++)
		parsed = parsed * 10 + (unsigned long long)(*digit - '0');
	if (digit == value || *digit || parsed < setting->least || parsed > setting->most)
		return spec_wrong(error, size, "%s=%s: not a number from %u to %u", setting->key,
				  value, setting->least, setting->most);
	*number = (uint32_t)parsed;
	return true;
}

static bool parse(const struct setting *setting, const char *value, uint32_t *number, char *error,
		  size_t size)
{
	/* The program's own policies follow all others. */
	if (!strcmp(setting->key, "policy") && setting->most == POLICY_OWN - 1 &&
	    policies_find(value, number))
		return true;
	if (*setting->choices)
		return parse_choice(setting->key, value, setting->choices, number, error, size);
	return parse_number(setting, value, number, error, size);
}

/* The lock whose specification is parsed, and where the results go. */
struct target {
	const char *lock;
	const struct setting *settings;
	size_t count;
	uint32_t wait;
	uint32_t *values;
	char *error;
	size_t size;
};

/* Parses one "key=value". */
static bool parse_pair(struct target *target, char *pair)
{
	char *value = strchr(pair, '=');

	if (!value)
		return spec_wrong(target->error, target->size, "'%s' of lock %s is not key=value",
				  pair, target->lock);
	*value++ = 0;
	if (!strcmp(pair, "wait"))
		return parse_choice(pair, value, way_choices, &target->wait, target->error,
				    target->size);
	for (size_t i = 0; i < target->count; i++) {
		const struct setting *setting = &target->settings[i];

		if (!strcmp(target->lock, setting->lock) && !strcmp(pair, setting->key))
			return parse(setting, value, &target->values[setting->place], target->error,
				     target->size);
	}
	return spec_wrong(target->error, target->size, "lock %s has no key '%s'", target->lock,
			  pair);
}

bool spec_parse(const char *lock, const char *pairs, const struct setting *settings, size_t count,
		enum wait *wait, uint32_t *values, char *error, size_t size)
{
	struct target target = {lock, settings, count, *wait, values, error, size};
	char copy[256];

	if (!pairs)
		return true;
	if (strlen(pairs) >= sizeof(copy))
		return spec_wrong(error, size, "'%.32s...' is too long for lock %s", pairs, lock);
	strcpy(copy, pairs);
	for (char *pair = copy, *rest; pair; pair = rest) {
		rest = strchr(pair, ',');
		if (rest)
			*rest++ = 0;
		if (!parse_pair(&target, pair))
			return false;
	}
	*wait = (enum wait)target.wait;
	return true;
}

void spec_keys(const char *lock, const struct setting *settings, size_t count, char *keys,
	       size_t size)
{
	size_t used = (size_t)snprintf(keys, size, "wait");

	for (size_t i = 0; i < count; i++)
		if (!strcmp(lock, settings[i].lock))
			used += (size_t)snprintf(keys + used, size - used, ",%s", settings[i].key);
}
