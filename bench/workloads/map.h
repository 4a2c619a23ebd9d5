/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CNA's key-value map (EuroSys'19 section 7.1.1): an AVL tree of 4-byte keys with 8-byte values.
 * Every node is a cache line of an array with a node per possible key, so that nothing is allocated
 * under the lock. Free nodes form a stack.
 */
#ifndef BENCH_MAP_H
#define BENCH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_node {
	_Alignas(64) struct map_node *child[2]; /* smaller, larger; if free: next free, - */
	uint64_t value;
	uint32_t key;
	int32_t height; /* of its subtree: 1 for a leaf */
};

struct map {
	_Alignas(64) struct map_node *root;
	struct map_node *free;
	struct map_node nodes[];
};

/* An AVL tree of 2^32 nodes is at most 46 high. */
#define MAP_HEIGHT 48

size_t map_size(uint32_t keys);
void map_init(struct map *map, uint32_t keys);

/* Copies the value of @key to @value. False if it is absent. */
bool map_look(const struct map *map, uint32_t key, uint64_t *value);

/* Adds @key with @value, or updates its value. Returns whether it was added. */
bool map_insert(struct map *map, uint32_t key, uint64_t value);

/* Removes @key. Returns whether it was present. */
bool map_remove(struct map *map, uint32_t key);

/*
 * Checks a map of @keys possible keys with @entries present. Returns the violated invariant, or
 * NULL.
 */
const char *map_check(const struct map *map, uint32_t keys, uint64_t entries);

#endif
