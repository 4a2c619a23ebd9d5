/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "info.h"

#include <string.h>

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

const struct pound_lock_info *info_of(const struct facts *facts, const struct setting *settings,
				      size_t count)
{
	struct {
		struct pound_lock_info info;
		char keys[64];
	} *own = (void *)w_block()->info;
	struct atomics atomics = atomics_of(facts->name);

	_Static_assert(sizeof(*own) <= sizeof(w_block()->info), "it has no room");
	spec_keys(facts->name, settings, count, own->keys, sizeof(own->keys));
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
