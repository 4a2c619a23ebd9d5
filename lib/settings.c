/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "settings.h"

#include <string.h>

const struct setting all_settings[SETTINGS] = {
#define LOCK(name, kind, wait, promise, paper) name##_settings(SETTING_ROW)
#define RWLOCK(name, wait, promise, paper) name##_settings(SETTING_ROW)
#include "locks.def"
};

uint32_t setting_value(const char *lock, const char *key, const uint32_t *settings,
		       uint32_t otherwise)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (!strcmp(all_settings[i].lock, lock) && !strcmp(all_settings[i].key, key))
			return settings[all_settings[i].place];
	return otherwise;
}
