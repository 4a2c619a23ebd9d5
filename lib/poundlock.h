/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Poundlock: scalable, fair and compact locks for the threads of one process.
 *
 *   pound_mutex_t   the default, 32 bytes: a blocking, NUMA-aware mutex (ShflLock, SOSP'19, 4.2.2)
 *   pound_lock_t    any lock by name, for comparisons and for programs that let their users choose
 *   pound_rwlock_t  any readers-writer lock by name; the default is ShflLock's (4.2.3)
 *   pound_cond_t    a condition variable for each of them, 16 bytes
 *   pound_once_t    initialisation that runs once, 4 bytes
 *   pound_sem_t     a counting semaphore, 8 bytes
 *   pound_recursive_mutex_t  the default mutex for threads that lock it again, 40 bytes
 *
 * All-zero memory is an unlocked lock of each type, a pound_cond_t without waiters, a pound_once_t
 * that has not run, and a pound_sem_t of value 0. A pound_lock_t that names another lock than the
 * default is the only one that may need destroying (pound_lock_destroy()).
 *
 * ThreadSanitizer sees them in code that is compiled with -fsanitize=thread. Code that is compiled
 * with -DPOUNDLOCK_DEBUG has its use of the locks checked (docs/debugging.md).
 *
 * No function calls malloc, changes errno, or is a cancellation point. A signal handler may call
 * pound_sem_post(), pound_sem_trywait() and pound_sem_value(), and no other function. A thread that
 * has locked and unlocked a lock may free its memory at once, if no other thread uses the lock
 * from then on.
 */
#ifndef POUNDLOCK_H
#define POUNDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h> /* clockid_t, which time.h lacks in strict ISO C */
#include <time.h>

/* The release of this header: what CMake, pkg-config and the crates have too. */
#define POUNDLOCK_VERSION_MAJOR 0
#define POUNDLOCK_VERSION_MINOR 1
#define POUNDLOCK_VERSION_PATCH 0
/* For comparing: 1.2.3 is 10203. */
#define POUNDLOCK_VERSION \
	(POUNDLOCK_VERSION_MAJOR * 10000 + POUNDLOCK_VERSION_MINOR * 100 + POUNDLOCK_VERSION_PATCH)

#if defined(__has_include) && __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define POUND_ALONE __libc_single_threaded
#else
#define POUND_ALONE 0
#endif

/*
 * pthread_cond_wait() and others must not be called with the types of this file: in C, pointers of
 * incompatible types are an error from here on, as in C++ and by default in gcc 14. Define
 * POUNDLOCK_KEEP_WARNINGS for your compiler's default.
 */
#if !defined(__cplusplus) && !defined(POUNDLOCK_KEEP_WARNINGS)
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * The fields are private, except `embedder`. They are here so that an uncontended lock or unlock
 * compiles to one atomic instruction without a call.
 */
typedef struct pound_mutex {
	void *pound_tail;
	void *pound_heir;
	uint32_t embedder; /* free for the program's own use: no function here reads or writes it */
	uint32_t pound_state;
	uint32_t pound_generation;
} pound_mutex_t;

#define POUND_MUTEX_INIT      \
	{                     \
		0, 0, 0, 0, 0 \
	}

/*
 * Private: the fast path, which lib/fast_path.c holds equal to core/shfl_mutex.h's. @alone is
 * POUND_ALONE, or the same known from elsewhere.
 */
#define POUND_MUTEX_FREE 0u
#define POUND_MUTEX_LOCKED 1u
#define POUND_MUTEX_TAKE_ORDER __ATOMIC_ACQUIRE
#define POUND_MUTEX_RELEASE_ORDER __ATOMIC_RELEASE

/* The parts that wait, or find waiters. */
bool pound_mutex_trylock_slow(pound_mutex_t *mutex, uint32_t seen);
void pound_mutex_lock_slow(pound_mutex_t *mutex);
void pound_mutex_unlock_slow(pound_mutex_t *mutex);

/*
 * Changes @word from *@seen to @to. False if it has another value, which *@seen is then. Not atomic
 * in a process of one thread, where it need not be: as in glibc.
 */
static inline bool pound_word_change(uint32_t *word, uint32_t *seen, uint32_t to, int order,
				     bool alone)
{
	uint32_t was;

	if (!alone)
		return __atomic_compare_exchange_n(word, seen, to, false, order, __ATOMIC_RELAXED);
	was = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (was != *seen) {
		*seen = was;
		return false;
	}
	__atomic_store_n(word, to, __ATOMIC_RELAXED);
	return true;
}

/* FREE -> LOCKED. False if the state is another one: *@seen. */
static inline bool pound_mutex_take_free(pound_mutex_t *mutex, uint32_t *seen, bool alone)
{
	*seen = POUND_MUTEX_FREE;
	return pound_word_change(&mutex->pound_state, seen, POUND_MUTEX_LOCKED,
				 POUND_MUTEX_TAKE_ORDER, alone);
}

/* LOCKED -> FREE. False if the state is another one: there are waiters. */
static inline bool pound_mutex_release_alone(pound_mutex_t *mutex, bool alone)
{
	uint32_t seen = POUND_MUTEX_LOCKED;

	return pound_word_change(&mutex->pound_state, &seen, POUND_MUTEX_FREE,
				 POUND_MUTEX_RELEASE_ORDER, alone);
}

/* Locks @mutex if it is free and not reserved for a waiter. Returns whether it did. Never waits. */
static inline bool pound_mutex_trylock(pound_mutex_t *mutex)
{
	uint32_t seen;

	return __builtin_expect(pound_mutex_take_free(mutex, &seen, POUND_ALONE), 1) ||
	       pound_mutex_trylock_slow(mutex, seen);
}

/*
 * Locks @mutex. A thread that finds it locked spins for a short while, then sleeps. Not recursive.
 */
static inline void pound_mutex_lock(pound_mutex_t *mutex)
{
	uint32_t seen;

	if (__builtin_expect(!pound_mutex_take_free(mutex, &seen, POUND_ALONE), 0))
		pound_mutex_lock_slow(mutex);
}

/*
 * Locks @mutex, or gives up at @deadline, an absolute time on @clock (CLOCK_REALTIME or
 * CLOCK_MONOTONIC). Returns 0; ETIMEDOUT if the deadline passed first; EINVAL if the mutex was not
 * free and the clock is another one or tv_nsec is not within 0 to 999,999,999.
 */
int pound_mutex_timedlock(pound_mutex_t *mutex, clockid_t clock, const struct timespec *deadline);

/* Unlocks @mutex, which is locked, by this thread or by another one. */
static inline void pound_mutex_unlock(pound_mutex_t *mutex)
{
	if (__builtin_expect(!pound_mutex_release_alone(mutex, POUND_ALONE), 0))
		pound_mutex_unlock_slow(mutex);
}

/*
 * As pound_mutex_unlock(), but leaves @mutex to the first waiter if there is one: no other thread
 * can lock it before that waiter. Costs throughput, because the waiter may have to wake up first. A
 * waiter that gives up at its deadline at the same time may open the mutex to others.
 */
void pound_mutex_unlock_fair(pound_mutex_t *mutex);

/* Any lock by name. All bytes zero: the default, unlocked. The fields are private. */
typedef struct pound_lock {
	uint64_t pound_bytes[4];
	const void *pound_ops;
} pound_lock_t;

#define POUND_LOCK_INIT \
	{               \
		{0}, 0  \
	}

/*
 * Initialises @lock, unlocked, as @spec specifies: NAME[,KEY=VALUE...], e.g. "mcs,wait=spin".
 * `poundlock list`, pound_lock_info() and pound_lock_setting() list names, keys and values.
 *
 * The settings are the lock's own; keys that @spec does not name have their defaults. Locks of the
 * same specification share one immutable block of settings, which is never freed.
 *
 * Any thread may call it at any time. Returns 0; or EINVAL if @spec is wrong, ENOSPC if the process
 * has used 1,024 other specifications, and one line of text in @error (up to @size bytes with the
 * final zero; may be NULL if @size is 0). The lock must not be used then.
 */
int pound_lock_init(pound_lock_t *lock, const char *spec, char *error, size_t size);

/* Returns 0 if @spec is right; otherwise EINVAL, and one line of text in @error. */
int pound_lock_check(const char *spec, char *error, size_t size);

/*
 * Frees what @lock, which is unlocked and used by no thread, has outside its own memory: nothing
 * unless pound_lock_info() reports `boxed`, or it has a policy of the program. @lock is zeroed.
 */
void pound_lock_destroy(pound_lock_t *lock);

/*
 * As the functions for pound_mutex_t, but ticket polls until the deadline instead of queueing: it
 * cannot leave the queue.
 */
void pound_lock_lock(pound_lock_t *lock);
bool pound_lock_trylock(pound_lock_t *lock);
int pound_lock_timedlock(pound_lock_t *lock, clockid_t clock, const struct timespec *deadline);
/*
 * Another thread than the one that locked it may call it, if that one no longer uses the lock as
 * its holder.
 */
void pound_lock_unlock(pound_lock_t *lock);
/*
 * As pound_mutex_unlock_fair() if @lock is shfl_mutex, which is the default. Other locks keep the
 * order that pound_lock_info() reports: the same as pound_lock_unlock().
 */
void pound_lock_unlock_fair(pound_lock_t *lock);

/*
 * Any readers-writer lock by name. All bytes zero: the default, unlocked. The fields are private.
 *
 * A reader cannot become the writer: two readers that both wait for that would wait for each other.
 * It unlocks, locks for writing, and tests again what it has read.
 */
typedef struct pound_rwlock {
	uint64_t pound_bytes[6];
	const void *pound_ops;
} pound_rwlock_t;

#define POUND_RWLOCK_INIT \
	{                 \
		{0}, 0    \
	}

/*
 * As pound_lock_init() and pound_lock_check(), for the locks of pound_rwlock_info(). There is
 * nothing to destroy.
 */
int pound_rwlock_init(pound_rwlock_t *lock, const char *spec, char *error, size_t size);
int pound_rwlock_check(const char *spec, char *error, size_t size);

/*
 * Lock @lock for reading. Not for a thread that holds it for reading already: it may wait for a
 * writer that waits for it. Return 0, or EAGAIN if the lock has 2^27 readers (leaked read locks add
 * up); a try returns false then.
 */
int pound_rwlock_rdlock(pound_rwlock_t *lock);
bool pound_rwlock_tryrdlock(pound_rwlock_t *lock);
/* Deadline and errors as of pound_mutex_timedlock(), or EAGAIN. */
int pound_rwlock_timedrdlock(pound_rwlock_t *lock, clockid_t clock,
			     const struct timespec *deadline);
/* The same for a thread that may hold @lock for reading already: it passes waiting writers. */
int pound_rwlock_rdlock_again(pound_rwlock_t *lock);
bool pound_rwlock_tryrdlock_again(pound_rwlock_t *lock);
int pound_rwlock_timedrdlock_again(pound_rwlock_t *lock, clockid_t clock,
				   const struct timespec *deadline);
/* Ends one read lock of @lock. */
void pound_rwlock_rdunlock(pound_rwlock_t *lock);
/*
 * The same, but the last reader leaves @lock to the first waiter if there is one: no other thread
 * can lock it before that waiter. The exceptions of pound_mutex_unlock_fair() apply.
 */
void pound_rwlock_rdunlock_fair(pound_rwlock_t *lock);

/* Lock @lock for writing; deadline and errors as of pound_mutex_timedlock(). */
void pound_rwlock_wrlock(pound_rwlock_t *lock);
bool pound_rwlock_trywrlock(pound_rwlock_t *lock);
int pound_rwlock_timedwrlock(pound_rwlock_t *lock, clockid_t clock,
			     const struct timespec *deadline);
/* Unlocks @lock, which is locked for writing, by this thread or by another one. */
void pound_rwlock_wrunlock(pound_rwlock_t *lock);
/* The same, but leaves @lock to the first waiter, as pound_rwlock_rdunlock_fair(). */
void pound_rwlock_wrunlock_fair(pound_rwlock_t *lock);

/*
 * Names @lock, of any type of lock of this file or of pthread, in lock statistics
 * (docs/statistics.md) and in reports of POUNDLOCK_DEBUG. Copies up to 31 bytes of @name, with '?'
 * for control characters. NULL or "" removes the name. Two threads must not name the same lock at
 * the same time; other threads may use it meanwhile.
 *
 * The name belongs to the lock's address. pound_lock_init(), pound_rwlock_init() and
 * pound_lock_destroy() remove it. If the memory of another lock may become a lock again, remove the
 * name first.
 *
 * Returns 0, or ENOSPC: there is room for the names of 1,000 locks at least.
 */
int pound_set_name(const void *lock, const char *name);

/*
 * Condition variables: for threads of one process. All bytes zero, or POUND_COND_INIT: no thread
 * waits. There is nothing to destroy. The fields are private.
 */
typedef struct pound_cond {
	void *pound_last;
	uint32_t pound_list;
	uint32_t pound_generation;
} pound_cond_t;

#define POUND_COND_INIT \
	{               \
		0, 0, 0 \
	}

/*
 * Unlocks @mutex, which the calling thread has locked, waits for a signal, and locks @mutex again.
 * No signal is lost between the unlock and the wait. Call it in a loop that tests what is waited
 * for: another thread may have changed that first, and a wait also ends in a child that a signal
 * handler of the waiting thread has forked.
 *
 * The memory of @cond may be freed as soon as every waiter has been signalled, even if they have
 * not returned yet, and no thread is in another call with @cond.
 */
void pound_cond_wait(pound_cond_t *cond, pound_mutex_t *mutex);

/*
 * As pound_cond_wait(), or until @deadline, an absolute time on @clock (CLOCK_REALTIME or
 * CLOCK_MONOTONIC). Returns 0; ETIMEDOUT if the deadline passed first, in which case no signal was
 * consumed; EINVAL if the clock is another one or tv_nsec is not within 0 to 999,999,999, in which
 * case @mutex remained locked. @mutex is locked in all cases.
 */
int pound_cond_timedwait(pound_cond_t *cond, pound_mutex_t *mutex, clockid_t clock,
			 const struct timespec *deadline);

/* The same with a pound_lock_t, and with a pound_rwlock_t that is locked for writing. */
void pound_cond_wait_lock(pound_cond_t *cond, pound_lock_t *lock);
int pound_cond_timedwait_lock(pound_cond_t *cond, pound_lock_t *lock, clockid_t clock,
			      const struct timespec *deadline);
void pound_cond_wait_wrlock(pound_cond_t *cond, pound_rwlock_t *lock);
int pound_cond_timedwait_wrlock(pound_cond_t *cond, pound_rwlock_t *lock, clockid_t clock,
				const struct timespec *deadline);

/*
 * The same with any other lock: @type->lock(lock) and @type->unlock(lock) are called as
 * pound_mutex_lock() and pound_mutex_unlock() above. Waiters with the same @lock wake one another
 * after a broadcast, so they must use the same lock.
 */
struct pound_lockable {
	void (*lock)(void *lock);
	void (*unlock)(void *lock);
};
void pound_cond_wait_any(pound_cond_t *cond, void *lock, const struct pound_lockable *type);
int pound_cond_timedwait_any(pound_cond_t *cond, void *lock, const struct pound_lockable *type,
			     clockid_t clock, const struct timespec *deadline);

/*
 * As pound_cond_timedwait_any(), or without a deadline if that is NULL, for a @cond whose waiters
 * all use this function and, at a time, the same lock: it returns EBUSY, and @lock remained locked,
 * if another thread waits with another one.
 */
int pound_cond_wait_only(pound_cond_t *cond, void *lock, const struct pound_lockable *type,
			 clockid_t clock, const struct timespec *deadline);

/*
 * Private: returns whether there is nobody to wake, nor a leaving waiter that may access @cond
 * again. lib/fast_path.c holds it equal to core/cond.h's.
 */
#define POUND_COND_ORDER __ATOMIC_ACQUIRE
static inline bool pound_cond_idle(pound_cond_t *cond)
{
	return !__atomic_load_n(&cond->pound_last, POUND_COND_ORDER) &&
	       !__atomic_load_n(&cond->pound_list, POUND_COND_ORDER);
}

/* The same as the functions without `_slow`, not inlined. */
bool pound_cond_signal_slow(pound_cond_t *cond);
size_t pound_cond_broadcast_slow(pound_cond_t *cond);

/*
 * pound_cond_signal() wakes the thread that has waited longest and returns whether there was one.
 * pound_cond_broadcast() wakes all threads that wait and returns their number; each wakes the next
 * one when it has locked its lock again, so that they do not all contend for it. The caller need
 * not hold a lock. A signal without a waiter does nothing.
 *
 * Either call may wait for a thread that is leaving at its deadline, for a few instructions of that
 * thread.
 */
static inline bool pound_cond_signal(pound_cond_t *cond)
{
	return !pound_cond_idle(cond) && pound_cond_signal_slow(cond);
}

static inline size_t pound_cond_broadcast(pound_cond_t *cond)
{
	return pound_cond_idle(cond) ? 0 : pound_cond_broadcast_slow(cond);
}

/*
 * Initialisation that runs once. All bytes zero, or POUND_ONCE_INIT: it has not run. There is
 * nothing to destroy. The field is private.
 */
typedef struct pound_once {
	uint32_t pound_state;
} pound_once_t;

#define POUND_ONCE_INIT \
	{               \
		0       \
	}

/* Private: the state after the function has returned. */
#define POUND_ONCE_DONE 2u

/* Private: whether the function has returned; what it wrote is then visible. */
static inline bool pound_once_done(pound_once_t *once)
{
	return __atomic_load_n(&once->pound_state, __ATOMIC_ACQUIRE) == POUND_ONCE_DONE;
}

/* The parts that may run the function, or wait for it. */
bool pound_once_begin_slow(pound_once_t *once);
void pound_once_slow(pound_once_t *once, void (*function)(void *argument), void *argument);

/*
 * Calls function(argument) unless a call has returned from one before. Waits while another thread
 * calls it: spins for a short while, then sleeps.
 *
 * A thread that ends within the function, by pthread_exit() or cancellation, leaves @once as if it
 * had not called it: a thread that waits calls its function instead. The function must not jump out
 * (longjmp()) or throw an exception, which pound::call_once() allows, nor call pound_once() with
 * the same @once: all threads would wait indefinitely.
 *
 * A child that is forked while the function runs starts again: its next call calls the function. If
 * the function itself forks, the child may also return from it, which completes @once.
 */
static inline void pound_once(pound_once_t *once, void (*function)(void *argument), void *argument)
{
	if (__builtin_expect(!pound_once_done(once), 0))
		pound_once_slow(once, function, argument);
}

/*
 * The two halves of pound_once(), for languages and functions of other kinds. If pound_once_begin()
 * returns true, the caller must initialise and then call pound_once_end(): @completed, or else as
 * if it had not begun. If it returns false, @once is completed.
 */
static inline bool pound_once_begin(pound_once_t *once)
{
	return __builtin_expect(!pound_once_done(once), 0) && pound_once_begin_slow(once);
}
void pound_once_end(pound_once_t *once, bool completed);

/*
 * Counting semaphores, for threads of one process. All bytes zero: the value is 0. There is
 * nothing to destroy. The fields are private.
 */
typedef struct pound_sem {
	uint32_t pound_state;
	uint32_t pound_waiters;
} pound_sem_t;

/* The highest value. */
#define POUND_SEM_MAX 0x7fffffffu

/* A semaphore of value @value, at most POUND_SEM_MAX. */
#define POUND_SEM_INIT(value) \
	{                     \
		(value), 0    \
	}

/* The same at run time. Returns 0, or EINVAL if @value exceeds POUND_SEM_MAX. */
int pound_sem_init(pound_sem_t *sem, uint32_t value);

/*
 * Wait until the value of @sem is not 0, and decrease it by 1. pound_sem_wait() spins for a short
 * while, then sleeps; it does not return early for signals. pound_sem_trywait() returns false
 * instead of waiting. pound_sem_timedwait(): deadline and errors as of pound_mutex_timedlock().
 *
 * Waiters are not served in order, and any number of others may overtake one.
 */
void pound_sem_wait(pound_sem_t *sem);
bool pound_sem_trywait(pound_sem_t *sem);
int pound_sem_timedwait(pound_sem_t *sem, clockid_t clock, const struct timespec *deadline);

/*
 * Increases the value of @sem by @count, and wakes as many waiters. Never waits. Returns 0, or
 * EOVERFLOW if the value would exceed POUND_SEM_MAX: it remains as it was.
 *
 * A thread whose wait the post ends may free the memory of @sem at once, although the post may not
 * have returned, if no thread uses @sem from then on.
 */
int pound_sem_post(pound_sem_t *sem, uint32_t count);

/* Returns the value, which other threads may change at any time. */
uint32_t pound_sem_value(const pound_sem_t *sem);

/*
 * A pound_mutex_t that its owner may lock again, and must unlock as often. All bytes zero, or
 * POUND_RECURSIVE_MUTEX_INIT: unlocked. There is nothing to destroy. The fields are private, except
 * pound_mutex.embedder.
 */
typedef struct pound_recursive_mutex {
	pound_mutex_t pound_mutex;
	struct pound_recursion {
		uint32_t pound_owner;
		uint32_t pound_depth;
	} pound_recursion;
} pound_recursive_mutex_t;

#define POUND_RECURSIVE_MUTEX_INIT \
	{                          \
		POUND_MUTEX_INIT,  \
		{                  \
			0, 0       \
		}                  \
	}

/*
 * As the functions for pound_mutex_t, but the owner never waits: it locks @mutex once more, and
 * only the last unlock frees it. Return 0, or EAGAIN if the owner has locked it 2^32 times; a try
 * returns false then. The thread that locked it must unlock it. In a forked child, the thread that
 * forked still owns it.
 */
int pound_recursive_mutex_lock(pound_recursive_mutex_t *mutex);
bool pound_recursive_mutex_trylock(pound_recursive_mutex_t *mutex);
int pound_recursive_mutex_timedlock(pound_recursive_mutex_t *mutex, clockid_t clock,
				    const struct timespec *deadline);
void pound_recursive_mutex_unlock(pound_recursive_mutex_t *mutex);

/*
 * Shares of a lock's time, for the locks and policies that account for it: cfl_spin, cfl_mutex,
 * policy=fair, policy=group (CFL, PPoPP'24 section 3). Each function concerns the calling thread.
 *
 * A thread's share is proportional to its weight. By default that is the kernel's weight of its
 * nice value (1024 at nice 0, a quarter more or less per level), read at the thread's first wait.
 * pound_thread_weight() sets another one, of at least 1; 0 restores the default, and reads the nice
 * value again.
 *
 * A thread's group is by default its cgroup, read at its first wait, with the weight of cpu.weight
 * or cpu.shares. pound_thread_tenant() puts it into tenant @id instead, a group of all threads that
 * name the same id; the latest @weight holds for the tenant (1024: that of a cgroup by default).
 * Returns 0; EINVAL if @weight is 0; ENOSPC if the process has had 63 groups, in which case the
 * thread is in no group. pound_thread_leave_tenant() puts it back into its cgroup.
 *
 * pound_thread_group() returns the thread's group for pound_thread_return(), which puts the thread
 * back into it: a function that names a tenant so leaves its caller's as it was.
 */
void pound_thread_weight(uint32_t weight);
int pound_thread_tenant(uint64_t id, uint32_t weight);
void pound_thread_leave_tenant(void);
uint32_t pound_thread_group(void);
void pound_thread_return(uint32_t group);

/*
 * The program's own policies for the order of a shuffled lock's waiters, by name:
 * "shfl,policy=NAME" and "shfl_spin,policy=NAME" (shuffling: ShflLock, SOSP'19 section 4).
 *
 *   note(context, lock)
 *     Called by each thread that has to wait, once, before it is queued. Returns the waiter's note.
 *     @lock is the lock's address, for identification only.
 *
 *   rank(context, shuffler, waiter)
 *     Called by one waiter of a lock at a time, the shuffler, while the lock is held, for its own
 *     note and that of a waiter behind it, or for one of them twice. Returns POUND_STAY, which
 *     leaves the waiter in its place, or a smaller number, which moves it forward behind the
 *     shuffler: smaller numbers first, equal ones in order of arrival. While waiters whose number
 *     is smaller than the shuffler's own come forward, others stay. So do always those with a
 *     greater one, if it is also their own.
 *
 * Threads that wait for different locks call both functions at the same time: access to what
 * @context points to must be atomic. A call delays a waiter that is about to get the lock, so it
 * must return soon. It must not wait, call this library, fork, end the thread or jump out, nor take
 * a lock that the lock's holder may wait for.
 *
 * No return value breaks mutual exclusion, loses a waiter, or lets one be bypassed more often than
 * twice the setting `batch`.
 *
 * pound_policy_register() registers a copy of @policy, or replaces the one of that name. Returns 0;
 * EBUSY if a lock was initialised with the policy of that name and has not been destroyed, or
 * another thread registers the name; EINVAL if @name is a policy of the library, empty, longer than
 * 31 bytes, or contains a comma, a space or '='; ENOSPC after 32 names, also removed ones.
 * pound_policy_unregister() removes a policy: nothing calls its functions any more. Returns 0;
 * EBUSY as above; ENOENT if there is none.
 *
 * Any thread may call both at any time. pound_lock_init() with that name may fail meanwhile. A
 * forked child has the policies of its parent.
 */
#define POUND_STAY UINT32_MAX
struct pound_policy {
	uint32_t (*note)(void *context, const void *lock);
	uint32_t (*rank)(void *context, uint32_t shuffler, uint32_t waiter);
	void *context;
};
int pound_policy_register(const char *name, const struct pound_policy *policy);
int pound_policy_unregister(const char *name);

/* Facts about a lock. Sizes are in bytes. */
struct pound_lock_info {
	const char *name;
	const char *wait;    /* the default of the key `wait`: "spin", "yield" or "park" */
	const char *promise; /* the order of waiters */
	const char *paper;
	const char *keys; /* of its settings, comma-separated */
	bool boxed;       /* larger than a pound_lock_t, which holds a pointer to it instead */
	size_t bytes_per_lock;
	size_t bytes_per_waiter;
	size_t bytes_per_holder;
	/*
	 * Atomic read-modify-writes per acquisition and release, counted by tests/count; NaN if not
	 * counted. Uncontended, and the mean of four threads that contend all the time. Of a
	 * readers-writer lock: as a writer, and the mean of threads that write every other time.
	 */
	double atomics_alone;
	double atomics_contended;
	double atomics_reading; /* of a readers-writer lock: uncontended, as a reader; else NaN */
};

/*
 * The @index-th lock, or NULL past the last. The result is valid until the calling thread's next
 * call.
 */
const struct pound_lock_info *pound_lock_info(size_t index);

/* The same for readers-writer locks. */
const struct pound_lock_info *pound_rwlock_info(size_t index);

/* A setting of a lock. Its choices exclude the policies that the program has registered. */
struct pound_setting {
	const char *key;
	const char *choices; /* the values' names, from 0 on, space-separated; "": numbers */
	uint32_t by_default;
	uint32_t least;
	uint32_t most;
};

/*
 * The @index-th setting, except `wait`, of the lock or readers-writer lock called @lock, or NULL
 * past the last. The result is valid until the calling thread's next call.
 */
const struct pound_setting *pound_lock_setting(const char *lock, size_t index);

/*
 * Counts of the locks' events in this process since pound_events_start(): the name, meaning and
 * count of the @index-th event of core/events.def. Name and meaning are NULL past the last, the
 * count is 0.
 */
void pound_events_start(void);
const char *pound_event_name(size_t index);
const char *pound_event_meaning(size_t index);
uint64_t pound_event_count(size_t index);

/*
 * The number, from 0, of the locality domain that the calling thread runs in. POUNDLOCK_DOMAIN
 * selects which CPUs form a domain. The thread may move to another one at any time.
 */
unsigned pound_domain(void);

/*
 * The route (RON, OSDI'23): the CPUs that the process could use when it began, in the order in
 * which locks with a route hand over. pound_route() stores up to @size of them in @cpus, and
 * returns how many there are. pound_route_file() returns the path of the file that the route was
 * read from, or NULL if it was derived from the topology.
 */
size_t pound_route(unsigned *cpus, size_t size);
const char *pound_route_file(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/* 1 reports each operation to ThreadSanitizer; 0 where the library itself is instrumented. */
#if !defined(POUND_TSAN) && defined(__SANITIZE_THREAD__)
#define POUND_TSAN 1
#elif !defined(POUND_TSAN) && defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define POUND_TSAN 1
#endif
#endif
#if defined(POUNDLOCK_DEBUG) || (defined(POUND_TSAN) && POUND_TSAN)
#include "poundlock_watch.h"
#endif

#ifdef POUNDLOCK_DEBUG
#define POUND_ASSERT_HELD(lock, flags) pound_debug_assert(lock, flags)
#else
#define POUND_ASSERT_HELD(lock, flags) (void)(lock)
#endif

/*
 * The calling thread holds @lock; the last: for reading or for writing. Checked where
 * POUNDLOCK_DEBUG is defined, and otherwise no code. In a macro, so that a report names the line.
 */
#define pound_mutex_assert_held(mutex) POUND_ASSERT_HELD(mutex, 0)
#define pound_lock_assert_held(lock) POUND_ASSERT_HELD(lock, 0)
#define pound_rwlock_assert_wrheld(lock) POUND_ASSERT_HELD(lock, 0)
#define pound_rwlock_assert_held(lock) POUND_ASSERT_HELD(lock, POUND_WATCH_READ)

#endif
