/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Access to any.c's tables, by a lock's index in core/locks.def. */
#ifndef POUNDLOCK_TABLES_H
#define POUNDLOCK_TABLES_H

#include "any.h"
#include "info.h"

/* Facts about the lock; NULL past the last. */
W_HIDDEN const struct facts *any_facts(size_t lock);

/* The lock's SPEC_SETTINGS settings by default. */
W_HIDDEN const uint32_t *any_defaults(size_t lock);

/*
 * The table of the lock that waits in this way, by SPEC_SETTINGS settings. The same arguments give
 * the same table. NULL: there is no room for another one.
 */
W_HIDDEN const struct any_ops *any_ops_for(size_t lock, enum wait wait, const uint32_t *settings);

#endif
