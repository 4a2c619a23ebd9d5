/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The start of the statistics, the end of a lock, and its name. */
#include "stats.h"

#include "config.h"
#include "count.h"
#include "item.h"
#include "names.h"
#include "native.h"
#include "posix.h"

bool stats_on;

uint32_t stats_hold_every(bool profile)
{
	return profile ? 1 : 256;
}

void stats_start(const char *folder, bool profile, const struct any_ops **ops,
		 const struct any_rw_ops **rw_ops)
{
	if (!stats_region_reserve(folder, profile, *ops ? (*ops)->name : NATIVE,
				  *rw_ops ? (*rw_ops)->name : NATIVE) ||
	    !stats_region_open(true))
		return;
	stats_profile = profile;
	stats_time_one_of(stats_hold_every(profile));
	stats_watch_threads();
	stats_stack_start();
	if (*ops)
		*ops = stats_observe_posix(*ops);
	else
		stats_observe_native();
	if (*rw_ops)
		*rw_ops = stats_observe_posix_rw(*rw_ops);
	w_listener = stats_hear;
	w_listening = true;
	stats_on = true;
}

void stats_shorten(const struct any_ops *ops, const struct any_rw_ops *rw_ops)
{
	if (ops)
		stats_shorten_posix(ops, rw_ops);
	else
		stats_shorten_native();
}

void stats_forget_slow(const void *lock)
{
	stats_check_fork();
	stats_item_end((uintptr_t)lock);
	stats_item_end((uintptr_t)lock + STATS_READERS);
	(void)names_set(lock, NULL);
}

void stats_name(const void *lock, const char *name)
{
	stats_check_fork();
	(void)names_set(lock, name);
	stats_item_name((uintptr_t)lock);
	stats_item_name((uintptr_t)lock + STATS_READERS);
}
