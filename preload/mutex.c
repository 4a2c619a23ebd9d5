/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pthread_mutex_*: normal, adaptive, recursive and error-checking mutexes are ours, in place (layout.h); robust,
 * priority-inheriting, priority-protecting and process-shared ones are glibc's, as are the attributes' functions,
 * pthread_mutex_consistent and the priority ceilings', which concern native mutexes only and refuse ours by their kind.
 *
 * Error codes are glibc's, with one exception that only widens what works: a recursive or error-checking mutex held
 * across fork can be unlocked by the child, since an owner is known by an id that fork does not change.
 */
#include "mutex.h"

#include <errno.h>
#include <string.h>

#include "layout.h"
#include "poundlock.h"
#include "preload.h"
#include "real.h"
#include "shfl_mutex.h"
#include "stats.h"

/* ---- Owners ---- */

__thread uint32_t thread_id_known __attribute__((tls_model("initial-exec")));

uint32_t thread_id_make(void)
{
	static W_ATOMIC(uint32_t) last;

	/* relaxed: ids only have to differ */
	while (!thread_id_known)
		thread_id_known = w_fetch_add_relaxed(&last, 1) + 1;
	return thread_id_known;
}

static bool owns(struct mutex *m)
{
	/* relaxed: only this thread writes its own id there, and only while it holds the lock */
	return w_load_relaxed(&m->owner) == thread_id();
}

static void own(struct mutex *m)
{
	if (mutex_is_plain(m))
		return;
	/* relaxed: as in owns() */
	w_store_relaxed(&m->owner, thread_id());
}

/* What locking again does for the owner of a recursive or error-checking mutex. */
static int lock_again(struct mutex *m)
{
	if ((m->kind & KIND_TYPE) == TYPE_ERRORCHECK)
		return EDEADLK;
	if (m->holds == UINT32_MAX)
		return EAGAIN;
	m->holds++;
	return 0;
}

/* ---- Paths that look at the type ---- */

/* The lock that @m is made of, NULL if it is native. */
static const struct any_ops *ops_of(struct mutex *m)
{
	initialise();
	/* relaxed: initialise() has acquired what it points at */
	return mutex_is_native(m) ? NULL : w_load_relaxed(&chosen_ops);
}

__attribute__((noinline)) static int lock_slow(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);
	const struct any_ops *ops = ops_of(m);

	if (!ops)
		return real.pthread_mutex_lock(mutex);
	if (!mutex_is_plain(m) && owns(m))
		return lock_again(m);
	ops->lock(m);
	own(m);
	return 0;
}

__attribute__((noinline)) static int trylock_slow(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);
	const struct any_ops *ops = ops_of(m);

	if (!ops)
		return real.pthread_mutex_trylock(mutex);
	if ((m->kind & KIND_TYPE) == TYPE_RECURSIVE && owns(m))
		return lock_again(m);
	if (!ops->trylock(m))
		return EBUSY;
	own(m);
	return 0;
}

__attribute__((noinline)) static int unlock_slow(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);
	const struct any_ops *ops = ops_of(m);

	if (!ops)
		return real.pthread_mutex_unlock(mutex);
	if (!mutex_is_plain(m)) {
		if (!owns(m))
			return EPERM;
		if (m->holds) {
			m->holds--;
			return 0;
		}
		/* relaxed: as in owns() */
		w_store_relaxed(&m->owner, 0);
	}
	ops->unlock(m);
	return 0;
}

/* ---- pthread_mutex_* ---- */

int mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	struct mutex *m = mutex_of(mutex);
	int result, kind;

	initialise();
	/* What real functions leave that have not been looked up yet. */
	m->kind = PTHREAD_MUTEX_DEFAULT;
	if (attr)
		pthread_mutexattr_gettype(attr, &m->kind);
	result = real.pthread_mutex_init(mutex, attr);
	if (result || !ops_of(m))
		return result;
	kind = m->kind;
	memset(mutex, 0, sizeof(*mutex));
	m->kind = kind;
	stats_forget(mutex);
	return 0;
}

int mutex_destroy(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);
	const struct any_ops *ops = stats_unobserved(ops_of(m));

	if (!ops)
		return real.pthread_mutex_destroy(mutex);
	if (!ops->trylock(m))
		return EBUSY;
	ops->unlock(m);
	if (ops->destroy)
		ops->destroy(m);
	stats_forget(mutex);
	m->kind = KIND_DESTROYED;
	return 0;
}

/* ---- Fast paths: of the default lock without a call, of any other through its table ---- */

/* Whether the default lock's state was @from, and is @to now: as poundlock.h has it, with the byte that @alone is. */
#define CHANGES(alone, mutex, from, to, order)                                                                \
	({                                                                                                    \
		W_ATOMIC(uint32_t) *state_ = &((struct shfl_mutex *)(mutex))->state;                          \
		uint32_t seen_ = (from);                                                                      \
		w_likely(*(alone))                                                                            \
			? W_ALONE_CAS(state_, &seen_, (to))                                                   \
			: atomic_compare_exchange_strong_explicit(state_, &seen_, (to), memory_order_##order, \
								  memory_order_relaxed);                      \
	})

/* By the table, if it is @plain. */
static inline int lock_by_table(pthread_mutex_t *mutex, bool plain)
{
	/* acquire: pairs with the release in choose(); the lock's settings. So in the other fast paths */
	const struct any_ops *ops = w_load_acquire(&chosen_ops);

	return w_likely(ops && plain) ? ops->lock(mutex) : lock_slow(mutex);
}

static inline int unlock_by_table(pthread_mutex_t *mutex, bool plain)
{
	const struct any_ops *ops = w_load_acquire(&chosen_ops);

	if (w_unlikely(!ops || !plain))
		return unlock_slow(mutex);
	ops->unlock(mutex);
	return 0;
}

/* Mutexes that are not normal ones: adaptive ones are the lock alone, too. */
__attribute__((noinline)) static int lock_typed(pthread_mutex_t *mutex)
{
	return lock_by_table(mutex, mutex_is_plain(mutex_of(mutex)));
}

__attribute__((noinline)) static int unlock_typed(pthread_mutex_t *mutex)
{
	return unlock_by_table(mutex, mutex_is_plain(mutex_of(mutex)));
}

static inline bool is_normal(pthread_mutex_t *mutex)
{
	return w_likely(mutex_of(mutex)->kind == PTHREAD_MUTEX_NORMAL);
}

int mutex_lock(pthread_mutex_t *mutex)
{
	const char *alone = w_load_acquire(&chosen_default);

	if (!is_normal(mutex))
		return lock_typed(mutex);
	if (w_unlikely(!alone))
		return lock_by_table(mutex, true);
	if (w_unlikely(!CHANGES(alone, mutex, 0, SHFL_MUTEX_LOCKED, acquire)))
		pound_mutex_lock_slow((pound_mutex_t *)mutex);
	return 0;
}

int mutex_trylock(pthread_mutex_t *mutex)
{
	const struct any_ops *ops = w_load_acquire(&chosen_ops);

	if (w_unlikely(!ops || !mutex_is_plain(mutex_of(mutex))))
		return trylock_slow(mutex);
	return ops->trylock(mutex) ? 0 : EBUSY;
}

int mutex_unlock(pthread_mutex_t *mutex)
{
	const char *alone = w_load_acquire(&chosen_default);

	if (!is_normal(mutex))
		return unlock_typed(mutex);
	if (w_unlikely(!alone))
		return unlock_by_table(mutex, true);
	if (w_unlikely(!CHANGES(alone, mutex, SHFL_MUTEX_LOCKED, 0, release)))
		pound_mutex_unlock_slow((pound_mutex_t *)mutex);
	return 0;
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
	/* The time is looked at only by a caller that would have to wait. */
	if (!ops->trylock(m)) {
		deadline.at = *at;
		if (!any_deadline_valid(&deadline))
			return EINVAL;
		if (!ops->timedlock(m, &deadline))
			return ETIMEDOUT;
	}
	own(m);
	return 0;
}

/* ---- The names: pthread's, and those that objects linked on glibc 2.33 or older may use for the same functions ---- */

#define KNOWN_AS(alias_name, name) EXPORT extern __typeof__(name) alias_name __attribute__((alias(#name)))

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
