/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Functions in the place of the C library's that count and call them. Nothing is replaced: the
 * content of every object, the way of waiting and every result are the C library's.
 *
 * An acquisition tries first, as in observe.h, and calls the blocking function if the lock is held.
 * Where a try could change the result, or cost more, the blocking function is called at once:
 *
 *   - The owner of a recursive or error-checking mutex locks it again: this is no acquisition.
 *   - A writer asks for its readers-writer lock: EDEADLK.
 *   - The deadline is invalid: EINVAL.
 *   - The mutex is robust, priority-inheriting or priority-protecting. The owner in its word shows
 *     whether it is held. glibc's trylock would lock a mutex that is not recoverable, and leave it
 *     locked; that of a priority-protecting mutex changes the thread's priority.
 *   - The process has one thread, and the mutex is not shared: the C library needs no atomic
 *     operation then.
 *
 * EOWNERDEAD is an acquisition.
 *
 * A wait on a condition variable ends one hold and begins another. If it is process-shared, the
 * wait to re-acquire the mutex is inside the C library's function, where it is not timed.
 *
 * Where nothing waits, normal mutexes and readers' locks are changed as the C library changes them,
 * without a call.
 */
#include "native.h"

#include <errno.h>
#include <string.h>

#include "layout.h"
#include "observe.h"
#include "poundlock.h"
#include "preload.h"
#include "real.h"
#include "stats.h"

/* The C library's. */
static struct real own;

/* glibc's bits of a mutex's __kind, and those of its word that are 0 if it is free. */
#define KIND_SPECIAL 0x70 /* robust, priority-inheriting, priority-protecting */
#define KIND_PROTECTING 0x40
#define KIND_SHARED 0x80
#define OWNER 0x3fffffff
#define OWNER_IF_PROTECTING 0x0007ffff /* the ceiling is above it */

static inline bool is_taken(int result)
{
	return w_likely(!result) || result == EOWNERDEAD;
}

/* Counts an acquisition if @result is one. Returns @result. */
static inline int counted(struct stats_row *row, bool readers_writer, int result)
{
	if (is_taken(result))
		(void)stats_count_acquisition(row, readers_writer);
	return result;
}

/* The same for the program's own try. */
static inline int counted_try(struct stats_row *row, bool readers_writer, int result)
{
	if (w_unlikely(result == EBUSY))
		row->counts[STATS_trylock_failures]++;
	return counted(row, readers_writer, result);
}

/* ---- Waiting ---- */

/* A wait by the C library's @call, until @at if it has a deadline. */
struct native_wait {
	struct stats_wait wait; /* first: wait_natively() finds the rest by it */
	int (*call)(const struct native_wait *wait);
	clockid_t clock;
	const struct timespec *at;
	int *result;
};

static bool wait_natively(const struct stats_wait *wait)
{
	const struct native_wait *native = (const struct native_wait *)wait;

	*native->result = native->call(native);
	return is_taken(*native->result);
}

W_SLOW static int wait_until(struct stats_row *row, int (*call)(const struct native_wait *wait),
			     void *lock, clockid_t clock, const struct timespec *at, void *caller)
{
	int result;
	const struct native_wait wait = {
		.wait = {.wait = wait_natively, .lock = lock, .caller = caller},
		.call = call,
		.clock = clock,
		.at = at,
		.result = &result,
	};

	(void)stats_wait(row, &wait.wait);
	return result;
}

#define WAIT(row, call, lock) \
	wait_until(row, call, lock, CLOCK_REALTIME, NULL, __builtin_return_address(0))
#define WAIT_UNTIL(row, call, lock, clock, at) \
	wait_until(row, call, lock, clock, at, __builtin_return_address(0))

/* ---- Releasing ---- */

/* A release by the C library's @call. */
struct native_release {
	void *lock;
	int (*call)(void *lock);
	int result;
};

static bool release_natively(void *argument)
{
	struct native_release *release = argument;

	release->result = release->call(release->lock);
	return !release->result;
}

W_SLOW static int release(uint64_t key, bool readers_writer, int (*call)(void *lock), void *lock)
{
	struct native_release native = {.lock = lock, .call = call};

	(void)stats_release(key, readers_writer, release_natively, &native);
	return native.result;
}

/* ---- The end of a lock ---- */

/* Begins a new lock at the address of @lock, unless @result is an error. Returns @result. */
static int forgotten(void *lock, int result)
{
	if (!result)
		stats_forget(lock);
	return result;
}

/* ---- Mutexes ---- */

static inline bool has_owner(const struct mutex *m)
{
	return (m->kind + 1) & 2;
}

static bool is_owner(struct mutex *m)
{
	/* relaxed: only this thread writes its own id there, and only while it holds the lock */
	return w_load_relaxed(&m->owner) == own_tid();
}

/*
 * Whether the caller owns @mutex, of a type that it may not wait for then, or @mutex is the robust
 * one of its record (world/user/thread.c).
 */
static inline bool is_uncounted(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);

	if (w_likely(!((m->kind & KIND_SPECIAL) | has_owner(m))))
		return false;
	return stats_self.inside || (has_owner(m) && is_owner(m));
}

/* Whether an unlock by the caller does not release @mutex. */
static bool stays_locked(pthread_mutex_t *mutex)
{
	struct mutex *m = mutex_of(mutex);

	return has_owner(m) && (!is_owner(m) || (unsigned int)mutex->__data.__count > 1);
}

static inline struct stats_row *mutex_row(pthread_mutex_t *mutex)
{
	return stats_row_of(stats_key(mutex), false);
}

/* Whether @mutex, which has an owner in its word, is held. */
static bool is_held(const pthread_mutex_t *mutex)
{
	/* relaxed: the lock may change at any time */
	int word = __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);

	return word & (mutex->__data.__kind & KIND_PROTECTING ? OWNER_IF_PROTECTING : OWNER);
}

/*
 * Returns 0 if @mutex is acquired, EBUSY if it is held, and another error if only the blocking
 * function can report that.
 */
static inline int try_first(pthread_mutex_t *mutex)
{
	int kind = mutex_of(mutex)->kind;

	if (w_unlikely(kind & KIND_SPECIAL))
		return is_held(mutex) ? EBUSY : EAGAIN;
	if (w_alone() && !(kind & KIND_SHARED))
		return EAGAIN;
	return own.pthread_mutex_trylock(mutex);
}

static int call_mutex_lock(const struct native_wait *wait)
{
	return own.pthread_mutex_lock(wait->wait.lock);
}

static int call_mutex_clocklock(const struct native_wait *wait)
{
	return own.pthread_mutex_clocklock(wait->wait.lock, wait->clock, wait->at);
}

static int call_mutex_unlock(void *mutex)
{
	return own.pthread_mutex_unlock(mutex);
}

static int native_mutex_lock(pthread_mutex_t *mutex)
{
	struct stats_row *row;
	int result;

	if (is_uncounted(mutex))
		return own.pthread_mutex_lock(mutex);
	row = mutex_row(mutex);
	result = try_first(mutex);
	if (w_likely(!result))
		return counted(row, false, 0);
	return result == EBUSY ? WAIT(row, call_mutex_lock, mutex)
			       : counted(row, false, own.pthread_mutex_lock(mutex));
}

static int native_mutex_trylock(pthread_mutex_t *mutex)
{
	if (is_uncounted(mutex))
		return own.pthread_mutex_trylock(mutex);
	return counted_try(mutex_row(mutex), false, own.pthread_mutex_trylock(mutex));
}

static int native_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *at)
{
	bool has_clock = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
	struct stats_row *row;
	int result;

	if (is_uncounted(mutex) || !has_clock)
		return own.pthread_mutex_clocklock(mutex, clock, at);
	row = mutex_row(mutex);
	result = try_first(mutex);
	if (w_likely(!result))
		return counted(row, false, 0);
	return result == EBUSY ? WAIT_UNTIL(row, call_mutex_clocklock, mutex, clock, at)
			       : counted(row, false, own.pthread_mutex_clocklock(mutex, clock, at));
}

static int native_mutex_unlock(pthread_mutex_t *mutex)
{
	if (stats_is_last_and_quiet(stats_key(mutex), false) || stays_locked(mutex))
		return own.pthread_mutex_unlock(mutex);
	return release(stats_key(mutex), false, call_mutex_unlock, mutex);
}

static int native_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	return forgotten(mutex, own.pthread_mutex_init(mutex, attr));
}

static int native_mutex_destroy(pthread_mutex_t *mutex)
{
	return forgotten(mutex, own.pthread_mutex_destroy(mutex));
}

/* ---- Normal mutexes ---- */

/*
 * The C library's own changes of a normal mutex that is free, or held and without waiters. They are
 * made here, by a few instructions in place of a call, if mutex_is_known().
 */
enum { FREE, LOCKED };

/* Points to w_alone()'s value. */
static const char *alone;

/* glibc's for a mutex whose type was set. */
#define KIND_NO_ELISION 0x200

static inline bool is_normal(const pthread_mutex_t *mutex)
{
	return w_likely(!(mutex->__data.__kind & ~KIND_NO_ELISION));
}

static inline bool change(pthread_mutex_t *mutex, uint32_t from, uint32_t to, int order)
{
	uint32_t *word = (uint32_t *)&mutex->__data.__lock;

	return w_unlikely(*alone) ? pound_word_change(word, &from, to, order, true)
				  : w_likely(pound_word_change(word, &from, to, order, false));
}

static inline void set_owner(pthread_mutex_t *mutex)
{
	mutex->__data.__owner = (int)own_tid();
	mutex->__data.__nusers++;
}

/* FREE -> LOCKED */
static inline bool take_free(pthread_mutex_t *mutex)
{
	/* acquire: the last critical section, which the C library or release_alone() released */
	if (!change(mutex, FREE, LOCKED, __ATOMIC_ACQUIRE))
		return false;
	set_owner(mutex);
	return true;
}

/* LOCKED -> FREE. False, and nothing is changed: there are waiters, or it is not held. */
static inline bool release_alone(pthread_mutex_t *mutex)
{
	mutex->__data.__owner = 0;
	mutex->__data.__nusers--;
	/* release: our critical section, for the C library or take_free() */
	if (change(mutex, LOCKED, FREE, __ATOMIC_RELEASE))
		return true;
	set_owner(mutex);
	return false;
}

/* Whether the C library changes a normal mutex in this way. */
static bool mutex_is_known(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_t its = unlocked, ours = unlocked;
	bool same;

	if (own.pthread_mutex_lock(&its) || !take_free(&ours))
		return false;
	same = !memcmp(&its, &ours, sizeof(its));
	return !own.pthread_mutex_unlock(&its) && release_alone(&ours) && same &&
	       !memcmp(&its, &ours, sizeof(its)) && !memcmp(&its, &unlocked, sizeof(its));
}

W_SLOW static int wait_for_normal(struct stats_row *row, pthread_mutex_t *mutex, void *caller)
{
	return wait_until(row, call_mutex_lock, mutex, CLOCK_REALTIME, NULL, caller);
}

/* For a mutex of another type, or whose row is not found at once. */
__attribute__((noinline)) static int lock_elsewhere(pthread_mutex_t *mutex)
{
	struct stats_row *row;

	if (!is_normal(mutex))
		return native_mutex_lock(mutex);
	row = mutex_row(mutex);
	return w_likely(take_free(mutex))
		       ? stats_count_acquisition(row, false)
		       : wait_for_normal(row, mutex, __builtin_return_address(0));
}

static int shortened_lock(pthread_mutex_t *mutex)
{
	struct stats_row *row;

	if (w_unlikely(!stats_row_at_once(stats_key(mutex), &row) || !is_normal(mutex)))
		return lock_elsewhere(mutex);
	return w_likely(take_free(mutex))
		       ? stats_count_acquisition(row, false)
		       : wait_for_normal(row, mutex, __builtin_return_address(0));
}

static int shortened_trylock(pthread_mutex_t *mutex)
{
	struct stats_row *row;

	if (w_unlikely(!stats_row_at_once(stats_key(mutex), &row) || !is_normal(mutex)))
		return native_mutex_trylock(mutex);
	return counted_try(row, false, take_free(mutex) ? 0 : EBUSY);
}

/* For a mutex of another type, or that was not taken last. */
__attribute__((noinline)) static int unlock_elsewhere(pthread_mutex_t *mutex)
{
	return is_normal(mutex) && stats_is_at_once_and_quiet(stats_key(mutex)) &&
			       release_alone(mutex)
		       ? 0
		       : native_mutex_unlock(mutex);
}

static int shortened_unlock(pthread_mutex_t *mutex)
{
	return is_normal(mutex) && stats_is_last_and_quiet(stats_key(mutex), false) &&
			       release_alone(mutex)
		       ? 0
		       : unlock_elsewhere(mutex);
}

/* ---- Process-shared condition variables ---- */

static int release_nothing(void *mutex)
{
	(void)mutex;
	return 0;
}

/* Ends the hold of @mutex before a wait. Returns whether the wait releases it. */
static bool leave(pthread_mutex_t *mutex)
{
	if (stays_locked(mutex))
		return false;
	(void)release(stats_key(mutex), false, release_nothing, mutex);
	return true;
}

/* After a wait with @result. Returns that. */
static int come_back(pthread_mutex_t *mutex, bool left, int result)
{
	if (left && result != EINVAL && result != EPERM)
		(void)stats_count_acquisition(mutex_row(mutex), false);
	return result;
}

static int native_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	bool left = leave(mutex);

	return come_back(mutex, left, own.pthread_cond_wait(cond, mutex));
}

static int native_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				 const struct timespec *at)
{
	bool left = leave(mutex);

	return come_back(mutex, left, own.pthread_cond_timedwait(cond, mutex, at));
}

static int native_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				 const struct timespec *at)
{
	bool left = leave(mutex);

	return come_back(mutex, left, own.pthread_cond_clockwait(cond, mutex, clock, at));
}

/* ---- Readers-writer locks ---- */

/* Whether the caller is the writer inside. */
static inline bool is_writer(const pthread_rwlock_t *lock)
{
	/* relaxed: only this thread writes its own id there */
	return w_unlikely((uint32_t)__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED) ==
			  own_tid());
}

static inline struct stats_row *read_row(pthread_rwlock_t *lock)
{
	return stats_row_of(stats_readers_key(lock), true);
}

static inline struct stats_row *write_row(pthread_rwlock_t *lock)
{
	return stats_row_of(stats_key(lock), true);
}

static int call_rdlock(const struct native_wait *wait)
{
	return own.pthread_rwlock_rdlock(wait->wait.lock);
}

static int call_clockrdlock(const struct native_wait *wait)
{
	return own.pthread_rwlock_clockrdlock(wait->wait.lock, wait->clock, wait->at);
}

static int call_wrlock(const struct native_wait *wait)
{
	return own.pthread_rwlock_wrlock(wait->wait.lock);
}

static int call_clockwrlock(const struct native_wait *wait)
{
	return own.pthread_rwlock_clockwrlock(wait->wait.lock, wait->clock, wait->at);
}

static int call_rwlock_unlock(void *lock)
{
	return own.pthread_rwlock_unlock(lock);
}

static int native_rdlock(pthread_rwlock_t *lock)
{
	struct stats_row *row = read_row(lock);
	int result = own.pthread_rwlock_tryrdlock(lock);

	if (w_likely(!result))
		return counted(row, true, 0);
	return result == EBUSY && !is_writer(lock) ? WAIT(row, call_rdlock, lock)
						   : own.pthread_rwlock_rdlock(lock);
}

static int native_tryrdlock(pthread_rwlock_t *lock)
{
	return counted_try(read_row(lock), true, own.pthread_rwlock_tryrdlock(lock));
}

/* A readers-writer lock's deadline is checked even if there is nothing to wait for. */
static bool is_valid(clockid_t clock, const struct timespec *at)
{
	return any_deadline_valid(&(struct w_deadline){.clock = clock, .at = *at});
}

static int native_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *at)
{
	struct stats_row *row;
	int result;

	if (is_writer(lock) || !is_valid(clock, at))
		return own.pthread_rwlock_clockrdlock(lock, clock, at);
	row = read_row(lock);
	result = own.pthread_rwlock_tryrdlock(lock);
	if (w_likely(!result))
		return counted(row, true, 0);
	return result == EBUSY ? WAIT_UNTIL(row, call_clockrdlock, lock, clock, at)
			       : own.pthread_rwlock_clockrdlock(lock, clock, at);
}

static int native_wrlock(pthread_rwlock_t *lock)
{
	struct stats_row *row = write_row(lock);

	if (w_likely(!own.pthread_rwlock_trywrlock(lock)))
		return counted(row, true, 0);
	return is_writer(lock) ? own.pthread_rwlock_wrlock(lock) : WAIT(row, call_wrlock, lock);
}

static int native_trywrlock(pthread_rwlock_t *lock)
{
	return counted_try(write_row(lock), true, own.pthread_rwlock_trywrlock(lock));
}

static int native_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *at)
{
	struct stats_row *row;

	if (is_writer(lock) || !is_valid(clock, at))
		return own.pthread_rwlock_clockwrlock(lock, clock, at);
	row = write_row(lock);
	if (w_likely(!own.pthread_rwlock_trywrlock(lock)))
		return counted(row, true, 0);
	return WAIT_UNTIL(row, call_clockwrlock, lock, clock, at);
}

static int native_rwlock_unlock(pthread_rwlock_t *lock)
{
	uint64_t key = is_writer(lock) ? stats_key(lock) : stats_readers_key(lock);

	return stats_is_at_once_and_quiet(key) ? own.pthread_rwlock_unlock(lock)
					       : release(key, true, call_rwlock_unlock, lock);
}

static int native_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attr)
{
	return forgotten(lock, own.pthread_rwlock_init(lock, attr));
}

static int native_rwlock_destroy(pthread_rwlock_t *lock)
{
	return forgotten(lock, own.pthread_rwlock_destroy(lock));
}

/* ---- Reading without a writer ---- */

/*
 * As with normal mutexes, the C library's own changes for a reader, if no writer is inside or
 * waits, and no reader does: they are made here if reading_is_known().
 */
#define READER 8u
#define NOT_READERS 7u
#define MANY_READERS 0xc0000000u /* near the C library's bound */

/* Changes the number of readers of @lock by @add. False: nothing is changed. */
static inline bool add_readers(pthread_rwlock_t *lock, uint32_t add, int order)
{
	uint32_t *word = &lock->__data.__readers;
	/* relaxed: the compare-exchange decides */
	uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	return w_likely(!(seen & (NOT_READERS | MANY_READERS))) &&
	       w_likely(pound_word_change(word, &seen, seen + add, order, false));
}

static inline bool enter(pthread_rwlock_t *lock)
{
	/* acquire: the last writer, which the C library released */
	return add_readers(lock, READER, __ATOMIC_ACQUIRE);
}

/* For a lock with a reader. */
static inline bool exit_quietly(pthread_rwlock_t *lock)
{
	/* release: our critical section, for the next writer */
	return add_readers(lock, -READER, __ATOMIC_RELEASE);
}

/* Whether the C library changes a readers-writer lock in this way. */
static bool reading_is_known(void)
{
	static const pthread_rwlock_t unlocked = PTHREAD_RWLOCK_INITIALIZER;
	pthread_rwlock_t its = unlocked, ours = unlocked;
	bool same = true;

	for (int n = 0; n < 2; n++) {
		same = same && !own.pthread_rwlock_rdlock(&its) && enter(&ours) &&
		       !memcmp(&its, &ours, sizeof(its));
	}
	for (int n = 0; n < 2; n++) {
		same = same && !own.pthread_rwlock_unlock(&its) && exit_quietly(&ours) &&
		       !memcmp(&its, &ours, sizeof(its));
	}
	return same && !memcmp(&its, &unlocked, sizeof(its));
}

/* For a thread that took the lock last. */
static int shortened_rdlock(pthread_rwlock_t *lock)
{
	struct stats_row *row;

	return stats_row_if_last(stats_readers_key(lock), true, &row) && enter(lock)
		       ? stats_count_again(row)
		       : native_rdlock(lock);
}

static int shortened_rwlock_unlock(pthread_rwlock_t *lock)
{
	/* If this thread is the writer, it took the lock last by another row. */
	return stats_is_last_and_quiet(stats_readers_key(lock), true) && exit_quietly(lock)
		       ? 0
		       : native_rwlock_unlock(lock);
}

/* ---- Spin locks ---- */

static struct stats_row *spin_row(pthread_spinlock_t *lock)
{
	struct stats_row *row = stats_row_of(stats_key((void *)lock), false);

	/* All threads that make a row store the same. */
	if (w_unlikely(!row->counts[STATS_acquisitions]) && row->lock)
		stats_lock_item(row->lock)->kind = STATS_SPIN;
	return row;
}

static int call_spin_lock(const struct native_wait *wait)
{
	return own.pthread_spin_lock(wait->wait.lock);
}

static int call_spin_unlock(void *lock)
{
	return own.pthread_spin_unlock(lock);
}

static int native_spin_lock(pthread_spinlock_t *lock)
{
	struct stats_row *row = spin_row(lock);

	if (w_likely(!own.pthread_spin_trylock(lock)))
		return counted(row, false, 0);
	return WAIT(row, call_spin_lock, (void *)lock);
}

static int native_spin_trylock(pthread_spinlock_t *lock)
{
	return counted_try(spin_row(lock), false, own.pthread_spin_trylock(lock));
}

static int native_spin_unlock(pthread_spinlock_t *lock)
{
	uint64_t key = stats_key((void *)lock);

	return stats_is_last_and_quiet(key, false)
		       ? own.pthread_spin_unlock(lock)
		       : release(key, false, call_spin_unlock, (void *)lock);
}

static int native_spin_init(pthread_spinlock_t *lock, int pshared)
{
	return forgotten((void *)lock, own.pthread_spin_init(lock, pshared));
}

static int native_spin_destroy(pthread_spinlock_t *lock)
{
	return forgotten((void *)lock, own.pthread_spin_destroy(lock));
}

/* ---- The table ---- */

void stats_observe_native(void)
{
	own = real;
	real.pthread_mutex_init = native_mutex_init;
	real.pthread_mutex_destroy = native_mutex_destroy;
	real.pthread_mutex_lock = native_mutex_lock;
	real.pthread_mutex_trylock = native_mutex_trylock;
	real.pthread_mutex_clocklock = native_mutex_clocklock;
	real.pthread_mutex_unlock = native_mutex_unlock;
	real.pthread_cond_wait = native_cond_wait;
	real.pthread_cond_timedwait = native_cond_timedwait;
	real.pthread_cond_clockwait = native_cond_clockwait;
	real.pthread_rwlock_init = native_rwlock_init;
	real.pthread_rwlock_destroy = native_rwlock_destroy;
	real.pthread_rwlock_rdlock = native_rdlock;
	real.pthread_rwlock_tryrdlock = native_tryrdlock;
	real.pthread_rwlock_clockrdlock = native_clockrdlock;
	real.pthread_rwlock_wrlock = native_wrlock;
	real.pthread_rwlock_trywrlock = native_trywrlock;
	real.pthread_rwlock_clockwrlock = native_clockwrlock;
	real.pthread_rwlock_unlock = native_rwlock_unlock;
	real.pthread_spin_init = native_spin_init;
	real.pthread_spin_destroy = native_spin_destroy;
	real.pthread_spin_lock = native_spin_lock;
	real.pthread_spin_trylock = native_spin_trylock;
	real.pthread_spin_unlock = native_spin_unlock;
}

void stats_shorten_native(void)
{
	bool known, reading_known;

	alone = alone_place();
	known = mutex_is_known();
	reading_known = reading_is_known();
	CALLS_SET(mutex_calls, lock, known ? shortened_lock : native_mutex_lock);
	CALLS_SET(mutex_calls, trylock, known ? shortened_trylock : native_mutex_trylock);
	CALLS_SET(mutex_calls, unlock, known ? shortened_unlock : native_mutex_unlock);
	CALLS_SET(rwlock_calls, rdlock, reading_known ? shortened_rdlock : native_rdlock);
	CALLS_SET(rwlock_calls, wrlock, native_wrlock);
	CALLS_SET(rwlock_calls, unlock,
		  reading_known ? shortened_rwlock_unlock : native_rwlock_unlock);
}
