/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Poundlock: locks that keep their throughput, fairness and size when cores, sockets and threads outnumber what locks
 * are usually made for.
 *
 *   pound_mutex_t  the default: a blocking, NUMA-aware mutex (ShflLock, SOSP'19 section 4.2.2), 32 bytes
 *   pound_lock_t   any lock by name, for comparing and for programs that let their users choose
 *   pound_rwlock_t readers together or one writer: by name, or all zero the default (shfl_rw, section 4.2.3)
 *
 * All are valid when all bytes are zero (POUND_MUTEX_INIT), resp. after pound_lock_init(), need no destroying (but see
 * pound_lock_destroy()), never allocate through malloc, and may be freed by the next owner as soon as it has locked and unlocked them.
 * They are for the threads of one process, also where its memory is shared with others.
 * No function here is async-signal-safe or a cancellation point. None changes errno.
 */
#ifndef POUNDLOCK_H
#define POUNDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__has_include) && __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define POUND_ALONE __libc_single_threaded
#else
#define POUND_ALONE 0
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The fields belong to core/shfl_mutex.h; they are here so that an uncontended lock and unlock compile to one atomic
 * instruction each without a call. */
typedef struct pound_mutex {
	void *pound_tail;
	void *pound_heir;
	uint32_t embedder; /* yours: never touched by the lock */
	uint32_t pound_state;
	uint32_t pound_generation;
	uint32_t pound_spinner;
} pound_mutex_t;

#define POUND_MUTEX_INIT         \
	{                        \
		0, 0, 0, 0, 0, 0 \
	}

bool pound_mutex_trylock_slow(pound_mutex_t *mutex, uint32_t seen);
void pound_mutex_lock_slow(pound_mutex_t *mutex);
void pound_mutex_unlock_slow(pound_mutex_t *mutex);

/* Whether the mutex's state was *@seen, and is @state now; else *@seen is what it was. Not atomic in a process of one
 * thread, where it need not be: as in glibc. */
static inline bool pound_mutex_change(pound_mutex_t *mutex, uint32_t *seen, uint32_t state, int order)
{
	uint32_t was;

	if (!POUND_ALONE)
		return __atomic_compare_exchange_n(&mutex->pound_state, seen, state, false, order, __ATOMIC_RELAXED);
	was = __atomic_load_n(&mutex->pound_state, __ATOMIC_RELAXED);
	if (was != *seen) {
		*seen = was;
		return false;
	}
	__atomic_store_n(&mutex->pound_state, state, __ATOMIC_RELAXED);
	return true;
}

/* Takes @mutex if it is free. Returns whether it did. Never waits. */
static inline bool pound_mutex_trylock(pound_mutex_t *mutex)
{
	uint32_t seen = 0;

	return __builtin_expect(pound_mutex_change(mutex, &seen, 1, __ATOMIC_ACQUIRE), 1) ||
	       pound_mutex_trylock_slow(mutex, seen);
}

/* Takes @mutex, waiting for it if need be: spinning for a short while, then asleep. Not recursive. */
static inline void pound_mutex_lock(pound_mutex_t *mutex)
{
	uint32_t seen = 0;

	if (__builtin_expect(!pound_mutex_change(mutex, &seen, 1, __ATOMIC_ACQUIRE), 0))
		pound_mutex_lock_slow(mutex);
}

/*
 * Takes @mutex, waiting until @deadline, an absolute time on @clock (CLOCK_REALTIME or CLOCK_MONOTONIC), at most.
 * Returns 0; ETIMEDOUT if the deadline passed first; EINVAL if the clock or the deadline's nanoseconds are invalid and
 * the mutex was not free.
 */
int pound_mutex_timedlock(pound_mutex_t *mutex, clockid_t clock, const struct timespec *deadline);

/* Releases @mutex, which the caller's program must hold; any thread may do it. */
static inline void pound_mutex_unlock(pound_mutex_t *mutex)
{
	uint32_t locked = 1;

	if (__builtin_expect(!pound_mutex_change(mutex, &locked, 0, __ATOMIC_RELEASE), 0))
		pound_mutex_unlock_slow(mutex);
}

/* Any lock by name. */
typedef struct pound_lock {
	uint64_t pound_bytes[4];
	const void *pound_ops;
} pound_lock_t;

/*
 * Makes @lock an unlocked lock as @spec says: NAME[,KEY=VALUE...], e.g. "mcs,wait=spin"; `poundlock list` and
 * pound_lock_info() name them. Settings, but for `wait`, are shared by all locks of that name in the process: the keys
 * that @spec names are set for all of them, each atomically by itself, and no others; a waiter has them from its next
 * wait on. Any thread may call it, also while others use such locks. Returns 0, or EINVAL with one line in @error (up to
 * @size bytes; may be NULL with 0) that names what is wrong; nothing is set then.
 */
int pound_lock_init(pound_lock_t *lock, const char *spec, char *error, size_t size);

/* Whether @spec is right, without a lock: what pound_lock_init() would return. Sets nothing. */
int pound_lock_check(const char *spec, char *error, size_t size);

/* Gives back what @lock, which is free and used by nobody, has outside its own memory: something only where
 * pound_lock_info() says boxed. It may be initialised again. */
void pound_lock_destroy(pound_lock_t *lock);
void pound_lock_lock(pound_lock_t *lock);
bool pound_lock_trylock(pound_lock_t *lock);
/* As pound_mutex_timedlock(). A lock that cannot leave its queue (ticket) polls instead of queueing. */
int pound_lock_timedlock(pound_lock_t *lock, clockid_t clock, const struct timespec *deadline);
/* By the thread that locked it, or another one that it handed the ownership to. */
void pound_lock_unlock(pound_lock_t *lock);

/* Any readers-writer lock by name; all bytes zero: an unlocked one of the default. */
typedef struct pound_rwlock {
	uint64_t pound_bytes[6];
	const void *pound_ops;
} pound_rwlock_t;

#define POUND_RWLOCK_INIT \
	{                 \
		{0}, 0    \
	}

/* As pound_lock_init() and pound_lock_check(), with the locks of pound_rwlock_info(). Such a lock needs no destroying. */
int pound_rwlock_init(pound_rwlock_t *lock, const char *spec, char *error, size_t size);
int pound_rwlock_check(const char *spec, char *error, size_t size);

/*
 * Enters as a reader. Not for a thread that is one already: it may wait for a writer that waits for it. Returns 0, or
 * EAGAIN if the lock has 2^27 readers: holds that a program forgets add up. The caller is then no reader. A try fails
 * for the same reason.
 */
int pound_rwlock_rdlock(pound_rwlock_t *lock);
bool pound_rwlock_tryrdlock(pound_rwlock_t *lock);
/* As pound_mutex_timedlock(), or EAGAIN. */
int pound_rwlock_timedrdlock(pound_rwlock_t *lock, clockid_t clock, const struct timespec *deadline);
/* The same for a thread that may be a reader of @lock already: they pass writers that wait. */
int pound_rwlock_rdlock_again(pound_rwlock_t *lock);
bool pound_rwlock_tryrdlock_again(pound_rwlock_t *lock);
int pound_rwlock_timedrdlock_again(pound_rwlock_t *lock, clockid_t clock, const struct timespec *deadline);
/* Leaves as a reader. */
void pound_rwlock_rdunlock(pound_rwlock_t *lock);

/* Enters as the writer. */
void pound_rwlock_wrlock(pound_rwlock_t *lock);
bool pound_rwlock_trywrlock(pound_rwlock_t *lock);
int pound_rwlock_timedwrlock(pound_rwlock_t *lock, clockid_t clock, const struct timespec *deadline);
/* Leaves as the writer; any thread may do it. */
void pound_rwlock_wrunlock(pound_rwlock_t *lock);

/*
 * Shares of a lock's time, for the locks and policies that keep them (cfl_spin, cfl_mutex; policy=fair, policy=group).
 *
 * A thread's weight is that of its nice value, 1024 at nice 0 (the kernel's table, a quarter more or less a level), read
 * at its first wait. pound_thread_weight() says another, from 1 on; 0: that of its nice value, read again.
 *
 * Its group is its cgroup, read at its first wait, with the weight of cpu.weight or cpu.shares. pound_thread_tenant() says
 * another: tenant @id of @weight, from 1 on (1024: as a cgroup that was told nothing), shared by all threads that name
 * the id; the weight is the one said last. It returns 0; EINVAL if the weight is 0; ENOSPC if the process has had 63 groups
 * already, in which case the thread is in none. pound_thread_leave_tenant() returns the thread to its cgroup.
 *
 * All are about the calling thread.
 */
void pound_thread_weight(uint32_t weight);
int pound_thread_tenant(uint64_t id, uint32_t weight);
void pound_thread_leave_tenant(void);

/*
 * A policy of your own for the order of a shuffled lock's waiters: what "shfl,policy=own" and "shfl_spin,policy=own" mean.
 *
 *   note(context, lock)                by each thread that has to wait, once, before it is in the queue: what is to be known
 *                                      of it. @lock: the address of the lock (of its bytes), not to be used as one
 *   rank(context, shuffler, waiter)    by one waiter at a time for each lock, the shuffler, while the lock is held, of its
 *                                      own note and that of a waiter behind it: POUND_STAY, which leaves the waiter where
 *                                      it is, or a smaller number, which brings it forward behind the shuffler: smaller
 *                                      ones first, equals in the order of arrival
 *
 * Both may be called by any number of threads at once (of different locks). They must return, soon: the time is that of
 * a waiter, but one that is about to get the lock. They must not lock or unlock anything that the lock's holder may wait
 * for, wait, call into this library, fork, end the thread, or jump out. They may read and write what @context leads to,
 * with atomic operations where that is shared.
 *
 * Whatever they answer, the same or another each time, nobody holds the lock together with another, no waiter is lost,
 * and none is passed more often than twice the lock's key `batch`.
 *
 * Returns 0, or EBUSY if the process has one already: it stays for good.
 */
#define POUND_STAY UINT32_MAX
struct pound_policy {
	uint32_t (*note)(void *context, const void *lock);
	uint32_t (*rank)(void *context, uint32_t shuffler, uint32_t waiter);
	void *context;
};
int pound_policy_use(const struct pound_policy *policy);

/* What is known of a lock, from core/locks.def and the compiler. Sizes in bytes. */
struct pound_lock_info {
	const char *name;
	const char *wait;    /* the default way of waiting: "spin", "yield" or "park" */
	const char *promise; /* about the order of waiters */
	const char *paper;
	const char *keys; /* the settings it takes, comma-separated */
	bool boxed;       /* too large for a pound_lock_t or pthread_mutex_t: lies behind a pointer there */
	size_t bytes_per_lock;
	size_t bytes_per_waiter;
	size_t bytes_per_holder;
	/* Atomic read-modify-writes of an acquisition and release, as counted by tests/count: alone, and the mean of four
	 * threads that all want the lock all the time. Of a readers-writer lock: alone as a writer, and of threads that
	 * write every other time. NaN where that was not counted. */
	double atomics_alone;
	double atomics_contended;
	double atomics_reading; /* of a readers-writer lock: alone as a reader; else NaN */
};

/* The @index-th lock, or NULL past the last. What it returns is the calling thread's, until it asks for another. */
const struct pound_lock_info *pound_lock_info(size_t index);

/* The same of the readers-writer locks. */
const struct pound_lock_info *pound_rwlock_info(size_t index);

/*
 * Counts of what the locks did in this process since pound_events_start(), by event of core/events.def: the name and
 * meaning of the @index-th (NULL past the last), and its count so far.
 */
void pound_events_start(void);
const char *pound_event_name(size_t index);
const char *pound_event_meaning(size_t index);
uint64_t pound_event_count(size_t index);

/*
 * The locality domain that the calling thread runs in, as the NUMA-aware locks see it (POUNDLOCK_DOMAIN): a number from
 * 0. It may be another one at once, since threads move.
 */
unsigned pound_domain(void);

/*
 * The route: the CPUs that the process could use when it began, in the order in which the locks that have a route hand
 * over. Writes up to @size of them into @cpus and returns how many there are. pound_route_file() is the file that it was
 * read from, or NULL if it follows from the topology.
 */
size_t pound_route(unsigned *cpus, size_t size);
const char *pound_route_file(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
