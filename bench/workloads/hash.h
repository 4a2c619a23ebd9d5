/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ShflLock's hash table (SOSP'19 section 6.3; the benchmark is Triplett's, USENIX ATC'11): a fixed
 * array of chains. A writer moves an entry to an absent key, so that their number is constant.
 */
#ifndef BENCH_HASH_H
#define BENCH_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_node {
	_Alignas(64) struct hash_node *next;
	uint64_t value;
	uint32_t key;
};

struct hash {
	_Alignas(64) struct hash_node *nodes;
	uint32_t buckets;
	uint32_t entries;
	struct hash_node *chains[];
};

size_t hash_size(uint32_t buckets, uint32_t entries);

/* Makes a table of @entries keys: 0, 2, 4, ... */
void hash_init(struct hash *hash, uint32_t buckets, uint32_t entries);

/* Copies the value of @key to @value. False if it is absent. */
bool hash_look(const struct hash *hash, uint32_t key, uint64_t *value);

/*
 * Changes the key of entry @key to @to. False, without a change, if @key is absent or @to is
 * present.
 */
bool hash_move(struct hash *hash, uint32_t key, uint32_t to);

/* Checks the table. Returns the violated invariant, or NULL. */
const char *hash_check(const struct hash *hash);

#endif
