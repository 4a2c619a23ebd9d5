/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Access to any.c's tables, by a lock's index in core/locks.def. */
#ifndef POUNDLOCK_TABLES_H
#define POUNDLOCK_TABLES_H

#include "any.h"
#include "info.h"

/* Facts about the lock; NULL past the last. */
W_HIDDEN const struct facts *any_facts(size_t lock);

/* The functions of the lock that wait in this way, under the policy that is set now. */
W_HIDDEN const struct any_ops *any_ops_now(size_t lock, enum wait wait);

#endif
