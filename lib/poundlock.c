/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The part of poundlock.h that is the same for all locks: locks by specification, names of locks,
 * shares, events. The default mutex is in mutex.c, the program's policies in policies.c.
 */
#include <errno.h>

#include "any.h"
#include "any_rw.h"
#include "names.h"
#include "observer.h"
#include "poundlock.h"
#include "route.h"
#include "rw/shfl_rw.h"

/* ---- Names ---- */

int pound_set_name(const void *lock, const char *name)
{
	bool room = names_set(lock, name);

	if (any_observer)
		any_observer->name(lock, name);
	return room ? 0 : ENOSPC;
}

/* Ends what is known of the lock at this address: the next one there is another one. */
static void forget(const void *lock)
{
	(void)names_set(lock, NULL);
	if (w_unlikely(any_observer))
		any_observer->forget(lock);
}

/* ---- Any lock ---- */

int pound_lock_init(pound_lock_t *lock, const char *spec, char *error, size_t size)
{
	const struct any_ops *ops = any_find(spec, error, size);

	forget(lock);
	*lock = (pound_lock_t)POUND_LOCK_INIT;
	if (!ops)
		return any_check(spec, NULL, 0) ? ENOSPC : EINVAL;
	if (!any_hold(ops, error, size))
		return EINVAL;
	lock->pound_ops = any_observer ? any_observer->lock(ops) : ops;
	return 0;
}

int pound_lock_check(const char *spec, char *error, size_t size)
{
	return any_check(spec, error, size) ? 0 : EINVAL;
}

void pound_lock_destroy(pound_lock_t *lock)
{
	const struct any_ops *ops = lock->pound_ops;

	forget(lock);
	if (!ops)
		return;
	if (ops->destroy)
		ops->destroy(lock->pound_bytes);
	any_drop(ops);
	*lock = (pound_lock_t)POUND_LOCK_INIT;
}

/* Stores the observer's table in a zeroed lock, by which its functions find the lock's own. */
W_SLOW static const struct any_ops *observe_default_lock(pound_lock_t *lock)
{
	const struct any_ops *ops = any_observer->lock(any_default);

	/*
	 * Other threads that find no functions store the same.
	 * release: pairs with the address dependencies of ops_of(); the table
	 */
	__atomic_store_n(&lock->pound_ops, ops, __ATOMIC_RELEASE);
	return ops;
}

static const struct any_ops *ops_of(pound_lock_t *lock)
{
	/* relaxed: what is read of the table depends on its address */
	const struct any_ops *ops = __atomic_load_n(&lock->pound_ops, __ATOMIC_RELAXED);

	if (w_likely(ops))
		return ops;
	return w_unlikely(any_observer) ? observe_default_lock(lock) : any_default;
}

void pound_lock_lock(pound_lock_t *lock)
{
	const struct any_ops *ops = ops_of(lock);

	ops->lock(lock->pound_bytes, ops);
}

bool pound_lock_trylock(pound_lock_t *lock)
{
	return ops_of(lock)->trylock(lock->pound_bytes);
}

int pound_lock_timedlock(pound_lock_t *lock, clockid_t clock, const struct timespec *deadline)
{
	struct w_deadline until = {.clock = clock, .at = *deadline};
	const struct any_ops *ops = ops_of(lock);

	if (ops->trylock(lock->pound_bytes))
		return 0;
	if (!any_deadline_valid(&until))
		return EINVAL;
	return ops->timedlock(lock->pound_bytes, &until, ops) ? 0 : ETIMEDOUT;
}

void pound_lock_unlock(pound_lock_t *lock)
{
	const struct any_ops *ops = ops_of(lock);

	(void)ops->unlock(lock->pound_bytes, ops);
}

void pound_lock_unlock_fair(pound_lock_t *lock)
{
	const struct any_ops *ops = ops_of(lock);

	(void)ops->unlock_fair(lock->pound_bytes, ops);
}

/* ---- Any readers-writer lock ---- */

int pound_rwlock_init(pound_rwlock_t *lock, const char *spec, char *error, size_t size)
{
	const struct any_rw_ops *ops = any_rw_find(spec, error, size);

	forget(lock);
	*lock = (pound_rwlock_t){.pound_ops =
					 ops && any_observer ? any_observer->rwlock(ops) : ops};
	if (ops)
		return 0;
	return any_rw_check(spec, NULL, 0) ? ENOSPC : EINVAL;
}

int pound_rwlock_check(const char *spec, char *error, size_t size)
{
	return any_rw_check(spec, error, size) ? 0 : EINVAL;
}

/* As observe_default_lock(). */
W_SLOW static const struct any_rw_ops *observe_default(pound_rwlock_t *lock)
{
	const struct any_rw_ops *ops = any_observer->rwlock(any_rw_default);

	/*
	 * Other threads that find no functions store the same.
	 * release: pairs with the address dependencies of rw_ops_of(); the table
	 */
	__atomic_store_n(&lock->pound_ops, ops, __ATOMIC_RELEASE);
	return ops;
}

static const struct any_rw_ops *rw_ops_of(pound_rwlock_t *lock)
{
	/* relaxed: what is read of the table depends on its address */
	const struct any_rw_ops *ops = __atomic_load_n(&lock->pound_ops, __ATOMIC_RELAXED);

	if (ops)
		return ops;
	return w_unlikely(any_observer) ? observe_default(lock) : any_rw_default;
}

/*
 * Whether @lock is the default lock with default settings, and not observed: the compiler knows its
 * functions, so no call is indirect.
 */
static inline bool is_plain(pound_rwlock_t *lock)
{
	/* relaxed: it stays NULL, or not, while threads use the lock and nothing observes it */
	return w_likely(!__atomic_load_n(&lock->pound_ops, __ATOMIC_RELAXED) && !any_observer);
}

static inline struct shfl_rw *plain(pound_rwlock_t *lock)
{
	return (struct shfl_rw *)lock->pound_bytes;
}

/* The default lock's releases ignore it. */
static const struct shfl_rw_policy any_policy;

static int timedrdlock(pound_rwlock_t *lock, bool again, clockid_t clock,
		       const struct timespec *deadline)
{
	struct w_deadline until = {.clock = clock, .at = *deadline};
	const struct any_rw_ops *ops = rw_ops_of(lock);

	if (ops->tryrdlock(lock->pound_bytes, again))
		return 0;
	if (!any_deadline_valid(&until))
		return EINVAL;
	if (ops->timedrdlock(lock->pound_bytes, again, &until, ops))
		return 0;
	return w_expired(&until) ? ETIMEDOUT : EAGAIN;
}

__attribute__((noinline)) static int rdlock_any(pound_rwlock_t *lock)
{
	const struct any_rw_ops *ops = rw_ops_of(lock);

	return ops->rdlock(lock->pound_bytes, false, ops) ? 0 : EAGAIN;
}

int pound_rwlock_rdlock(pound_rwlock_t *lock)
{
	uint32_t seen;

	if (is_plain(lock) && w_likely(shfl_rw_enter(plain(lock), false, false, &seen)))
		return 0;
	return rdlock_any(lock);
}

bool pound_rwlock_tryrdlock(pound_rwlock_t *lock)
{
	if (is_plain(lock))
		return shfl_rw_try_read(plain(lock), false);
	return rw_ops_of(lock)->tryrdlock(lock->pound_bytes, false);
}

int pound_rwlock_timedrdlock(pound_rwlock_t *lock, clockid_t clock, const struct timespec *deadline)
{
	return timedrdlock(lock, false, clock, deadline);
}

int pound_rwlock_rdlock_again(pound_rwlock_t *lock)
{
	const struct any_rw_ops *ops = rw_ops_of(lock);

	return ops->rdlock(lock->pound_bytes, true, ops) ? 0 : EAGAIN;
}

bool pound_rwlock_tryrdlock_again(pound_rwlock_t *lock)
{
	return rw_ops_of(lock)->tryrdlock(lock->pound_bytes, true);
}

int pound_rwlock_timedrdlock_again(pound_rwlock_t *lock, clockid_t clock,
				   const struct timespec *deadline)
{
	return timedrdlock(lock, true, clock, deadline);
}

__attribute__((noinline)) static void rdunlock_any(pound_rwlock_t *lock)
{
	const struct any_rw_ops *ops = rw_ops_of(lock);

	(void)ops->rdunlock(lock->pound_bytes, ops);
}

void pound_rwlock_rdunlock(pound_rwlock_t *lock)
{
	if (is_plain(lock))
		(void)shfl_rw_release_read(plain(lock), any_policy);
	else
		rdunlock_any(lock);
}

void pound_rwlock_rdunlock_fair(pound_rwlock_t *lock)
{
	const struct any_rw_ops *ops = rw_ops_of(lock);

	(void)ops->rdunlock_fair(lock->pound_bytes, ops);
}

__attribute__((noinline)) static void wrlock_any(pound_rwlock_t *lock)
{
	const struct any_rw_ops *ops = rw_ops_of(lock);

	ops->wrlock(lock->pound_bytes, ops);
}

void pound_rwlock_wrlock(pound_rwlock_t *lock)
{
	uint32_t seen;

	if (!is_plain(lock) || w_unlikely(!shfl_rw_enter(plain(lock), true, false, &seen)))
		wrlock_any(lock);
}

bool pound_rwlock_trywrlock(pound_rwlock_t *lock)
{
	if (is_plain(lock))
		return shfl_rw_try_write(plain(lock));
	return rw_ops_of(lock)->trywrlock(lock->pound_bytes);
}

int pound_rwlock_timedwrlock(pound_rwlock_t *lock, clockid_t clock, const struct timespec *deadline)
{
	struct w_deadline until = {.clock = clock, .at = *deadline};
	const struct any_rw_ops *ops = rw_ops_of(lock);

	if (ops->trywrlock(lock->pound_bytes))
		return 0;
	if (!any_deadline_valid(&until))
		return EINVAL;
	return ops->timedwrlock(lock->pound_bytes, &until, ops) ? 0 : ETIMEDOUT;
}

__attribute__((noinline)) static void wrunlock_any(pound_rwlock_t *lock)
{
	const struct any_rw_ops *ops = rw_ops_of(lock);

	(void)ops->wrunlock(lock->pound_bytes, ops);
}

void pound_rwlock_wrunlock(pound_rwlock_t *lock)
{
	if (is_plain(lock))
		(void)shfl_rw_release_write(plain(lock), any_policy);
	else
		wrunlock_any(lock);
}

void pound_rwlock_wrunlock_fair(pound_rwlock_t *lock)
{
	const struct any_rw_ops *ops = rw_ops_of(lock);

	(void)ops->wrunlock_fair(lock->pound_bytes, ops);
}

/* ---- Shares ---- */

void pound_thread_weight(uint32_t weight)
{
	w_weight_set(weight);
}

int pound_thread_tenant(uint64_t id, uint32_t weight)
{
	if (!weight)
		return EINVAL;
	return w_tenant_set(id, weight) ? 0 : ENOSPC;
}

void pound_thread_leave_tenant(void)
{
	w_tenant_clear();
}

uint32_t pound_thread_group(void)
{
	return w_group_save();
}

void pound_thread_return(uint32_t group)
{
	w_group_restore(group);
}

/* ---- Events ---- */

static const struct {
	const char *name, *meaning;
} events[] = {
#define EVENT(name, meaning) {#name, meaning},
#include "events.def"
#undef EVENT
};

void pound_events_start(void)
{
	w_listening = true;
}

const char *pound_event_name(size_t index)
{
	return index < W_EVENTS ? events[index].name : NULL;
}

const char *pound_event_meaning(size_t index)
{
	return index < W_EVENTS ? events[index].meaning : NULL;
}

uint64_t pound_event_count(size_t index)
{
	return index < W_EVENTS ? w_counted((enum w_event)index) : 0;
}

/* ---- Domain and route ---- */

unsigned pound_domain(void)
{
	return (unsigned)w_domain();
}

size_t pound_route(unsigned *cpus, size_t size)
{
	return w_route_list(cpus, size);
}

const char *pound_route_file(void)
{
	(void)w_route_list(NULL, 0);
	return w_route_file();
}
