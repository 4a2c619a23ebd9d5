/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ShflLock's hash table (SOSP'19 section 6.3; the benchmark is Triplett's, USENIX ATC'11): a fixed array of chains. A
 * writer moves an entry to a key that has none, so that their number stays what it was.
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

/* Makes a table of the keys 0, 2, 4, ..., so many as @entries. */
void hash_init(struct hash *hash, uint32_t buckets, uint32_t entries);

/* The value of @key into @value. False if it is not there. */
bool hash_look(const struct hash *hash, uint32_t key, uint64_t *value);

/* Gives the entry of @key the key @to. False, and nothing changed, if there is none or @to has one. */
bool hash_move(struct hash *hash, uint32_t key, uint32_t to);

/* What is wrong with the table; NULL if nothing is. */
const char *hash_check(const struct hash *hash);

#endif
