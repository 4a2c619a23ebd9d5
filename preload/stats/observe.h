/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Tables of functions that count, and then do what the lock's own functions do. OBSERVED_LOCK() and
 * OBSERVED_RWLOCK() define the functions of one table, for the locks of which
 *
 *   row_of(key, readers_writer)  is the calling thread's row
 *   own_of(lock)                 are the own functions
 */
#ifndef POUNDLOCK_STATS_OBSERVE_H
#define POUNDLOCK_STATS_OBSERVE_H

#include "any_rw.h"
#include "count.h"

static inline uint64_t stats_key(void *lock)
{
	return (uintptr_t)lock;
}

/* The key of a lock's side of readers. */
static inline uint64_t stats_readers_key(void *lock)
{
	return (uintptr_t)lock + STATS_READERS;
}

/*
 * Wait for a lock that was not free a moment ago. Functions of their own: the callers' fast paths
 * need no stack frame.
 */
W_HIDDEN W_SLOW bool stats_wait_lock(struct stats_row *row, const struct any_ops *own, void *lock,
				     const struct w_deadline *deadline, void *caller);
W_HIDDEN W_SLOW bool stats_wait_read(struct stats_row *row, const struct any_rw_ops *own,
				     void *lock, bool again, const struct w_deadline *deadline,
				     void *caller);
W_HIDDEN W_SLOW bool stats_wait_write(struct stats_row *row, const struct any_rw_ops *own,
				      void *lock, const struct w_deadline *deadline, void *caller);

/* A function for a deadline is called after a trylock failed, which was not the program's. */
static inline void stats_uncount_try(struct stats_row *row)
{
	if (row->counts[STATS_trylock_failures])
		row->counts[STATS_trylock_failures]--;
}

/* ---- Locks ---- */

static inline int stats_lock(struct stats_row *row, const struct any_ops *own, void *lock,
			     void *caller)
{
	if (w_unlikely(!own->trylock(lock)))
		(void)stats_wait_lock(row, own, lock, NULL, caller);
	else
		(void)stats_count_acquisition(row, false);
	return 0;
}

static inline bool stats_timedlock(struct stats_row *row, const struct any_ops *own, void *lock,
				   const struct w_deadline *deadline, void *caller)
{
	stats_uncount_try(row);
	return stats_wait_lock(row, own, lock, deadline, caller);
}

#define OBSERVED_UNLOCK(prefix, name, own_of)                                              \
	static bool prefix##_##name##_own(void *lock)                                      \
	{                                                                                  \
		const struct any_ops *own = own_of(lock);                                  \
                                                                                           \
		return own->name(lock, own);                                               \
	}                                                                                  \
	__attribute__((noinline)) static bool prefix##_##name(void *lock,                  \
							      const struct any_ops *ops)   \
	{                                                                                  \
		(void)ops;                                                                 \
		return stats_release(stats_key(lock), false, prefix##_##name##_own, lock); \
	}

#define OBSERVED_LOCK(prefix, row_of, own_of)                                                     \
	__attribute__((noinline)) static int prefix##_lock(void *lock, const struct any_ops *ops) \
	{                                                                                         \
		struct stats_row *row = row_of(stats_key(lock), false);                           \
                                                                                                  \
		(void)ops;                                                                        \
		return stats_lock(row, own_of(lock), lock, __builtin_return_address(0));          \
	}                                                                                         \
	static bool prefix##_trylock(void *lock)                                                  \
	{                                                                                         \
		struct stats_row *row = row_of(stats_key(lock), false);                           \
                                                                                                  \
		return stats_count_try(row, false, own_of(lock)->trylock(lock));                  \
	}                                                                                         \
	static bool prefix##_timedlock(void *lock, const struct w_deadline *deadline,             \
				       const struct any_ops *ops)                                 \
	{                                                                                         \
		struct stats_row *row = row_of(stats_key(lock), false);                           \
                                                                                                  \
		(void)ops;                                                                        \
		return stats_timedlock(row, own_of(lock), lock, deadline,                         \
				       __builtin_return_address(0));                              \
	}                                                                                         \
	OBSERVED_UNLOCK(prefix, unlock, own_of)                                                   \
	OBSERVED_UNLOCK(prefix, unlock_fair, own_of)

/* Replaces the functions of the copy @ops of an own table. */
#define OBSERVE_OPS(prefix, ops)                           \
	do {                                               \
		(ops)->lock = prefix##_lock;               \
		(ops)->trylock = prefix##_trylock;         \
		(ops)->timedlock = prefix##_timedlock;     \
		(ops)->unlock = prefix##_unlock;           \
		(ops)->unlock_fair = prefix##_unlock_fair; \
	} while (0)

/* ---- Readers-writer locks ---- */

/* @tried: the caller has tried to enter just now, so that this only waits. */
static inline bool stats_read(struct stats_row *row, const struct any_rw_ops *own, void *lock,
			      bool again, const struct w_deadline *deadline, bool tried,
			      void *caller)
{
	if (tried)
		stats_uncount_try(row);
	if (w_unlikely(tried || !own->tryrdlock(lock, again)))
		return stats_wait_read(row, own, lock, again, deadline, caller);
	(void)stats_count_acquisition(row, true);
	return true;
}

static inline bool stats_write(struct stats_row *row, const struct any_rw_ops *own, void *lock,
			       const struct w_deadline *deadline, bool tried, void *caller)
{
	if (tried)
		stats_uncount_try(row);
	if (w_unlikely(tried || !own->trywrlock(lock)))
		return stats_wait_write(row, own, lock, deadline, caller);
	(void)stats_count_acquisition(row, true);
	return true;
}

#define OBSERVED_RW_UNLOCK(prefix, name, key_of, own_of)                                    \
	static bool prefix##_##name##_own(void *lock)                                       \
	{                                                                                   \
		const struct any_rw_ops *own = own_of(lock);                                \
                                                                                            \
		return own->name(lock, own);                                                \
	}                                                                                   \
	__attribute__((noinline)) static bool prefix##_##name(void *lock,                   \
							      const struct any_rw_ops *ops) \
	{                                                                                   \
		(void)ops;                                                                  \
		return stats_release(key_of(lock), true, prefix##_##name##_own, lock);      \
	}

/* @tried: callers of the functions for a deadline have tried to enter. */
#define OBSERVED_RWLOCK(prefix, row_of, own_of, tried)                                      \
	__attribute__((noinline)) static bool prefix##_rdlock(void *lock, bool again,       \
							      const struct any_rw_ops *ops) \
	{                                                                                   \
		struct stats_row *row = row_of(stats_readers_key(lock), true);              \
                                                                                            \
		(void)ops;                                                                  \
		return stats_read(row, own_of(lock), lock, again, NULL, false,              \
				  __builtin_return_address(0));                             \
	}                                                                                   \
	static bool prefix##_tryrdlock(void *lock, bool again)                              \
	{                                                                                   \
		struct stats_row *row = row_of(stats_readers_key(lock), true);              \
                                                                                            \
		return stats_count_try(row, true, own_of(lock)->tryrdlock(lock, again));    \
	}                                                                                   \
	static bool prefix##_timedrdlock(void *lock, bool again,                            \
					 const struct w_deadline *deadline,                 \
					 const struct any_rw_ops *ops)                      \
	{                                                                                   \
		struct stats_row *row = row_of(stats_readers_key(lock), true);              \
                                                                                            \
		(void)ops;                                                                  \
		return stats_read(row, own_of(lock), lock, again, deadline, tried,          \
				  __builtin_return_address(0));                             \
	}                                                                                   \
	static bool prefix##_full(void *lock)                                               \
	{                                                                                   \
		return own_of(lock)->full(lock);                                            \
	}                                                                                   \
	static void prefix##_wrlock(void *lock, const struct any_rw_ops *ops)               \
	{                                                                                   \
		struct stats_row *row = row_of(stats_key(lock), true);                      \
                                                                                            \
		(void)ops;                                                                  \
		(void)stats_write(row, own_of(lock), lock, NULL, false,                     \
				  __builtin_return_address(0));                             \
	}                                                                                   \
	static bool prefix##_trywrlock(void *lock)                                          \
	{                                                                                   \
		struct stats_row *row = row_of(stats_key(lock), true);                      \
                                                                                            \
		return stats_count_try(row, true, own_of(lock)->trywrlock(lock));           \
	}                                                                                   \
	static bool prefix##_timedwrlock(void *lock, const struct w_deadline *deadline,     \
					 const struct any_rw_ops *ops)                      \
	{                                                                                   \
		struct stats_row *row = row_of(stats_key(lock), true);                      \
                                                                                            \
		(void)ops;                                                                  \
		return stats_write(row, own_of(lock), lock, deadline, tried,                \
				   __builtin_return_address(0));                            \
	}                                                                                   \
	OBSERVED_RW_UNLOCK(prefix, rdunlock, stats_readers_key, own_of)                     \
	OBSERVED_RW_UNLOCK(prefix, rdunlock_fair, stats_readers_key, own_of)                \
	OBSERVED_RW_UNLOCK(prefix, wrunlock, stats_key, own_of)                             \
	OBSERVED_RW_UNLOCK(prefix, wrunlock_fair, stats_key, own_of)

#define OBSERVE_RW_OPS(prefix, ops)                            \
	do {                                                   \
		(ops)->rdlock = prefix##_rdlock;               \
		(ops)->tryrdlock = prefix##_tryrdlock;         \
		(ops)->timedrdlock = prefix##_timedrdlock;     \
		(ops)->full = prefix##_full;                   \
		(ops)->rdunlock = prefix##_rdunlock;           \
		(ops)->wrlock = prefix##_wrlock;               \
		(ops)->trywrlock = prefix##_trywrlock;         \
		(ops)->timedwrlock = prefix##_timedwrlock;     \
		(ops)->wrunlock = prefix##_wrunlock;           \
		(ops)->rdunlock_fair = prefix##_rdunlock_fair; \
		(ops)->wrunlock_fair = prefix##_wrunlock_fair; \
	} while (0)

#endif
