/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The settings of all locks of core/locks.def. */
#ifndef POUNDLOCK_SETTINGS_H
#define POUNDLOCK_SETTINGS_H

#include "all.h"
#include "spec.h"

#define LOCK(name, kind, wait, promise, paper) \
	SETTING_PLACES(name);                  \
	_Static_assert(name##_SETTINGS <= SPEC_SETTINGS, #name " has more");
#define RWLOCK(name, wait, promise, paper) LOCK(name, , wait, promise, paper)
#include "locks.def"

enum {
	SETTINGS = 0
#define LOCK(name, kind, wait, promise, paper) +name##_SETTINGS
#define RWLOCK(name, wait, promise, paper) +name##_SETTINGS
#include "locks.def"
};

extern W_HIDDEN const struct setting all_settings[SETTINGS];

/* The setting @key among @settings of @lock; @otherwise if it has none. */
W_HIDDEN uint32_t setting_value(const char *lock, const char *key, const uint32_t *settings,
				uint32_t otherwise);

#endif
