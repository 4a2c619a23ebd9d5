/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Boxes are cut from mapped chunks, in sizes of powers of two; those given back lie in a list for each size.
 *
 * A list is emptied by exchange and filled by compare-exchange from any value: neither depends on what the first box's
 * link was a moment ago, so there is no ABA.
 */
#include "box.h"

#include <string.h>

#include "world.h"

#define SMALLEST 6 /* of 2^6 bytes: a cache line */
#define SIZES 40
#define CHUNK ((size_t)1 << 16)

struct box {
	struct box *next;
};

static W_ATOMIC(struct box *) spare[SIZES];

/* The power of two that holds @size bytes. */
static unsigned size_class(size_t size)
{
	unsigned class = SMALLEST;

	while (((size_t)1 << class) < size)
		class ++;
	return class;
}

/* Puts the boxes from @first to @last, which are linked, into the list of @class. */
static void add(unsigned class, struct box *first, struct box *last)
{
	struct box *seen = atomic_load_explicit(&spare[class], memory_order_relaxed);

	do
		last->next = seen;
	/* release: pairs with the acquire in take(); the links, and the last user's accesses */
	while (!atomic_compare_exchange_weak_explicit(&spare[class], &seen, first, memory_order_release,
						      memory_order_relaxed));
}

/* A box of the list of @class, or NULL. */
static struct box *take(unsigned class)
{
	/* acquire: pairs with the release in add() */
	struct box *box = atomic_exchange_explicit(&spare[class], NULL, memory_order_acquire), *last;

	if (!box || !box->next)
		return box;
	for (last = box->next; last->next; last = last->next)
		;
	add(class, box->next, last);
	return box;
}

/* A box of fresh memory; the chunk's others go into the list. NULL if there is no memory. */
static struct box *cut(unsigned class)
{
	size_t size = (size_t)1 << class, chunk = size > CHUNK ? size : CHUNK;
	char *memory = w_keep(chunk);
	struct box *box;

	if (!memory || size >= chunk)
		return (struct box *)memory;
	for (size_t at = size; at < chunk; at += size) {
		box = (struct box *)(memory + at);
		box->next = at + size < chunk ? (struct box *)(memory + at + size) : NULL;
	}
	add(class, (struct box *)(memory + size), box);
	return (struct box *)memory;
}

void *box_get(size_t size)
{
	unsigned class = size_class(size);
	struct box *box;

	while (!(box = take(class)) && !(box = cut(class)))
		w_yield();
	return memset(box, 0, size);
}

void box_put(void *box, size_t size)
{
	add(size_class(size), box, box);
}
