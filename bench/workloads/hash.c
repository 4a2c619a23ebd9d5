/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hash.h"

/* The entries follow the chains and start at a cache line. */
static size_t nodes_at(uint32_t buckets)
{
	size_t end = sizeof(struct hash) + buckets * sizeof(struct hash_node *);

	return (end + 63) / 64 * 64;
}

size_t hash_size(uint32_t buckets, uint32_t entries)
{
	return nodes_at(buckets) + entries * sizeof(struct hash_node);
}

/* The chain of @key, by a multiplicative hash, which separates neighbouring keys. */
static uint32_t chain_of(const struct hash *hash, uint32_t key)
{
	return (uint32_t)((uint64_t)(key * UINT32_C(2654435769)) * hash->buckets >> 32);
}

static void push(struct hash *hash, struct hash_node *node, uint32_t key)
{
	struct hash_node **chain = &hash->chains[chain_of(hash, key)];

	node->key = key;
	node->next = *chain;
	*chain = node;
}

void hash_init(struct hash *hash, uint32_t buckets, uint32_t entries)
{
	hash->nodes = (struct hash_node *)((char *)hash + nodes_at(buckets));
	hash->buckets = buckets;
	hash->entries = entries;
	for (uint32_t i = 0; i < buckets; i++)
		hash->chains[i] = NULL;
	for (uint32_t i = 0; i < entries; i++)
		push(hash, &hash->nodes[i], 2 * i);
}

bool hash_look(const struct hash *hash, uint32_t key, uint64_t *value)
{
	const struct hash_node *node = hash->chains[chain_of(hash, key)];

	while (node && node->key != key)
		node = node->next;
	if (node)
		*value = node->value;
	return node;
}

bool hash_move(struct hash *hash, uint32_t key, uint32_t to)
{
	struct hash_node **link = &hash->chains[chain_of(hash, key)], *node;
	uint64_t value;

	while (*link && (*link)->key != key)
		link = &(*link)->next;
	node = *link;
	if (!node || hash_look(hash, to, &value))
		return false;
	*link = node->next;
	node->value++;
	push(hash, node, to);
	return true;
}

const char *hash_check(const struct hash *hash)
{
	uint64_t found = 0;
	uint64_t value;

	for (uint32_t i = 0; i < hash->buckets; i++) {
		for (const struct hash_node *node = hash->chains[i]; node; node = node->next) {
			if (chain_of(hash, node->key) != i)
				return "an entry is in the wrong chain";
			if (++found > hash->entries)
				return "a chain has a loop, or an entry is in two";
			if (!hash_look(hash, node->key, &value) || value != node->value)
				return "two entries have one key";
		}
	}
	return found == hash->entries ? NULL : "entries were lost";
}
