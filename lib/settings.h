/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The settings of all locks of core/locks.def. Each applies to all locks of that name. */
#ifndef POUNDLOCK_SETTINGS_H
#define POUNDLOCK_SETTINGS_H

#include "all.h"
#include "spec.h"

struct lock_settings {
#define LOCK(name, kind, wait, promise, paper) name##_settings(SETTING_VALUE)
#define RWLOCK(name, wait, promise, paper) name##_settings(SETTING_VALUE)
#include "locks.def"
};

extern W_HIDDEN struct lock_settings lock_settings;

enum {
	SETTINGS = 0
#define ONE(...) +1
#define LOCK(name, kind, wait, promise, paper) name##_settings(ONE)
#define RWLOCK(name, wait, promise, paper) name##_settings(ONE)
#include "locks.def"
#undef ONE
};

extern W_HIDDEN const struct setting all_settings[SETTINGS];

#endif
