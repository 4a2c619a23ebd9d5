/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Items of locks in the file, found by the locks' keys: an address, or an address + STATS_READERS.
 * Item 0 stands for all locks that found no room.
 */
#ifndef POUNDLOCK_STATS_ITEM_H
#define POUNDLOCK_STATS_ITEM_H

#include "region.h"

/*
 * The index of the item of @key, made if there is none; 0 if there is no room. A quarter of the
 * items is kept for locks that are @contended.
 */
W_HIDDEN uint32_t stats_item_of(uint64_t key, bool readers_writer, bool contended);

/* Stores the name of the lock (names.h) in the item of @key, if there is one. */
W_HIDDEN void stats_item_name(uint64_t key);

/*
 * Ends the item of @key: the lock is destroyed. Its counts stay in the file if threads have waited
 * for it, or it has a name, unless the address has had many such locks already: later ones share an
 * item.
 */
W_HIDDEN void stats_item_end(uint64_t key);

#endif
