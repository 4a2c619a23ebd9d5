/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Poundlock's locks for code that is built to have its use of locks checked. poundlock.h includes
 * this file if POUNDLOCK_DEBUG is defined, or -fsanitize=thread is given; programs do not include
 * it.
 *
 * Every function that locks, unlocks, waits, or orders threads otherwise is replaced by one of the
 * same type that reports the operation:
 *
 *   to ThreadSanitizer, which does not see it: the library has no instrumentation. The sanitizer
 *   then knows which accesses a lock orders and which locks a thread holds, and detects inversions
 *   of the lock order. It ignores what a thread does between the two reports of an operation. It
 *   reports the unlock of a lock by another thread than the one that locked it, which Poundlock
 *   allows: TSAN_OPTIONS=report_mutex_bugs=0 suppresses that.
 *
 *   to the library's own checks, POUNDLOCK_DEBUG: docs/debugging.md describes them.
 */
#ifndef POUNDLOCK_WATCH_H
#define POUNDLOCK_WATCH_H

#include "poundlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a lock is used. Most are ThreadSanitizer's flags. */
enum {
	POUND_WATCH_STATIC = 1 << 0, /* needs no creation and no destruction */
	POUND_WATCH_RECURSIVE = 1 << 1,
	POUND_WATCH_READ = 1 << 3,
	POUND_WATCH_TRY = 1 << 4,
	POUND_WATCH_FAILED = 1 << 5,
	POUND_WATCH_MADE = 1 << 8, /* by pound_lock_init() */
	/* Not ThreadSanitizer's. */
	POUND_WATCH_AGAIN = 1 << 16, /* the thread may hold it for reading */
	POUND_WATCH_MAYBE = 1 << 17, /* an unlock that may fail: another mode is tried next */
	POUND_WATCH_OWN = POUND_WATCH_AGAIN | POUND_WATCH_MAYBE,
};

/* ---- The library's own checks: each reports what is wrong, and changes no lock ---- */

#pragma GCC visibility push(default)
/* Before a thread waits for @lock. With TRY nothing is checked. */
void pound_debug_wait(const void *lock, unsigned flags);
/* The thread has locked @lock. With FAILED it has not. */
void pound_debug_locked(const void *lock, unsigned flags);
/* Before the thread unlocks @lock. */
void pound_debug_unlock(const void *lock, unsigned flags);
/*
 * @lock is initialised: what is known of an earlier lock at its address is void. That lock must not
 * be held, and must have been destroyed, unless it was created with STATIC.
 */
void pound_debug_create(const void *lock, unsigned flags);
/* Before @lock is destroyed. */
void pound_debug_destroy(const void *lock);
/* The thread should hold @lock: in any mode with READ, otherwise alone. */
void pound_debug_assert(const void *lock, unsigned flags);
#pragma GCC visibility pop

/* ---- ThreadSanitizer's runtime: not all compilers install sanitizer/tsan_interface.h ---- */

#if defined(POUND_TSAN) && POUND_TSAN
void __tsan_mutex_create(void *lock, unsigned flags);
void __tsan_mutex_destroy(void *lock, unsigned flags);
void __tsan_mutex_pre_lock(void *lock, unsigned flags);
void __tsan_mutex_post_lock(void *lock, unsigned flags, int recursion);
int __tsan_mutex_pre_unlock(void *lock, unsigned flags);
void __tsan_mutex_post_unlock(void *lock, unsigned flags);
void __tsan_acquire(void *object);
void __tsan_release(void *object);
#define POUND_SANITIZER(call) (void)(call)
#else
#define POUND_SANITIZER(call) (void)0
#endif

#ifdef POUNDLOCK_DEBUG
#define POUND_CHECK(call) call
#else
#define POUND_CHECK(call) (void)0
#endif

/*
 * Inlined into the program's function, also in a build without optimisation: a report names the
 * caller of pound_debug_*().
 */
#define POUND_INLINE static inline __attribute__((always_inline))

#if defined(POUNDLOCK_DEBUG) || (defined(POUND_TSAN) && POUND_TSAN)

POUND_INLINE void pound_watch_wait(void *lock, unsigned flags)
{
	POUND_CHECK(pound_debug_wait(lock, flags));
	POUND_SANITIZER(__tsan_mutex_pre_lock(lock, flags & ~(unsigned)POUND_WATCH_OWN));
	(void)lock, (void)flags;
}

POUND_INLINE void pound_watch_locked(void *lock, unsigned flags)
{
	POUND_SANITIZER(__tsan_mutex_post_lock(lock, flags & ~(unsigned)POUND_WATCH_OWN, 0));
	POUND_CHECK(pound_debug_locked(lock, flags));
	(void)lock, (void)flags;
}

POUND_INLINE void pound_watch_unlock(void *lock, unsigned flags)
{
	POUND_CHECK(pound_debug_unlock(lock, flags));
	POUND_SANITIZER(__tsan_mutex_pre_unlock(lock, flags));
	(void)lock, (void)flags;
}

POUND_INLINE void pound_watch_unlocked(void *lock, unsigned flags)
{
	POUND_SANITIZER(__tsan_mutex_post_unlock(lock, flags));
	(void)lock, (void)flags;
}

/* The flags of an attempt that has @locked the lock or not. */
POUND_INLINE unsigned pound_watch_result(unsigned flags, bool locked)
{
	return locked ? flags : flags | POUND_WATCH_FAILED;
}

/* name##_watched() calls name(), of each type that a locking function of poundlock.h has. */
#define POUND_WATCH_LOCK(name, type, flags)          \
	POUND_INLINE void name##_watched(type *lock) \
	{                                            \
		pound_watch_wait(lock, flags);       \
		name(lock);                          \
		pound_watch_locked(lock, flags);     \
	}
#define POUND_WATCH_TRYLOCK(name, type, flags)                                                   \
	POUND_INLINE bool name##_watched(type *lock)                                             \
	{                                                                                        \
		bool locked;                                                                     \
                                                                                                 \
		pound_watch_wait(lock, (flags) | POUND_WATCH_TRY);                               \
		locked = name(lock);                                                             \
		pound_watch_locked(lock, pound_watch_result((flags) | POUND_WATCH_TRY, locked)); \
		return locked;                                                                   \
	}
#define POUND_WATCH_TIMEDLOCK(name, type, flags)                                               \
	POUND_INLINE int name##_watched(type *lock, clockid_t clock,                           \
					const struct timespec *deadline)                       \
	{                                                                                      \
		int error;                                                                     \
                                                                                               \
		pound_watch_wait(lock, (flags) | POUND_WATCH_TRY);                             \
		error = name(lock, clock, deadline);                                           \
		pound_watch_locked(lock,                                                       \
				   pound_watch_result((flags) | POUND_WATCH_TRY, error == 0)); \
		return error;                                                                  \
	}
#define POUND_WATCH_LOCK_OR_FAIL(name, type, flags)                              \
	POUND_INLINE int name##_watched(type *lock)                              \
	{                                                                        \
		int error;                                                       \
                                                                                 \
		pound_watch_wait(lock, flags);                                   \
		error = name(lock);                                              \
		pound_watch_locked(lock, pound_watch_result(flags, error == 0)); \
		return error;                                                    \
	}
#define POUND_WATCH_UNLOCK(name, type, flags)        \
	POUND_INLINE void name##_watched(type *lock) \
	{                                            \
		pound_watch_unlock(lock, flags);     \
		name(lock);                          \
		pound_watch_unlocked(lock, flags);   \
	}

POUND_WATCH_LOCK(pound_mutex_lock, pound_mutex_t, POUND_WATCH_STATIC)
POUND_WATCH_TRYLOCK(pound_mutex_trylock, pound_mutex_t, POUND_WATCH_STATIC)
POUND_WATCH_TIMEDLOCK(pound_mutex_timedlock, pound_mutex_t, POUND_WATCH_STATIC)
POUND_WATCH_UNLOCK(pound_mutex_unlock, pound_mutex_t, POUND_WATCH_STATIC)
POUND_WATCH_UNLOCK(pound_mutex_unlock_fair, pound_mutex_t, POUND_WATCH_STATIC)
#define pound_mutex_lock pound_mutex_lock_watched
#define pound_mutex_trylock pound_mutex_trylock_watched
#define pound_mutex_timedlock pound_mutex_timedlock_watched
#define pound_mutex_unlock pound_mutex_unlock_watched
#define pound_mutex_unlock_fair pound_mutex_unlock_fair_watched

POUND_INLINE void pound_watch_create(void *lock)
{
	POUND_CHECK(pound_debug_create(lock, 0));
	POUND_SANITIZER(__tsan_mutex_create(lock, POUND_WATCH_MADE));
	(void)lock;
}

POUND_INLINE void pound_watch_destroy(void *lock)
{
	POUND_CHECK(pound_debug_destroy(lock));
	POUND_SANITIZER(__tsan_mutex_destroy(lock, POUND_WATCH_MADE));
	(void)lock;
}

POUND_INLINE int pound_lock_init_watched(pound_lock_t *lock, const char *spec, char *error,
					 size_t size)
{
	int wrong = pound_lock_init(lock, spec, error, size);

	if (!wrong)
		pound_watch_create(lock);
	return wrong;
}

POUND_INLINE void pound_lock_destroy_watched(pound_lock_t *lock)
{
	pound_watch_destroy(lock);
	pound_lock_destroy(lock);
}

POUND_WATCH_LOCK(pound_lock_lock, pound_lock_t, 0)
POUND_WATCH_TRYLOCK(pound_lock_trylock, pound_lock_t, 0)
POUND_WATCH_TIMEDLOCK(pound_lock_timedlock, pound_lock_t, 0)
POUND_WATCH_UNLOCK(pound_lock_unlock, pound_lock_t, 0)
POUND_WATCH_UNLOCK(pound_lock_unlock_fair, pound_lock_t, 0)
#define pound_lock_init pound_lock_init_watched
#define pound_lock_destroy pound_lock_destroy_watched
#define pound_lock_lock pound_lock_lock_watched
#define pound_lock_trylock pound_lock_trylock_watched
#define pound_lock_timedlock pound_lock_timedlock_watched
#define pound_lock_unlock pound_lock_unlock_watched
#define pound_lock_unlock_fair pound_lock_unlock_fair_watched

/* A readers-writer lock needs no destroying. */
POUND_INLINE int pound_rwlock_init_watched(pound_rwlock_t *lock, const char *spec, char *error,
					   size_t size)
{
	int wrong = pound_rwlock_init(lock, spec, error, size);

	if (!wrong)
		POUND_CHECK(pound_debug_create(lock, POUND_WATCH_STATIC));
	return wrong;
}
#define pound_rwlock_init pound_rwlock_init_watched

#define POUND_WATCH_READER (POUND_WATCH_STATIC | POUND_WATCH_READ)
POUND_WATCH_LOCK_OR_FAIL(pound_rwlock_rdlock, pound_rwlock_t, POUND_WATCH_READER)
POUND_WATCH_TRYLOCK(pound_rwlock_tryrdlock, pound_rwlock_t, POUND_WATCH_READER)
POUND_WATCH_TIMEDLOCK(pound_rwlock_timedrdlock, pound_rwlock_t, POUND_WATCH_READER)
POUND_WATCH_LOCK_OR_FAIL(pound_rwlock_rdlock_again, pound_rwlock_t,
			 POUND_WATCH_READER | POUND_WATCH_AGAIN)
POUND_WATCH_TRYLOCK(pound_rwlock_tryrdlock_again, pound_rwlock_t,
		    POUND_WATCH_READER | POUND_WATCH_AGAIN)
POUND_WATCH_TIMEDLOCK(pound_rwlock_timedrdlock_again, pound_rwlock_t,
		      POUND_WATCH_READER | POUND_WATCH_AGAIN)
POUND_WATCH_UNLOCK(pound_rwlock_rdunlock, pound_rwlock_t, POUND_WATCH_READER)
POUND_WATCH_UNLOCK(pound_rwlock_rdunlock_fair, pound_rwlock_t, POUND_WATCH_READER)
POUND_WATCH_LOCK(pound_rwlock_wrlock, pound_rwlock_t, POUND_WATCH_STATIC)
POUND_WATCH_TRYLOCK(pound_rwlock_trywrlock, pound_rwlock_t, POUND_WATCH_STATIC)
POUND_WATCH_TIMEDLOCK(pound_rwlock_timedwrlock, pound_rwlock_t, POUND_WATCH_STATIC)
POUND_WATCH_UNLOCK(pound_rwlock_wrunlock, pound_rwlock_t, POUND_WATCH_STATIC)
POUND_WATCH_UNLOCK(pound_rwlock_wrunlock_fair, pound_rwlock_t, POUND_WATCH_STATIC)
#define pound_rwlock_rdlock pound_rwlock_rdlock_watched
#define pound_rwlock_tryrdlock pound_rwlock_tryrdlock_watched
#define pound_rwlock_timedrdlock pound_rwlock_timedrdlock_watched
#define pound_rwlock_rdlock_again pound_rwlock_rdlock_again_watched
#define pound_rwlock_tryrdlock_again pound_rwlock_tryrdlock_again_watched
#define pound_rwlock_timedrdlock_again pound_rwlock_timedrdlock_again_watched
#define pound_rwlock_rdunlock pound_rwlock_rdunlock_watched
#define pound_rwlock_rdunlock_fair pound_rwlock_rdunlock_fair_watched
#define pound_rwlock_wrlock pound_rwlock_wrlock_watched
#define pound_rwlock_trywrlock pound_rwlock_trywrlock_watched
#define pound_rwlock_timedwrlock pound_rwlock_timedwrlock_watched
#define pound_rwlock_wrunlock pound_rwlock_wrunlock_watched
#define pound_rwlock_wrunlock_fair pound_rwlock_wrunlock_fair_watched

/*
 * A wait releases the lock before the library does and takes it after the library has. A lock of
 * pound_cond_wait_any() or pound_cond_wait_only() reports its own operations: the program's
 * functions are instrumented.
 */
#define POUND_WATCH_WAIT(name, type, flags)                              \
	POUND_INLINE void name##_watched(pound_cond_t *cond, type *lock) \
	{                                                                \
		pound_watch_unlock(lock, flags);                         \
		pound_watch_unlocked(lock, flags);                       \
		pound_watch_wait(lock, flags);                           \
		name(cond, lock);                                        \
		pound_watch_locked(lock, flags);                         \
	}
#define POUND_WATCH_TIMEDWAIT(name, type, flags)                                         \
	POUND_INLINE int name##_watched(pound_cond_t *cond, type *lock, clockid_t clock, \
					const struct timespec *deadline)                 \
	{                                                                                \
		int error;                                                               \
                                                                                         \
		pound_watch_unlock(lock, flags);                                         \
		pound_watch_unlocked(lock, flags);                                       \
		pound_watch_wait(lock, flags);                                           \
		error = name(cond, lock, clock, deadline);                               \
		pound_watch_locked(lock, flags);                                         \
		return error;                                                            \
	}

POUND_WATCH_WAIT(pound_cond_wait, pound_mutex_t, POUND_WATCH_STATIC)
POUND_WATCH_TIMEDWAIT(pound_cond_timedwait, pound_mutex_t, POUND_WATCH_STATIC)
POUND_WATCH_WAIT(pound_cond_wait_lock, pound_lock_t, 0)
POUND_WATCH_TIMEDWAIT(pound_cond_timedwait_lock, pound_lock_t, 0)
POUND_WATCH_WAIT(pound_cond_wait_wrlock, pound_rwlock_t, POUND_WATCH_STATIC)
POUND_WATCH_TIMEDWAIT(pound_cond_timedwait_wrlock, pound_rwlock_t, POUND_WATCH_STATIC)
#define pound_cond_wait pound_cond_wait_watched
#define pound_cond_timedwait pound_cond_timedwait_watched
#define pound_cond_wait_lock pound_cond_wait_lock_watched
#define pound_cond_timedwait_lock pound_cond_timedwait_lock_watched
#define pound_cond_wait_wrlock pound_cond_wait_wrlock_watched
#define pound_cond_timedwait_wrlock pound_cond_timedwait_wrlock_watched

#define POUND_WATCH_OWNER (POUND_WATCH_STATIC | POUND_WATCH_RECURSIVE)
POUND_WATCH_LOCK_OR_FAIL(pound_recursive_mutex_lock, pound_recursive_mutex_t, POUND_WATCH_OWNER)
POUND_WATCH_TRYLOCK(pound_recursive_mutex_trylock, pound_recursive_mutex_t, POUND_WATCH_OWNER)
POUND_WATCH_TIMEDLOCK(pound_recursive_mutex_timedlock, pound_recursive_mutex_t, POUND_WATCH_OWNER)
POUND_WATCH_UNLOCK(pound_recursive_mutex_unlock, pound_recursive_mutex_t, POUND_WATCH_OWNER)
#define pound_recursive_mutex_lock pound_recursive_mutex_lock_watched
#define pound_recursive_mutex_trylock pound_recursive_mutex_trylock_watched
#define pound_recursive_mutex_timedlock pound_recursive_mutex_timedlock_watched
#define pound_recursive_mutex_unlock pound_recursive_mutex_unlock_watched

#endif

#if defined(POUND_TSAN) && POUND_TSAN

/* Once and semaphores order accesses and are no locks. */
struct pound_tsan_run {
	pound_once_t *once;
	void (*function)(void *argument);
	void *argument;
};

static inline void pound_tsan_run_once(void *argument)
{
	const struct pound_tsan_run *run = (const struct pound_tsan_run *)argument;

	__tsan_acquire(run->once);
	run->function(run->argument);
	__tsan_release(run->once);
}

POUND_INLINE void pound_once_tsan(pound_once_t *once, void (*function)(void *argument),
				  void *argument)
{
	struct pound_tsan_run run = {once, function, argument};

	pound_once(once, pound_tsan_run_once, &run);
	__tsan_acquire(once);
}

POUND_INLINE bool pound_once_begin_tsan(pound_once_t *once)
{
	bool begun = pound_once_begin(once);

	__tsan_acquire(once);
	return begun;
}

POUND_INLINE void pound_once_end_tsan(pound_once_t *once, bool completed)
{
	__tsan_release(once);
	pound_once_end(once, completed);
}

POUND_INLINE void pound_sem_wait_tsan(pound_sem_t *sem)
{
	pound_sem_wait(sem);
	__tsan_acquire(sem);
}

POUND_INLINE bool pound_sem_trywait_tsan(pound_sem_t *sem)
{
	bool taken = pound_sem_trywait(sem);

	if (taken)
		__tsan_acquire(sem);
	return taken;
}

POUND_INLINE int pound_sem_timedwait_tsan(pound_sem_t *sem, clockid_t clock,
					  const struct timespec *deadline)
{
	int error = pound_sem_timedwait(sem, clock, deadline);

	if (!error)
		__tsan_acquire(sem);
	return error;
}

POUND_INLINE int pound_sem_post_tsan(pound_sem_t *sem, uint32_t count)
{
	__tsan_release(sem);
	return pound_sem_post(sem, count);
}

/*
 * Not inlined: the sanitizer would report a notification's look at memory that the waiter frees,
 * since it does not see that this follows the notification.
 */
#define pound_cond_signal pound_cond_signal_slow
#define pound_cond_broadcast pound_cond_broadcast_slow
/* With arguments, since it is also the name of a struct. */
#define pound_once(once, function, argument) pound_once_tsan(once, function, argument)
#define pound_once_begin pound_once_begin_tsan
#define pound_once_end pound_once_end_tsan
#define pound_sem_wait pound_sem_wait_tsan
#define pound_sem_trywait pound_sem_trywait_tsan
#define pound_sem_timedwait pound_sem_timedwait_tsan
#define pound_sem_post pound_sem_post_tsan

#endif

#ifdef __cplusplus
}
#endif

#endif
