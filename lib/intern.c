/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A list that grows only, at its front. A thread fills a block before it links it. If another
 * thread has interned the same table meanwhile, the block is left for the next one.
 */
#include "intern.h"

#include <string.h>

#include "spec.h"

/* Finds @table in the list from @first to before @end (NULL: all). NULL: it is not there. */
static const void *find(const struct intern *tables, struct interned *first,
			const struct interned *end, const void *table)
{
	/* relaxed: the acquire of the first one has ordered all of them */
	for (struct interned *at = first; at != end;
	     at = atomic_load_explicit(&at->next, memory_order_relaxed))
		if (!memcmp(at + 1, table, tables->size))
			return at + 1;
	return NULL;
}

/* Returns a block that no other thread uses. NULL: there is none. */
static struct interned *take(struct intern *tables)
{
	/* acquire: pairs with the release in leave() */
	struct interned *spare =
		atomic_exchange_explicit(&tables->spare, NULL, memory_order_acquire);
	/* relaxed, both: the number orders nothing else */
	uint32_t index = atomic_load_explicit(&tables->used, memory_order_relaxed);

	if (spare)
		return spare;
	do
		if (index == tables->most)
			return NULL;
	while (!atomic_compare_exchange_weak_explicit(&tables->used, &index, index + 1,
						      memory_order_relaxed, memory_order_relaxed));
	return (struct interned *)((char *)tables->memory + index * tables->stride);
}

/* Leaves @block to the next take(). One that was left before is lost. */
static void leave(struct intern *tables, struct interned *block)
{
	/* release: pairs with the acquire in take(); our writes to it */
	atomic_store_explicit(&tables->spare, block, memory_order_release);
}

const void *intern(struct intern *tables, const void *table)
{
	/* acquire, all: pair with the release below; the tables in the list */
	struct interned *first = atomic_load_explicit(&tables->first, memory_order_acquire);
	const void *found = find(tables, first, NULL, table);
	struct interned *block, *searched;

	if (found)
		return found;
	block = take(tables);
	if (!block)
		return NULL;
	memcpy(block + 1, table, tables->size);
	do {
		searched = first;
		/* relaxed: published by the release below */
		atomic_store_explicit(&block->next, first, memory_order_relaxed);
		/* release: pairs with the acquires; our table */
		if (atomic_compare_exchange_strong_explicit(&tables->first, &first, block,
							    memory_order_acq_rel,
							    memory_order_acquire))
			return block + 1;
		found = find(tables, first, searched, table);
	} while (!found);
	leave(tables, block);
	return found;
}

bool intern_full(char *error, size_t size)
{
	return spec_wrong(error, size, "the process has used %d other specifications, the most",
			  INTERN_MOST);
}
