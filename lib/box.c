/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The sizes of boxes are powers of two. Boxes of a size are numbered. A number is looked up in two
 * steps: tables of 1, 2, 4, ... chunks lead to the chunk that contains the box. Chunks and tables
 * are mapped when they are needed first.
 *
 * Free boxes are a stack for each size:
 *
 *   spare = how often it has changed << 32 | the topmost box's number + 1, or 0
 *
 * While a thread reads a box's link, another one may take the box, use it and give it back. The
 * count has changed then, and the compare-exchange fails. A thread that ends or is not copied by a
 * fork in the middle of a function loses at most one box.
 */
#include "box.h"

#include <string.h>
#include <sys/mman.h>

#define SIZES 40
#define TABLES 32
#define CHUNK ((size_t)1 << 16)

static W_ATOMIC(uint64_t) spare[SIZES];
static W_ATOMIC(uint32_t) made[SIZES]; /* how many boxes there are */
static W_ATOMIC(void *) tables[SIZES][TABLES];

/* The power of two that holds a box of @size bytes. */
static unsigned size_class_of(size_t size)
{
	return 64 - (unsigned)__builtin_clzll(size + BOX_HEADER - 1);
}

/* The @bytes of zeroed memory at *@place, mapped if there are none yet. NULL: no memory. */
static void *settle(W_ATOMIC(void *) *place, size_t bytes)
{
	/* acquire: pairs with the release below */
	void *seen = atomic_load_explicit(place, memory_order_acquire), *mapped, *settled;

	if (w_likely(seen))
		return seen;
	mapped = w_map(bytes);
	settled = mapped ? mapped : w_keep(bytes);
	/*
	 * release: pairs with the acquire above; what a table's memory begins with. acquire: as
	 * there
	 */
	if (!settled ||
	    atomic_compare_exchange_strong_explicit(place, &seen, settled, memory_order_acq_rel,
						    memory_order_acquire))
		return settled;
	if (mapped)
		munmap(mapped, bytes);
	return seen;
}

/* The box @number. NULL: no memory. */
static struct box *box_at(unsigned size_class, uint32_t number)
{
	const size_t bytes = (size_t)1 << size_class, chunk_bytes = bytes > CHUNK ? bytes : CHUNK;
	const uint32_t of_chunk = (uint32_t)(chunk_bytes / bytes), chunk = number / of_chunk + 1;
	const unsigned table = 31 - (unsigned)__builtin_clz(chunk);
	W_ATOMIC(void *) *chunks = settle(&tables[size_class][table], sizeof(*chunks) << table);
	char *memory = chunks ? settle(&chunks[chunk - (1u << table)], chunk_bytes) : NULL;

	return memory ? (struct box *)(memory + number % of_chunk * bytes) : NULL;
}

/* Pops a free box. NULL if there is none. */
static struct box *take(unsigned size_class)
{
	/* acquire, both: pairs with the release in box_put(); the last user's accesses */
	uint64_t head = atomic_load_explicit(&spare[size_class], memory_order_acquire), next;
	struct box *box;

	do {
		if (!(uint32_t)head)
			return NULL;
		box = box_at(size_class, (uint32_t)head - 1);
		/* relaxed: if the box has left the stack, the head has changed */
		next = atomic_load_explicit(&box->next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(&spare[size_class], &head,
							((head >> 32) + 1) << 32 | next,
							memory_order_acquire,
							memory_order_acquire));
	return box;
}

/* Makes a box. NULL if there is no memory, or if another thread made one first. */
static struct box *make(unsigned size_class)
{
	/* relaxed, both: the number orders nothing else */
	uint32_t number = atomic_load_explicit(&made[size_class], memory_order_relaxed);
	struct box *box = box_at(size_class, number);

	if (!box) {
		w_yield();
		return NULL;
	}
	if (!atomic_compare_exchange_strong_explicit(&made[size_class], &number, number + 1,
						     memory_order_relaxed, memory_order_relaxed))
		return NULL;
	box->number = number;
	box->size_class = size_class;
	return box;
}

void *box_get(size_t size, const void *owner)
{
	const unsigned size_class = size_class_of(size);
	struct box *box;
	char *memory;

	while (!(box = take(size_class)) && !(box = make(size_class)))
		;
	/* relaxed: a thread that finds the box through its owner has acquired its contents */
	atomic_store_explicit(&box->owner, owner, memory_order_relaxed);
	memory = (char *)box + BOX_HEADER;
	return memset(memory, 0, size);
}

void box_put(void *memory)
{
	struct box *box = (struct box *)((char *)memory - BOX_HEADER);
	W_ATOMIC(uint64_t) *head = &spare[box->size_class];
	/* relaxed: the compare-exchange decides */
	uint64_t seen = atomic_load_explicit(head, memory_order_relaxed);

	/* relaxed: as in box_owner() */
	atomic_store_explicit(&box->owner, NULL, memory_order_relaxed);
	do
		/* relaxed: the compare-exchange publishes it */
		atomic_store_explicit(&box->next, (uint32_t)seen, memory_order_relaxed);
	/* release: pairs with the acquire in take(); the link, and the last user's accesses */
	while (!atomic_compare_exchange_weak_explicit(head, &seen,
						      ((seen >> 32) + 1) << 32 | (box->number + 1),
						      memory_order_release, memory_order_relaxed));
}
