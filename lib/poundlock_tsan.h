/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Poundlock's locks for ThreadSanitizer. poundlock.h includes this file in code that is compiled
 * with -fsanitize=thread; programs do not include it.
 *
 * Every function that locks, unlocks, waits, or orders threads otherwise is replaced by one of the
 * same type that reports the operation, since ThreadSanitizer does not see it: the library has no
 * instrumentation. The sanitizer then knows which accesses a lock orders and which locks a thread
 * holds, and detects inversions of the lock order. It ignores what a thread does between the two
 * reports of an operation.
 *
 * It reports the unlock of a lock by another thread than the one that locked it, which Poundlock
 * allows: TSAN_OPTIONS=report_mutex_bugs=0 suppresses that.
 */
#ifndef POUNDLOCK_TSAN_H
#define POUNDLOCK_TSAN_H

#ifdef __cplusplus
extern "C" {
#endif

/* Of the runtime: sanitizer/tsan_interface.h, which not every compiler installs. */
void __tsan_mutex_create(void *lock, unsigned flags);
void __tsan_mutex_destroy(void *lock, unsigned flags);
void __tsan_mutex_pre_lock(void *lock, unsigned flags);
void __tsan_mutex_post_lock(void *lock, unsigned flags, int recursion);
int __tsan_mutex_pre_unlock(void *lock, unsigned flags);
void __tsan_mutex_post_unlock(void *lock, unsigned flags);
void __tsan_acquire(void *object);
void __tsan_release(void *object);

enum {
	POUND_TSAN_STATIC = 1 << 0, /* needs no creation and no destruction */
	POUND_TSAN_RECURSIVE = 1 << 1,
	POUND_TSAN_READ = 1 << 3,
	POUND_TSAN_TRY = 1 << 4,
	POUND_TSAN_FAILED = 1 << 5,
	POUND_TSAN_MADE = 1 << 8, /* by pound_lock_init() */
};

static inline void pound_tsan_took(void *lock, unsigned flags, bool locked)
{
	__tsan_mutex_post_lock(lock, locked ? flags : flags | POUND_TSAN_FAILED, 0);
}

static inline void pound_tsan_left(void *lock, unsigned flags)
{
	(void)__tsan_mutex_pre_unlock(lock, flags);
	__tsan_mutex_post_unlock(lock, flags);
}

/* name##_tsan() calls name(), of each type that a locking function of poundlock.h has. */
#define POUND_TSAN_LOCK(name, type, flags)              \
	static inline void name##_tsan(type *lock)      \
	{                                               \
		__tsan_mutex_pre_lock(lock, flags);     \
		name(lock);                             \
		__tsan_mutex_post_lock(lock, flags, 0); \
	}
#define POUND_TSAN_TRYLOCK(name, type, flags)                            \
	static inline bool name##_tsan(type *lock)                       \
	{                                                                \
		bool locked;                                             \
                                                                         \
		__tsan_mutex_pre_lock(lock, (flags) | POUND_TSAN_TRY);   \
		locked = name(lock);                                     \
		pound_tsan_took(lock, (flags) | POUND_TSAN_TRY, locked); \
		return locked;                                           \
	}
#define POUND_TSAN_TIMEDLOCK(name, type, flags)                              \
	static inline int name##_tsan(type *lock, clockid_t clock,           \
				      const struct timespec *deadline)       \
	{                                                                    \
		int error;                                                   \
                                                                             \
		__tsan_mutex_pre_lock(lock, (flags) | POUND_TSAN_TRY);       \
		error = name(lock, clock, deadline);                         \
		pound_tsan_took(lock, (flags) | POUND_TSAN_TRY, error == 0); \
		return error;                                                \
	}
#define POUND_TSAN_LOCK_OR_FAIL(name, type, flags)        \
	static inline int name##_tsan(type *lock)         \
	{                                                 \
		int error;                                \
                                                          \
		__tsan_mutex_pre_lock(lock, flags);       \
		error = name(lock);                       \
		pound_tsan_took(lock, flags, error == 0); \
		return error;                             \
	}
#define POUND_TSAN_UNLOCK(name, type, flags)                \
	static inline void name##_tsan(type *lock)          \
	{                                                   \
		(void)__tsan_mutex_pre_unlock(lock, flags); \
		name(lock);                                 \
		__tsan_mutex_post_unlock(lock, flags);      \
	}

POUND_TSAN_LOCK(pound_mutex_lock, pound_mutex_t, POUND_TSAN_STATIC)
POUND_TSAN_TRYLOCK(pound_mutex_trylock, pound_mutex_t, POUND_TSAN_STATIC)
POUND_TSAN_TIMEDLOCK(pound_mutex_timedlock, pound_mutex_t, POUND_TSAN_STATIC)
POUND_TSAN_UNLOCK(pound_mutex_unlock, pound_mutex_t, POUND_TSAN_STATIC)
#define pound_mutex_lock pound_mutex_lock_tsan
#define pound_mutex_trylock pound_mutex_trylock_tsan
#define pound_mutex_timedlock pound_mutex_timedlock_tsan
#define pound_mutex_unlock pound_mutex_unlock_tsan

static inline int pound_lock_init_tsan(pound_lock_t *lock, const char *spec, char *error,
				       size_t size)
{
	int wrong = pound_lock_init(lock, spec, error, size);

	if (!wrong)
		__tsan_mutex_create(lock, POUND_TSAN_MADE);
	return wrong;
}

static inline void pound_lock_destroy_tsan(pound_lock_t *lock)
{
	__tsan_mutex_destroy(lock, POUND_TSAN_MADE);
	pound_lock_destroy(lock);
}

POUND_TSAN_LOCK(pound_lock_lock, pound_lock_t, 0)
POUND_TSAN_TRYLOCK(pound_lock_trylock, pound_lock_t, 0)
POUND_TSAN_TIMEDLOCK(pound_lock_timedlock, pound_lock_t, 0)
POUND_TSAN_UNLOCK(pound_lock_unlock, pound_lock_t, 0)
#define pound_lock_init pound_lock_init_tsan
#define pound_lock_destroy pound_lock_destroy_tsan
#define pound_lock_lock pound_lock_lock_tsan
#define pound_lock_trylock pound_lock_trylock_tsan
#define pound_lock_timedlock pound_lock_timedlock_tsan
#define pound_lock_unlock pound_lock_unlock_tsan

#define POUND_TSAN_READER (POUND_TSAN_STATIC | POUND_TSAN_READ)
POUND_TSAN_LOCK_OR_FAIL(pound_rwlock_rdlock, pound_rwlock_t, POUND_TSAN_READER)
POUND_TSAN_TRYLOCK(pound_rwlock_tryrdlock, pound_rwlock_t, POUND_TSAN_READER)
POUND_TSAN_TIMEDLOCK(pound_rwlock_timedrdlock, pound_rwlock_t, POUND_TSAN_READER)
POUND_TSAN_LOCK_OR_FAIL(pound_rwlock_rdlock_again, pound_rwlock_t, POUND_TSAN_READER)
POUND_TSAN_TRYLOCK(pound_rwlock_tryrdlock_again, pound_rwlock_t, POUND_TSAN_READER)
POUND_TSAN_TIMEDLOCK(pound_rwlock_timedrdlock_again, pound_rwlock_t, POUND_TSAN_READER)
POUND_TSAN_UNLOCK(pound_rwlock_rdunlock, pound_rwlock_t, POUND_TSAN_READER)
POUND_TSAN_LOCK(pound_rwlock_wrlock, pound_rwlock_t, POUND_TSAN_STATIC)
POUND_TSAN_TRYLOCK(pound_rwlock_trywrlock, pound_rwlock_t, POUND_TSAN_STATIC)
POUND_TSAN_TIMEDLOCK(pound_rwlock_timedwrlock, pound_rwlock_t, POUND_TSAN_STATIC)
POUND_TSAN_UNLOCK(pound_rwlock_wrunlock, pound_rwlock_t, POUND_TSAN_STATIC)
#define pound_rwlock_rdlock pound_rwlock_rdlock_tsan
#define pound_rwlock_tryrdlock pound_rwlock_tryrdlock_tsan
#define pound_rwlock_timedrdlock pound_rwlock_timedrdlock_tsan
#define pound_rwlock_rdlock_again pound_rwlock_rdlock_again_tsan
#define pound_rwlock_tryrdlock_again pound_rwlock_tryrdlock_again_tsan
#define pound_rwlock_timedrdlock_again pound_rwlock_timedrdlock_again_tsan
#define pound_rwlock_rdunlock pound_rwlock_rdunlock_tsan
#define pound_rwlock_wrlock pound_rwlock_wrlock_tsan
#define pound_rwlock_trywrlock pound_rwlock_trywrlock_tsan
#define pound_rwlock_timedwrlock pound_rwlock_timedwrlock_tsan
#define pound_rwlock_wrunlock pound_rwlock_wrunlock_tsan

/*
 * A wait releases the lock before the library does and takes it after the library has. A lock of
 * pound_cond_wait_any() reports its own operations: the program's functions are instrumented.
 */
#define POUND_TSAN_WAIT(name, type, flags)                             \
	static inline void name##_tsan(pound_cond_t *cond, type *lock) \
	{                                                              \
		pound_tsan_left(lock, flags);                          \
		__tsan_mutex_pre_lock(lock, flags);                    \
		name(cond, lock);                                      \
		__tsan_mutex_post_lock(lock, flags, 0);                \
	}
#define POUND_TSAN_TIMEDWAIT(name, type, flags)                                        \
	static inline int name##_tsan(pound_cond_t *cond, type *lock, clockid_t clock, \
				      const struct timespec *deadline)                 \
	{                                                                              \
		int error;                                                             \
                                                                                       \
		pound_tsan_left(lock, flags);                                          \
		__tsan_mutex_pre_lock(lock, flags);                                    \
		error = name(cond, lock, clock, deadline);                             \
		__tsan_mutex_post_lock(lock, flags, 0);                                \
		return error;                                                          \
	}

POUND_TSAN_WAIT(pound_cond_wait, pound_mutex_t, POUND_TSAN_STATIC)
POUND_TSAN_TIMEDWAIT(pound_cond_timedwait, pound_mutex_t, POUND_TSAN_STATIC)
POUND_TSAN_WAIT(pound_cond_wait_lock, pound_lock_t, 0)
POUND_TSAN_TIMEDWAIT(pound_cond_timedwait_lock, pound_lock_t, 0)
POUND_TSAN_WAIT(pound_cond_wait_wrlock, pound_rwlock_t, POUND_TSAN_STATIC)
POUND_TSAN_TIMEDWAIT(pound_cond_timedwait_wrlock, pound_rwlock_t, POUND_TSAN_STATIC)
#define pound_cond_wait pound_cond_wait_tsan
#define pound_cond_timedwait pound_cond_timedwait_tsan
#define pound_cond_wait_lock pound_cond_wait_lock_tsan
#define pound_cond_timedwait_lock pound_cond_timedwait_lock_tsan
#define pound_cond_wait_wrlock pound_cond_wait_wrlock_tsan
#define pound_cond_timedwait_wrlock pound_cond_timedwait_wrlock_tsan

#define POUND_TSAN_OWNER (POUND_TSAN_STATIC | POUND_TSAN_RECURSIVE)
POUND_TSAN_LOCK_OR_FAIL(pound_recursive_mutex_lock, pound_recursive_mutex_t, POUND_TSAN_OWNER)
POUND_TSAN_TRYLOCK(pound_recursive_mutex_trylock, pound_recursive_mutex_t, POUND_TSAN_OWNER)
POUND_TSAN_TIMEDLOCK(pound_recursive_mutex_timedlock, pound_recursive_mutex_t, POUND_TSAN_OWNER)
POUND_TSAN_UNLOCK(pound_recursive_mutex_unlock, pound_recursive_mutex_t, POUND_TSAN_OWNER)
#define pound_recursive_mutex_lock pound_recursive_mutex_lock_tsan
#define pound_recursive_mutex_trylock pound_recursive_mutex_trylock_tsan
#define pound_recursive_mutex_timedlock pound_recursive_mutex_timedlock_tsan
#define pound_recursive_mutex_unlock pound_recursive_mutex_unlock_tsan

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

static inline void pound_once_tsan(pound_once_t *once, void (*function)(void *argument),
				   void *argument)
{
	struct pound_tsan_run run = {once, function, argument};

	pound_once(once, pound_tsan_run_once, &run);
	__tsan_acquire(once);
}

static inline bool pound_once_begin_tsan(pound_once_t *once)
{
	bool begun = pound_once_begin(once);

	__tsan_acquire(once);
	return begun;
}

static inline void pound_once_end_tsan(pound_once_t *once, bool completed)
{
	__tsan_release(once);
	pound_once_end(once, completed);
}

static inline void pound_sem_wait_tsan(pound_sem_t *sem)
{
	pound_sem_wait(sem);
	__tsan_acquire(sem);
}

static inline bool pound_sem_trywait_tsan(pound_sem_t *sem)
{
	bool taken = pound_sem_trywait(sem);

	if (taken)
		__tsan_acquire(sem);
	return taken;
}

static inline int pound_sem_timedwait_tsan(pound_sem_t *sem, clockid_t clock,
					   const struct timespec *deadline)
{
	int error = pound_sem_timedwait(sem, clock, deadline);

	if (!error)
		__tsan_acquire(sem);
	return error;
}

static inline int pound_sem_post_tsan(pound_sem_t *sem, uint32_t count)
{
	__tsan_release(sem);
	return pound_sem_post(sem, count);
}

/* With arguments, since it is also the name of a struct. */
#define pound_once(once, function, argument) pound_once_tsan(once, function, argument)
#define pound_once_begin pound_once_begin_tsan
#define pound_once_end pound_once_end_tsan
#define pound_sem_wait pound_sem_wait_tsan
#define pound_sem_trywait pound_sem_trywait_tsan
#define pound_sem_timedwait pound_sem_timedwait_tsan
#define pound_sem_post pound_sem_post_tsan

#ifdef __cplusplus
}
#endif

#endif
