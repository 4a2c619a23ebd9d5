/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pthread_mutex_*: normal, adaptive, recursive and error-checking mutexes are ours, in place
 * (layout.h). Recursive and error-checking ones are glibc's if the chosen lock has no room for an
 * owner. A mutex to which a rule gave another lock (rules.h) is used through the chosen table,
 * which finds that lock.
 *
 * Robust, priority-inheriting, priority-protecting and process-shared mutexes are always glibc's,
 * as are the functions for attributes, pthread_mutex_consistent() and the priority ceiling's: these
 * concern native mutexes only, and refuse ours by their kind.
 *
 * Error codes are glibc's. So are the value and place of the owner (own_tid()), where debuggers
 * look for it. As in glibc, a child cannot unlock a recursive or error-checking mutex held across
 * fork.
 */
#include "mutex.h"

#include <errno.h>
#include <string.h>

#include "control.h"
#include "debug.h"
#include "layout.h"
#include "poundlock.h"
#include "preload.h"
#include "real.h"
#include "rules.h"
#include "stats/observe.h"
#include "stats/stats.h"

/* ---- Owners of recursive and error-checking mutexes (layout.h) ---- */

static bool owns(struct mutex *m)
{
	/* relaxed: only this thread writes its own id there, and only while it holds the lock */
	return w_load_relaxed(&m->owner) == own_tid();
}

static inline void begin_hold(struct mutex *m, uint32_t self)
{
	m->holds = 1;
	/* relaxed: as in owns() */
	w_store_relaxed(&m->owner, self);
}

/*
 * As the new holder, puts the owner in the place of the lock's middle, by one store: a waiter that
 * reads the middle (lib/kept.h) must find a pointer or an owner, never half of each.
 */
static void own(struct mutex *m)
{
	struct mutex owned = {.owner = own_tid(), .holds = 1};

	/* relaxed, all: as in owns() */
	m->aside = w_load_relaxed(&m->middle);
	w_store_relaxed(&m->middle, w_load_relaxed(&owned.middle));
}

/* Restores the lock's middle. */
static void disown(struct mutex *m)
{
	/* relaxed: as in owns() */
	w_store_relaxed(&m->middle, m->aside);
}

/* Locks a mutex that the caller owns already. */
static int lock_again(struct mutex *m)
{
	if ((m->kind & KIND_TYPE) == TYPE_ERRORCHECK)
		return EDEADLK;
	if (m->holds == UINT32_MAX)
		return EAGAIN;
	m->holds++;
	return 0;
}

/* ---- By the mutex's type ---- */

/* The functions of @m; NULL if it is native. */
static const struct any_ops *ops_of(struct mutex *m)
{
	const struct any_ops *ops;

	initialise();
	/* relaxed, both: initialise() has acquired what it points at */
	ops = w_load_relaxed(&chosen_ops);
	if (!ops || (m->kind & KIND_NATIVE) ||
	    (!mutex_is_plain(m) && !w_load_relaxed(&chosen_owners)))
		return NULL;
	return ops;
}

bool mutex_is_native(pthread_mutex_t *mutex)
{
	return !ops_of(mutex_of(mutex));
}

__attribute__((noinline)) static int lock_any(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);
	const struct any_ops *ops = ops_of(m);

	if (!ops)
		return real.pthread_mutex_lock(mutex);
	if (mutex_is_plain(m))
		return ops->lock(m, ops);
	if (owns(m))
		return lock_again(m);
	ops->lock(m, ops);
	own(m);
	return 0;
}

__attribute__((noinline)) static int trylock_any(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);
	const struct any_ops *ops = ops_of(m);

	if (!ops)
		return real.pthread_mutex_trylock(mutex);
	if ((m->kind & KIND_TYPE) == TYPE_RECURSIVE && owns(m))
		return lock_again(m);
	if (!ops->trylock(m))
		return EBUSY;
	if (!mutex_is_plain(m))
		own(m);
	return 0;
}

__attribute__((noinline)) static int unlock_any(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);
	const struct any_ops *ops = ops_of(m);

	if (!ops)
		return real.pthread_mutex_unlock(mutex);
	if (!mutex_is_plain(m)) {
		if (!owns(m))
			return EPERM;
		if (--m->holds)
			return 0;
		disown(m);
	}
	ops->unlock(m, ops);
	return 0;
}

/* Functions of their own: they need no stack frame. */
#define SLOW(name)                                                                                 \
	__attribute__((noinline)) static int name##_slow(pthread_mutex_t *mutex)                   \
	{                                                                                          \
		return is_native_counted() ? real.pthread_mutex_##name(mutex) : name##_any(mutex); \
	}
SLOW(lock)
SLOW(trylock)
SLOW(unlock)
#undef SLOW

/* ---- pthread_mutex_* ---- */

int mutex_init_at(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr, const void *site)
{
	struct mutex *m = mutex_of(mutex);
	int result, kind;

	initialise();
	/* Real functions that have not been looked up yet leave it unchanged. */
	m->kind = PTHREAD_MUTEX_DEFAULT;
	if (attr)
		pthread_mutexattr_gettype(attr, &m->kind);
	result = real.pthread_mutex_init(mutex, attr);
	if (result || !ops_of(m))
		return result;
	/* The type alone: glibc's kind also has flags for lock elision. */
	kind = m->kind & KIND_TYPE;
	memset(mutex, 0, sizeof(*mutex));
	m->kind = kind;
	rules_initialised(m, site);
	control_forget(m);
	stats_forget(mutex);
	debug_created(mutex);
	return 0;
}

static int mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	return mutex_init_at(mutex, attr, __builtin_return_address(0));
}

int mutex_destroy(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);
	const struct any_ops *ops = stats_unobserved(debug_unchecked(ops_of(m)));

	if (!ops)
		return real.pthread_mutex_destroy(mutex);
	debug_destroyed(mutex);
	if (!ops->trylock(m))
		return EBUSY;
	ops->unlock(m, ops);
	if (ops->destroy)
		ops->destroy(m);
	control_forget(m);
	stats_forget(mutex);
	m->kind = KIND_DESTROYED;
	return 0;
}

/* ---- Fast paths: an inlined lock's without a call, others through their table ---- */

static inline pound_mutex_t *pound_of(pthread_mutex_t *mutex)
{
	return (pound_mutex_t *)mutex;
}

/*
 * poundlock.h's fast path, which is inlined once for a process of one thread and once for others.
 */
static inline bool take_free(pthread_mutex_t *mutex, uint32_t *seen, const char *alone)
{
	return w_likely(*alone) ? pound_mutex_take_free(pound_of(mutex), seen, true)
				: pound_mutex_take_free(pound_of(mutex), seen, false);
}

/* relaxed: a caller that finds it locked learns nothing else */
static inline uint32_t state_of(pthread_mutex_t *mutex)
{
	return __atomic_load_n(&pound_of(mutex)->pound_state, __ATOMIC_RELAXED);
}

static inline bool is_locked(pthread_mutex_t *mutex)
{
	return state_of(mutex) & POUND_MUTEX_LOCKED;
}

/*
 * As take_free(), by a thread that waits if it fails. In a process of several threads, one that
 * remembers the mutex reads the word first, as shfl_ron_acquire_again().
 */
static inline bool take_or_read(pthread_mutex_t *mutex, uint32_t *seen, const char *alone)
{
	if (w_unlikely(!*alone && w_remembers(mutex))) {
		*seen = state_of(mutex);
		if (*seen != POUND_MUTEX_FREE)
			return false;
	}
	return take_free(mutex, seen, alone);
}

/*
 * As take_free(). Returns false also if the lock's own release has to be called: the thread
 * remembers the mutex, or it is time to look whether its streak is over.
 */
static inline bool release_alone(pthread_mutex_t *mutex, const char *alone)
{
	if (w_unlikely(w_remembers(mutex)))
		return false;
	if (w_likely(*alone))
		return pound_mutex_release_alone(pound_of(mutex), true);
	return w_likely(!w_streak_counts_first()) &&
	       pound_mutex_release_alone(pound_of(mutex), false);
}

/* Waits for a mutex that was last seen as @seen, by its own settings if it has any. */
W_SLOW static void wait_for_inlined(pthread_mutex_t *mutex, uint32_t seen)
{
	if (w_likely(!rules_on))
		(void)any_wait(mutex, seen, NULL, w_load_acquire(&chosen_ops));
	else
		(void)rules_wait(mutex_of(mutex), NULL);
}

W_SLOW static void release_inlined(pthread_mutex_t *mutex)
{
	const struct any_ops *ops = w_load_acquire(&chosen_ops);

	(void)ops->unlock(mutex, ops);
}

static inline int inlined_lock(pthread_mutex_t *mutex, const char *alone)
{
	uint32_t seen;

	if (w_unlikely(!take_or_read(mutex, &seen, alone)))
		wait_for_inlined(mutex, seen);
	return 0;
}

W_SLOW static int inlined_trylock_slow(pthread_mutex_t *mutex, uint32_t seen)
{
	return pound_mutex_trylock_slow(pound_of(mutex), seen) ? 0 : EBUSY;
}

static inline int inlined_trylock(pthread_mutex_t *mutex, const char *alone)
{
	uint32_t seen;

	if (w_likely(take_free(mutex, &seen, alone)))
		return 0;
	return w_likely(seen & POUND_MUTEX_LOCKED) ? EBUSY : inlined_trylock_slow(mutex, seen);
}

static inline int inlined_unlock(pthread_mutex_t *mutex, const char *alone)
{
	if (w_unlikely(!release_alone(mutex, alone)))
		release_inlined(mutex);
	return 0;
}

/* Locks through the table if @mutex is plain. */
static int lock_by_table(pthread_mutex_t *mutex)
{
	/* acquire, here and below: pairs with the release in choose(); the lock's settings */
	const struct any_ops *ops = w_load_acquire(&chosen_ops);

	return w_likely(ops && mutex_is_plain(mutex_of(mutex))) ? ops->lock(mutex, ops)
								: lock_slow(mutex);
}

static int trylock_by_table(pthread_mutex_t *mutex)
{
	const struct any_ops *ops = w_load_acquire(&chosen_ops);

	if (w_unlikely(!ops || !mutex_is_plain(mutex_of(mutex))))
		return trylock_slow(mutex);
	return ops->trylock(mutex) ? 0 : EBUSY;
}

static int unlock_by_table(pthread_mutex_t *mutex)
{
	const struct any_ops *ops = w_load_acquire(&chosen_ops);

	if (w_unlikely(!ops || !mutex_is_plain(mutex_of(mutex))))
		return unlock_slow(mutex);
	ops->unlock(mutex, ops);
	return 0;
}

/* An inlined lock with an owner: only its slow paths read the middle, where the owner is. */

/* Whether @m has an owner, by its kind. */
static inline bool is_owned_kind(const struct mutex *m)
{
	return w_likely(m->kind == TYPE_RECURSIVE || m->kind == TYPE_ERRORCHECK);
}

W_SLOW static int lock_owned_slow(struct mutex *m, uint32_t seen)
{
	wait_for_inlined((pthread_mutex_t *)m, seen);
	own(m);
	return 0;
}

W_SLOW static int unlock_owned_slow(struct mutex *m)
{
	disown(m);
	release_inlined((pthread_mutex_t *)m);
	return 0;
}

static inline bool is_adaptive(pthread_mutex_t *mutex)
{
	return w_likely(mutex_of(mutex)->kind == TYPE_ADAPTIVE);
}

__attribute__((noinline)) static int lock_other(pthread_mutex_t *mutex, const char *alone)
{
	return is_adaptive(mutex) ? inlined_lock(mutex, alone) : lock_by_table(mutex);
}

__attribute__((noinline)) static int trylock_other(pthread_mutex_t *mutex, const char *alone)
{
	if (!is_adaptive(mutex))
		return trylock_by_table(mutex);
	return is_locked(mutex) ? EBUSY : inlined_trylock(mutex, alone);
}

__attribute__((noinline)) static int unlock_other(pthread_mutex_t *mutex, const char *alone)
{
	return is_adaptive(mutex) ? inlined_unlock(mutex, alone) : unlock_by_table(mutex);
}

__attribute__((noinline)) static int lock_typed(pthread_mutex_t *mutex, const char *alone)
{
	struct mutex *m = mutex_of(mutex);
	uint32_t self, seen;

	if (!is_owned_kind(m))
		return lock_other(mutex, alone);
	self = own_tid();
	/* relaxed: as in owns() */
	if (w_load_relaxed(&m->owner) == self)
		return lock_again(m);
	if (w_unlikely(!take_or_read(mutex, &seen, alone)))
		return lock_owned_slow(m, seen);
	begin_hold(m, self);
	return 0;
}

__attribute__((noinline)) static int trylock_typed(pthread_mutex_t *mutex, const char *alone)
{
	struct mutex *m = mutex_of(mutex);
	uint32_t self, seen;

	if (!is_owned_kind(m))
		return trylock_other(mutex, alone);
	self = own_tid();
	/* relaxed: as in owns() */
	if (m->kind == TYPE_RECURSIVE && w_load_relaxed(&m->owner) == self)
		return lock_again(m);
	if (is_locked(mutex))
		return EBUSY;
	if (w_unlikely(!take_free(mutex, &seen, alone)))
		return trylock_slow(mutex);
	begin_hold(m, self);
	return 0;
}

__attribute__((noinline)) static int unlock_typed(pthread_mutex_t *mutex, const char *alone)
{
	struct mutex *m = mutex_of(mutex);

	if (!is_owned_kind(m))
		return unlock_other(mutex, alone);
	if (w_unlikely(!owns(m)))
		return EPERM;
	if (--m->holds)
		return 0;
	/* relaxed: as in owns() */
	w_store_relaxed(&m->owner, 0);
	if (w_unlikely(!release_alone(mutex, alone)))
		return unlock_owned_slow(m);
	return 0;
}

static inline bool is_normal(pthread_mutex_t *mutex)
{
	return w_likely(mutex_of(mutex)->kind == PTHREAD_MUTEX_NORMAL);
}

struct mutex_calls mutex_calls = {lock_by_table, trylock_by_table, unlock_by_table};

#define LOCKING(name)                                                  \
	int mutex_##name(pthread_mutex_t *mutex)                       \
	{                                                              \
		const char *alone = w_load_acquire(&chosen_inlined);   \
                                                                       \
		if (w_unlikely(!alone))                                \
			return CALL_OF(mutex_calls, name)(mutex);      \
		return is_normal(mutex) ? inlined_##name(mutex, alone) \
					: name##_typed(mutex, alone);  \
	}
LOCKING(lock)
LOCKING(trylock)
LOCKING(unlock)
#undef LOCKING

/* ---- An inlined lock with statistics, for a normal mutex whose row is found at once ---- */

/* chosen_inlined without statistics. */
static const char *unobserved_alone;

static int observed_lock(pthread_mutex_t *mutex)
{
	struct stats_row *row;
	uint32_t seen;

	if (w_unlikely(!stats_row_at_once(stats_key(mutex), &row) || !is_normal(mutex)))
		return lock_by_table(mutex);
	if (w_unlikely(!take_or_read(mutex, &seen, unobserved_alone)))
		return !stats_wait_lock(row, &stats_own_ops, mutex, NULL,
					__builtin_return_address(0));
	return stats_count_acquisition(row, false);
}

static int observed_unlock(pthread_mutex_t *mutex)
{
	uint64_t key = stats_key(mutex);

	if (w_unlikely(!is_normal(mutex)) ||
	    !(stats_is_last_and_quiet(key, false) || stats_is_at_once_and_quiet(key)))
		return unlock_by_table(mutex);
	if (w_unlikely(!release_alone(mutex, unobserved_alone)))
		(void)stats_own_ops.unlock(mutex, &stats_own_ops);
	return 0;
}

void mutex_observe_inlined(void)
{
	unobserved_alone = alone_place();
	CALLS_SET(mutex_calls, lock, observed_lock);
	CALLS_SET(mutex_calls, unlock, observed_unlock);
}

int mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at)
{
	struct w_deadline deadline = {.clock = clock};
	struct mutex *m = mutex_of(mutex);
	const struct any_ops *ops = ops_of(m);

	if (!ops)
		return real.pthread_mutex_clocklock(mutex, clock, at);
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	if (!mutex_is_plain(m) && owns(m))
		return lock_again(m);
	/* Only a caller that would have to wait has its deadline checked. */
	if (!ops->trylock(m)) {
		deadline.at = *at;
		if (!any_deadline_valid(&deadline))
			return EINVAL;
		if (!ops->timedlock(m, &deadline, ops))
			return ETIMEDOUT;
	}
	if (!mutex_is_plain(m))
		own(m);
	return 0;
}

/* ---- Names: pthread's, and those for objects linked on glibc 2.33 or older ---- */

KNOWN_AS(pthread_mutex_init, mutex_init);
KNOWN_AS(pthread_mutex_destroy, mutex_destroy);
KNOWN_AS(pthread_mutex_lock, mutex_lock);
KNOWN_AS(pthread_mutex_trylock, mutex_trylock);
KNOWN_AS(pthread_mutex_clocklock, mutex_clocklock);
KNOWN_AS(pthread_mutex_unlock, mutex_unlock);
KNOWN_AS(__pthread_mutex_init, mutex_init);
KNOWN_AS(__pthread_mutex_destroy, mutex_destroy);
KNOWN_AS(__pthread_mutex_lock, mutex_lock);
KNOWN_AS(__pthread_mutex_trylock, mutex_trylock);
KNOWN_AS(__pthread_mutex_unlock, mutex_unlock);

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *at)
{
	return mutex_clocklock(mutex, CLOCK_REALTIME, at);
}
