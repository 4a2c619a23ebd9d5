/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "section.h"

#include "hash.h"
#include "map.h"

#define OF 10000 /* the unit of section_settings.writes */

/* The initial number of entries. */
static uint32_t half(const struct section_settings *settings)
{
	return settings->keys / 2;
}

size_t section_size(const struct section_settings *settings)
{
	size_t size = 0;

	switch ((enum section_kind)settings->kind) {
	case SECTION_NONE:
		break;
	case SECTION_WORDS:
		size = settings->words * sizeof(uint32_t);
		break;
	case SECTION_MAP:
		size = map_size(settings->keys);
		break;
	case SECTION_HASH:
		size = hash_size(settings->buckets, half(settings));
		break;
	}
	return size / SECTION_LINE * SECTION_LINE + SECTION_LINE;
}

/* Inserts in random order, so that the tree has its typical shape. */
static void fill_map(struct map *map, uint32_t keys, uint32_t entries, uint64_t seed)
{
	map_init(map, keys);
	for (uint32_t i = 0; i < entries;) {
		uint32_t key = section_below(&seed, keys);

		i += map_insert(map, key, key);
	}
}

void section_fill(const struct section_settings *settings, void *data, uint64_t seed)
{
	if (settings->kind == SECTION_MAP)
		fill_map(data, settings->keys, half(settings), seed | 1);
	else if (settings->kind == SECTION_HASH)
		hash_init(data, settings->buckets, half(settings));
}

struct section_operation section_draw(const struct section_settings *settings, uint64_t *random)
{
	struct section_operation operation = {.verb = SECTION_INCREMENT};

	if (settings->kind != SECTION_MAP && settings->kind != SECTION_HASH)
		return operation;
	operation.key = section_below(random, settings->keys);
	operation.verb = SECTION_LOOK;
	if (section_below(random, OF) >= settings->writes)
		return operation;
	if (settings->kind == SECTION_HASH) {
		operation.verb = SECTION_MOVE;
		operation.to = section_below(random, settings->keys);
	} else {
		operation.verb = section_random(random) >> 63 ? SECTION_INSERT : SECTION_REMOVE;
	}
	return operation;
}

uint64_t section_vary(uint64_t length, double spread, uint64_t *random)
{
	uint64_t most = (uint64_t)((double)length * spread);

	return most ? length - most + section_random(random) % (2 * most + 1) : length;
}

/* Prevents the elimination of a load whose value is unused. */
static void use(uint64_t value)
{
	__asm__ volatile("" : : "r"(value));
}

/* Element by element like the paper's loop, not vectorised. */
static void increment(uint32_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		words[i]++;
		__asm__ volatile("" : : : "memory");
	}
}

int section_do(const struct section_settings *settings, void *data,
	       struct section_operation operation)
{
	uint64_t value = 0;

	switch (settings->kind * 8 + operation.verb) {
	case SECTION_WORDS * 8 + SECTION_INCREMENT:
		increment(data, settings->words);
		return 0;
	case SECTION_MAP * 8 + SECTION_LOOK:
		use(map_look(data, operation.key, &value) + value);
		return 0;
	case SECTION_MAP * 8 + SECTION_INSERT:
		return map_insert(data, operation.key, operation.key);
	case SECTION_MAP * 8 + SECTION_REMOVE:
		return -map_remove(data, operation.key);
	case SECTION_HASH * 8 + SECTION_LOOK:
		use(hash_look(data, operation.key, &value) + value);
		return 0;
	case SECTION_HASH * 8 + SECTION_MOVE:
		use(hash_move(data, operation.key, operation.to));
		return 0;
	default:
		return 0;
	}
}

static const char *check_words(const uint32_t *words, uint32_t count, uint64_t operations)
{
	for (uint32_t i = 0; i < count; i++)
		if (words[i] != (uint32_t)operations)
			return "an element has lost increments";
	return NULL;
}

const char *section_check(const struct section_settings *settings, const void *data,
			  uint64_t operations, int64_t net)
{
	switch ((enum section_kind)settings->kind) {
	case SECTION_WORDS:
		return check_words(data, settings->words, operations);
	case SECTION_MAP:
		return map_check(data, settings->keys, (uint64_t)((int64_t)half(settings) + net));
	case SECTION_HASH:
		return hash_check(data);
	case SECTION_NONE:
		break;
	}
	return NULL;
}
