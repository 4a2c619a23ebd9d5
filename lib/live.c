/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "live.h"

#include <stdio.h>
#include <string.h>

#include "part/shuffle.h"
#include "settings.h"

#define PRESENT (UINT64_C(1) << 63)

/* A setting's bits of a word. */
struct field {
	uint32_t place, least, most, shift, bits;
};

#define FIELD(lock, key, otherwise, least, most, ...) \
	[lock##_##key##_place] = {lock##_##key##_place, least, most, SHIFT_##key, BITS_##key},
#define BITS_patience 30
#define BITS_batch 20
#define BITS_policy 8
#define BITS_spins 5
#define SHIFT_patience 0
#define SHIFT_batch (SHIFT_patience + BITS_patience)
#define SHIFT_policy (SHIFT_batch + BITS_batch)
#define SHIFT_spins (SHIFT_policy + BITS_policy)

static const struct field fields[] = {shfl_mutex_settings(FIELD)};

/*
 * The settings of the readers-writer locks are in the same places, and have the same ranges but for
 * policies that measure holds.
 */
#define SAME(key) ((int)shfl_rw_##key##_place == (int)shfl_mutex_##key##_place)
_Static_assert(SAME(patience) && SAME(policy) && SAME(batch) && SAME(spins), "as shfl_mutex");
#ifndef WITHOUT_shfl_ron
#define GATED(key) ((int)shfl_ron_##key##_place == (int)shfl_mutex_##key##_place)
_Static_assert(GATED(patience) && GATED(policy) && GATED(batch) && GATED(spins), "as shfl_mutex");
#endif
#ifndef WITHOUT_bravo_shfl_rw
#define BELOW(key) ((int)bravo_shfl_rw_##key##_place == (int)shfl_rw_##key##_place)
_Static_assert(BELOW(patience) && BELOW(policy) && BELOW(batch) && BELOW(spins), "as shfl_rw");
#endif

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

#define FITS(lock, key, otherwise, least, most, ...) \
	_Static_assert((most) < (1 << BITS_##key), #key " fits in its bits");

/* The word of @settings, in the places of shfl_mutex. */
static uint64_t word_of(const uint32_t *settings)
{
	uint64_t word = PRESENT;

	shfl_mutex_settings(FITS);
	for (size_t i = 0; i < FIELDS; i++)
		word |= (uint64_t)settings[fields[i].place] << fields[i].shift;
	return word;
}

uint64_t live_word(const struct any_ops *ops)
{
	return any_is_inlined(ops) ? word_of(ops->settings) : 0;
}

uint64_t live_rw_word(const struct any_rw_ops *ops)
{
	bool shuffles = !strcmp(ops->name, "shfl_rw") || !strcmp(ops->name, "bravo_shfl_rw");

	return shuffles && ops->wait == WAIT_PARK ? word_of(ops->settings) : 0;
}

bool live_settings(uint64_t word, uint32_t *settings)
{
	uint32_t read[FIELDS];

	if (!(word & PRESENT))
		return false;
	for (size_t i = 0; i < FIELDS; i++) {
		const struct field *field = &fields[i];
		uint32_t value = word >> field->shift & ((1u << field->bits) - 1);

		if (value < field->least || value > field->most)
			return false;
		read[i] = value;
		/* Of functions that measure every hold. */
		if (field->place == shfl_mutex_policy_place && policy_measures((enum policy)value))
			return false;
	}
	for (size_t i = 0; i < FIELDS; i++)
		settings[fields[i].place] = read[i];
	return true;
}

uint64_t live_word_of(const char *spec, char *error, size_t size)
{
	bool is_rw = any_rw_names(spec);
	const struct any_rw_ops *rw_ops = is_rw ? any_rw_find(spec, error, size) : NULL;
	const struct any_ops *ops = is_rw ? NULL : any_find(spec, error, size);
	uint64_t word = any_rw_is_default(rw_ops) ? live_rw_word(rw_ops) : live_word(ops);

	if (!word && (ops || rw_ops))
		(void)spec_wrong(
			error, size,
			"'%s': a lock that is used can change patience, policy, batch and spins of "
			"shfl_mutex, shfl_ron or shfl_rw; policies fair and occupancy, wait and "
			"other locks need a rule before it is initialised",
			spec);
	return word;
}

/* The length of the name of @policy, at @name. */
static int policy_name(uint32_t policy, const char **name)
{
	*name = POLICY_NAMES;
	for (; policy; policy--)
		*name += strcspn(*name, " ") + 1;
	return (int)strcspn(*name, " ");
}

bool live_text(uint64_t word, char *text)
{
	uint32_t settings[SPEC_SETTINGS];
	const char *name;
	int length;

	if (!live_settings(word, settings))
		return false;
	length = policy_name(settings[shfl_mutex_policy_place], &name);
	snprintf(text, LIVE_TEXT, "patience=%u,policy=%.*s,batch=%u,spins=%u",
		 settings[shfl_mutex_patience_place], length, name,
		 settings[shfl_mutex_batch_place], settings[shfl_mutex_spins_place]);
	return true;
}
