/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A hash table with open addressing. A slot belongs to a lock's address; its version is odd while
 * it has no whole name:
 *
 *   FREE or REMOVED -> lock     taken, with an odd version (or 0, and an empty name)
 *   version odd     -> even     named
 *   version even    -> odd      before the name changes, or is removed
 *   lock            -> REMOVED
 *
 * A thread that reads a name meanwhile, or in a child that was forked meanwhile, finds none.
 */
#include "names.h"

#include <string.h>

#define SLOTS_BITS 12
#define SLOTS (1u << SLOTS_BITS)
#define PROBES 64u
#define WORDS (NAME_SIZE / sizeof(uint64_t))

#define FREE 0u
#define REMOVED 1u

struct slot {
	W_ATOMIC(uint64_t) lock;
	W_ATOMIC(uint32_t) version;
	W_ATOMIC(uint64_t) words[WORDS];
};

static struct slot slots[SLOTS];
static W_ATOMIC(uint32_t) used; /* 0: no lock was ever named */

static struct slot *slot_at(uint64_t lock, uint32_t probe)
{
	return &slots[((lock * 0x9e3779b97f4a7c15 >> (64 - SLOTS_BITS)) + probe) % SLOTS];
}

/* NULL: @lock has none. */
static struct slot *slot_of(uint64_t lock)
{
	uint64_t seen = REMOVED;

	for (uint32_t i = 0; i < PROBES && seen != FREE; i++) {
		/* acquire: pairs with the release in take(); the version */
		seen = w_load_acquire(&slot_at(lock, i)->lock);
		if (seen == lock)
			return slot_at(lock, i);
	}
	return NULL;
}

/* Returns a slot that is now the one of @lock. NULL: there is no room. */
static struct slot *take(uint64_t lock)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		struct slot *slot = slot_at(lock, i);
		uint64_t seen = w_load_relaxed(&slot->lock);

		/* acq_rel: pairs with slot_of(), and with the release in remove_name() */
		if (seen <= REMOVED && w_compare_exchange_acq_rel(&slot->lock, &seen, lock))
			return slot;
	}
	return NULL;
}

/* Makes the version odd, before what the caller writes next. */
static void begin_change(struct slot *slot)
{
	w_store_relaxed(&slot->version, w_load_relaxed(&slot->version) | 1);
	/* seq_cst: pairs with the fence in names_find(), which reads the version after the words */
	w_fence_seq_cst();
}

static void write_name(struct slot *slot, const char *name)
{
	uint64_t words[WORDS] = {0};
	char *text = (char *)words;

	for (size_t i = 0; i < NAME_SIZE - 1 && name[i]; i++)
		text[i] = (unsigned char)name[i] < ' ' || name[i] == 0x7f ? '?' : name[i];
	begin_change(slot);
	for (size_t i = 0; i < WORDS; i++)
		w_store_relaxed(&slot->words[i], words[i]);
	/* release: pairs with the acquire in names_find(); the words */
	w_store_release(&slot->version, w_load_relaxed(&slot->version) + 1);
}

static void remove_name(struct slot *slot)
{
	begin_change(slot);
	/* release: pairs with the acquire in take(); the odd version */
	w_store_release(&slot->lock, REMOVED);
}

bool names_set(const void *lock, const char *name)
{
	uint64_t address = (uintptr_t)lock;
	bool removes = !name || !*name;
	struct slot *slot;

	/* relaxed: a thread that uses the lock knows that it has been named */
	if (removes && !w_load_relaxed(&used))
		return true;
	slot = slot_of(address);
	if (removes) {
		if (slot)
			remove_name(slot);
		return true;
	}
	w_store_relaxed(&used, 1);
	slot = slot ? slot : take(address);
	if (slot)
		write_name(slot, name);
	return slot;
}

bool names_find(const void *lock, char name[NAME_SIZE])
{
	uint64_t address = (uintptr_t)lock, words[WORDS];
	struct slot *slot = slot_of(address);
	uint32_t version;

	memset(name, 0, NAME_SIZE);
	if (!slot)
		return false;
	/* acquire: pairs with the release in write_name() */
	version = w_load_acquire(&slot->version);
	for (size_t i = 0; i < WORDS; i++)
		words[i] = w_load_relaxed(&slot->words[i]);
	w_fence_seq_cst();
	/* relaxed, both: the fence orders them after the words */
	if (version % 2 || w_load_relaxed(&slot->version) != version ||
	    w_load_relaxed(&slot->lock) != address)
		return false;
	memcpy(name, words, NAME_SIZE);
	return *name;
}
