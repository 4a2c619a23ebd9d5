/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "info.h"

#include <string.h>

#include "settings.h"

static const struct atomics {
	const char *lock;
	double reading, alone, contended;
} atomics[] = {
#define ATOMICS(lock, alone, contended) {#lock, __builtin_nan(""), alone, contended},
#define RW_ATOMICS(lock, reading, writing, contended) {#lock, reading, writing, contended},
#include "atomics.def"
};

static struct atomics atomics_of(const char *lock)
{
	const double unknown = __builtin_nan("");

	for (size_t i = 0; i < sizeof(atomics) / sizeof(atomics[0]); i++)
		if (!strcmp(atomics[i].lock, lock))
			return atomics[i];
	return (struct atomics){lock, unknown, unknown, unknown};
}

/* The calling thread's results. */
struct results {
	struct pound_lock_info info;
	char keys[64];
	struct pound_setting setting;
};

static struct results *own_results(void)
{
	_Static_assert(sizeof(struct results) <= sizeof(w_block()->info), "it has no room");
	return (void *)w_block()->info;
}

const struct pound_lock_info *info_of(const struct facts *facts)
{
	struct results *own = own_results();
	struct atomics atomics = atomics_of(facts->name);

	spec_keys(facts->name, all_settings, SETTINGS, own->keys, sizeof(own->keys));
	own->info = (struct pound_lock_info){
		.name = facts->name,
		.wait = spec_wait_name(facts->wait),
		.promise = facts->promise,
		.paper = facts->paper,
		.keys = own->keys,
		.boxed = facts->box,
		.bytes_per_lock = facts->bytes_lock + (facts->box ? facts->box() : 0),
		.bytes_per_waiter = facts->bytes_waiter,
		.bytes_per_holder = facts->bytes_holder,
		.atomics_alone = atomics.alone,
		.atomics_contended = atomics.contended,
		.atomics_reading = atomics.reading,
	};
	return &own->info;
}

/* The @index-th setting of @lock; NULL past the last. */
static const struct setting *setting_of(const char *lock, size_t index)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (!strcmp(all_settings[i].lock, lock) && !index--)
			return &all_settings[i];
	return NULL;
}

const struct pound_setting *pound_lock_setting(const char *lock, size_t index)
{
	const struct setting *setting = setting_of(lock, index);
	struct pound_setting *result;

	if (!setting)
		return NULL;
	result = &own_results()->setting;
	*result = (struct pound_setting){
		.key = setting->key,
		.choices = setting->choices,
		.by_default = setting->otherwise,
		.least = setting->least,
		.most = setting->most,
	};
	return result;
}
