/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "settings.h"

const struct setting all_settings[SETTINGS] = {
#define LOCK(name, kind, wait, promise, paper) name##_settings(SETTING_ROW)
#define RWLOCK(name, wait, promise, paper) name##_settings(SETTING_ROW)
#include "locks.def"
};
