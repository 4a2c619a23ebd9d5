/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Locks of the program's own use of poundlock.h: the observer that lib/observer.h declares. The
 * locks' own functions are in another library.
 */
#include <string.h>

#include "intern.h"
#include "observe.h"
#include "observer.h"
#include "poundlock.h"
#include "preload.h"
#include "stats.h"

/* ---- pound_lock_t and pound_rwlock_t ---- */

/* Tables that count, each with the own table in place of which it is used. */
struct api_ops {
	struct any_ops ops;
	const struct any_ops *own;
};

struct api_rw_ops {
	struct any_rw_ops ops;
	const struct any_rw_ops *own;
};

#define TABLES (2 * INTERN_MOST) /* more than there are interned and constant tables */

INTERN(tables, struct api_ops, TABLES);
INTERN(rw_tables, struct api_rw_ops, TABLES);

static const struct any_ops *own_of(const void *lock)
{
	return ((const struct api_ops *)((const pound_lock_t *)lock)->pound_ops)->own;
}

static const struct any_rw_ops *own_rw_of(const void *lock)
{
	return ((const struct api_rw_ops *)((const pound_rwlock_t *)lock)->pound_ops)->own;
}

static struct stats_row *row_of(uint64_t key, bool readers_writer)
{
	struct stats_row *row = stats_row_of(key, readers_writer);

	/* All threads that make a row store the same. */
	if (row->lock && row->counts[STATS_acquisitions] == 0)
		stats_lock_item(row->lock)->kind =
			(readers_writer ? STATS_READERS_WRITER : 0) | STATS_API;
	return row;
}

OBSERVED_LOCK(api, row_of, own_of)
OBSERVED_RWLOCK(api, row_of, own_rw_of, true)

/* The table for @own; @own itself if there is no room for one, or there are no statistics. */
static const struct any_ops *observe_lock(const struct any_ops *own)
{
	struct api_ops table;
	const struct api_ops *interned;

	initialise();
	if (!stats_on)
		return own;
	/* Not by assignment, which may leave out padding. */
	memset(&table, 0, sizeof(table));
	memcpy(&table.ops, own, sizeof(*own));
	OBSERVE_OPS(api, &table.ops);
	table.own = own;
	interned = intern(&tables, &table);
	return interned ? &interned->ops : own;
}

static const struct any_rw_ops *observe_rwlock(const struct any_rw_ops *own)
{
	struct api_rw_ops table;
	const struct api_rw_ops *interned;

	initialise();
	if (!stats_on)
		return own;
	memset(&table, 0, sizeof(table));
	memcpy(&table.ops, own, sizeof(*own));
	OBSERVE_RW_OPS(api, &table.ops);
	table.own = own;
	interned = intern(&rw_tables, &table);
	return interned ? &interned->ops : own;
}

/* ---- pound_mutex_t ---- */

struct mutex_wait {
	struct stats_wait wait; /* first: wait_mutex() finds the rest by it */
	bool (*function)(void *mutex, const struct w_deadline *deadline);
};

static bool wait_mutex(const struct stats_wait *wait)
{
	return ((const struct mutex_wait *)wait)->function(wait->lock, wait->deadline);
}

static bool observe_mutex_wait(void *mutex, const struct w_deadline *deadline,
			       bool (*function)(void *mutex, const struct w_deadline *deadline))
{
	struct mutex_wait wait = {.wait = {.wait = wait_mutex,
					   .lock = mutex,
					   .deadline = deadline,
					   .caller = __builtin_return_address(0)},
				  .function = function};
	struct stats_row *row;
	bool taken;

	initialise();
	if (!stats_on)
		return function(mutex, deadline);
	row = row_of(stats_key(mutex), false);
	taken = stats_wait(row, &wait.wait);
	row->since = 0; /* the release may be one that is not observed */
	return taken;
}

static bool observe_mutex_release(void *mutex, bool (*unlock)(void *mutex))
{
	return stats_on ? stats_release(stats_key(mutex), false, unlock, mutex) : unlock(mutex);
}

/* ---- Any lock ---- */

static void observe_name(const void *lock, const char *name)
{
	initialise();
	if (stats_on)
		stats_name(lock, name);
}

/* ---- The observer ---- */

EXPORT extern const struct pound_observer POUND_OBSERVER;

const struct pound_observer POUND_OBSERVER = {
	.lock = observe_lock,
	.rwlock = observe_rwlock,
	.mutex_wait = observe_mutex_wait,
	.mutex_release = observe_mutex_release,
	.name = observe_name,
	.forget = stats_forget,
};
