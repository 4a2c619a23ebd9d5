/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Items of locks, by a hash table of indices: open addressing, and nothing is ever removed. */
#include "item.h"

#include <string.h>

#include "hash.h"
#include "names.h"
#include "row.h"

#define PROBES 64u
#define SPARE (STATS_LOCKS_MOST / 4) /* items kept for contended locks */
#define LIVES_APART 8                /* locks in turn at one address that have items of their own */
#define SLOTS_BITS 15
_Static_assert(STATS_LOCK_SLOTS == 1u << SLOTS_BITS, "a hash is a slot");

/* Called after the item, or after the name, is published. */
static void copy_name(struct stats_lock *item)
{
	char name[NAME_SIZE];
	uint32_t words[STATS_NAME_WORDS];

	_Static_assert(sizeof(name) == sizeof(words), "a name fits");
	/*
	 * seq_cst: between a thread that makes the item and one that names the lock. One of them
	 * sees what the other has published.
	 */
	w_fence_seq_cst();
	(void)names_find((const void *)(uintptr_t)(item->address & ~(uint64_t)STATS_READERS), name);
	memcpy(words, name, sizeof(words));
	for (uint32_t i = 0; i < STATS_NAME_WORDS; i++)
		w_store_relaxed(&item->name[i], words[i]);
}

static uint32_t add(uint64_t key, bool readers_writer, bool contended)
{
	uint32_t index;
	struct stats_lock *item = stats_take(STATS_LOCKS, contended ? 0 : SPARE, &index);

	if (!item)
		return 0;
	item->address = key;
	item->kind = readers_writer ? STATS_READERS_WRITER : 0;
	item->lives = 1;
	stats_module_note(key);
	/* release: pairs with the acquire in stats_item_of(); the rest of the item */
	w_store_release(&item->key, key);
	return index;
}

uint32_t stats_item_of(uint64_t key, bool readers_writer, bool contended)
{
	uint32_t start = address_hash(key, SLOTS_BITS), ours = 0, seen;

	for (uint32_t i = 0; i < PROBES; i++) {
		W_ATOMIC(uint32_t) *slot = &stats_private->locks[(start + i) % STATS_LOCK_SLOTS];

		/* acquire: pairs with the release of the compare-exchange */
		seen = w_load_acquire(slot);
		if (!seen) {
			ours = ours ? ours : add(key, readers_writer, contended);
			if (!ours)
				break;
			if (w_compare_exchange_release(slot, &seen, ours + 1)) {
				copy_name(stats_lock_item(ours));
				return ours;
			}
		}
		/* acquire: pairs with the release in add() */
		if (w_load_acquire(&stats_lock_item(seen - 1)->key) == key)
			break;
		seen = 0;
	}
	if (ours) /* another thread was faster */
		w_store_relaxed(&stats_lock_item(ours)->key, 0);
	if (seen)
		return seen - 1;
	(void)w_fetch_add_relaxed(&stats_region->locks_unobserved, 1);
	return 0;
}

void stats_item_name(uint64_t key)
{
	uint32_t start = address_hash(key, SLOTS_BITS), seen;

	/* seq_cst: as in copy_name() */
	w_fence_seq_cst();
	for (uint32_t i = 0; i < PROBES; i++) {
		seen = w_load_acquire(&stats_private->locks[(start + i) % STATS_LOCK_SLOTS]);
		if (!seen)
			return;
		if (w_load_acquire(&stats_lock_item(seen - 1)->key) == key) {
			copy_name(stats_lock_item(seen - 1));
			return;
		}
	}
}

void stats_item_end(uint64_t key)
{
	uint32_t start = address_hash(key, SLOTS_BITS), seen, lives = 0;
	struct stats_lock *item;

	for (uint32_t i = 0; i < PROBES; i++) {
		seen = w_load_acquire(&stats_private->locks[(start + i) % STATS_LOCK_SLOTS]);
		if (!seen)
			return;
		item = stats_lock_item(seen - 1);
		lives += item->address == key;
		if (w_load_acquire(&item->key) != key)
			continue;
		/* Never contended, and without a name. */
		if (!w_load_relaxed(&item->stack) && !w_load_relaxed(&item->name[0]))
			return;
		if (lives < LIVES_APART) {
			w_store_relaxed(&item->key, 0);
			stats_rows_end(key);
		} else {
			item->lives++;
		}
		return;
	}
}
