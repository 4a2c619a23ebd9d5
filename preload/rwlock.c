/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pthread_rwlock_*: those of one process are ours, in place (layout.h); process-shared ones are
 * glibc's, as are the attributes' functions. Error codes are glibc's.
 *
 * A thread that is a reader may enter again while a writer waits, if the lock's kind is the default
 * or PTHREAD_RWLOCK_PREFER_WRITER_NP, which glibc treats alike. glibc keeps that promise by letting
 * every reader pass every waiting writer: readers that overlap starve a writer. Here only a thread
 * that may be a reader already passes, and a real-time thread whose priority is higher than that of
 * all blocked writers (realtime.h); all others wait behind the writer. With
 * PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, as in glibc, no reader passes.
 *
 * A filter per thread decides whether the thread may be a reader already: the number of read locks
 * that it holds, by a hash of their addresses, in 16 bytes. It has false positives only: another
 * lock with the same hash lets a thread pass a writer, which delays that writer. A count that has
 * reached MANY stays there, and so does the reader's count if another thread unlocks for it, with
 * the same effect. If that thread is a reader itself, it has released its own hold, as in POSIX.
 */
#include <errno.h>
#include <string.h>

#include "control.h"
#include "debug.h"
#include "layout.h"
#include "preload.h"
#include "real.h"
#include "realtime.h"
#include "rules.h"
#include "rw/shfl_rw.h"
#include "stats/observe.h"
#include "stats/stats.h"

/* ---- The read locks of a thread ---- */

#define FILTER_BITS 4
#define MANY UINT8_MAX

/* With the alignment named, compilers do not align it to 16 bytes, which costs static storage. */
static _Alignas(8) __thread uint8_t read_locks[1 << FILTER_BITS]
	__attribute__((tls_model("initial-exec")));

/* The count that @rw belongs to. */
static uint8_t *read_locks_like(const struct rwlock *rw)
{
	return &read_locks[(uint32_t)(uintptr_t)rw * 0x9e3779b1 >> (32 - FILTER_BITS)];
}

static inline void count_one_more(uint8_t *held)
{
	*held = (uint8_t)(*held + (*held != MANY));
}

/* MANY stays, and so does 0: the read lock is another thread's. */
static inline void count_one_less(uint8_t *held)
{
	if (w_likely((uint8_t)(*held - 1) < MANY - 1))
		--*held;
}

/* Whether a reader that holds @held read locks like it passes the writers that wait. */
static bool passes_writers(const struct rwlock *rw, uint8_t held)
{
	return (held || realtime_passes(rw)) &&
	       rw->kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}

/* ---- The writer ---- */

/*
 * Whether this thread is the writer inside. relaxed, here and below: only the thread itself writes
 * its id there
 */
static inline bool is_writer(struct rwlock *rw)
{
	uint32_t writer = w_load_relaxed(&rw->writer);

	return w_unlikely(writer) && writer == own_tid();
}

/* ---- Native or ours ---- */

/* The functions of @rw; NULL if it is native. */
static inline const struct any_rw_ops *ops_of(const struct rwlock *rw)
{
	/* acquire: pairs with the release in choose(); the lock's settings */
	const struct any_rw_ops *ops = w_load_acquire(&chosen_rw_ops);

	if (w_unlikely(!ops)) {
		initialise();
		/* relaxed: initialise() has acquired what it points at */
		ops = w_load_relaxed(&chosen_rw_ops);
	}
	return w_unlikely(rw->shared) && rw->shared != SHARED_RULED ? NULL : ops;
}

/* ---- Reading ---- */

__attribute__((noinline)) static int rdlock_any(pthread_rwlock_t *lock)
{
	struct rwlock *rw = rwlock_of(lock);
	const struct any_rw_ops *ops = ops_of(rw);
	uint8_t *held = read_locks_like(rw);
	bool passes;

	if (w_unlikely(!ops))
		return real.pthread_rwlock_rdlock(lock);
	if (w_unlikely(is_writer(rw)))
		return EDEADLK;
	passes = passes_writers(rw, *held);
	/*
	 * Counted first, so that nothing is left to do afterwards: a signal handler that reads
	 * meanwhile may pass a writer.
	 */
	count_one_more(held);
	if (w_likely(ops->rdlock(rw, passes, ops)))
		return 0;
	count_one_less(held);
	return EAGAIN;
}

__attribute__((noinline)) static int tryrdlock_any(pthread_rwlock_t *lock)
{
	struct rwlock *rw = rwlock_of(lock);
	const struct any_rw_ops *ops = ops_of(rw);
	uint8_t *held = read_locks_like(rw);

	if (w_unlikely(!ops))
		return real.pthread_rwlock_tryrdlock(lock);
	if (!ops->tryrdlock(rw, passes_writers(rw, *held)))
		return ops->full(rw) ? EAGAIN : EBUSY;
	count_one_more(held);
	return 0;
}

static int rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *at)
{
	struct rwlock *rw = rwlock_of(lock);
	const struct any_rw_ops *ops = ops_of(rw);
	struct w_deadline deadline = {.clock = clock, .at = *at};
	uint8_t *held = read_locks_like(rw);

	if (w_unlikely(!ops))
		return real.pthread_rwlock_clockrdlock(lock, clock, at);
	/* Unlike a mutex's, checked even if there is nothing to wait for: as in glibc. */
	if (!any_deadline_valid(&deadline))
		return EINVAL;
	if (w_unlikely(is_writer(rw)))
		return EDEADLK;
	if (!ops->timedrdlock(rw, passes_writers(rw, *held), &deadline, ops))
		return w_expired(&deadline) ? ETIMEDOUT : EAGAIN;
	count_one_more(held);
	return 0;
}

/* ---- Writing ---- */

__attribute__((noinline)) static int wrlock_any(pthread_rwlock_t *lock)
{
	struct rwlock *rw = rwlock_of(lock);
	const struct any_rw_ops *ops = ops_of(rw);
	struct realtime_writer *blocked;

	if (w_unlikely(!ops))
		return real.pthread_rwlock_wrlock(lock);
	if (w_unlikely(is_writer(rw)))
		return EDEADLK;
	blocked = realtime_block(rw);
	ops->wrlock(rw, ops);
	realtime_unblock(blocked);
	w_store_relaxed(&rw->writer, own_tid());
	return 0;
}

__attribute__((noinline)) static int trywrlock_any(pthread_rwlock_t *lock)
{
	struct rwlock *rw = rwlock_of(lock);
	const struct any_rw_ops *ops = ops_of(rw);

	if (w_unlikely(!ops))
		return real.pthread_rwlock_trywrlock(lock);
	if (!ops->trywrlock(rw))
		return EBUSY;
	w_store_relaxed(&rw->writer, own_tid());
	return 0;
}

static int rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *at)
{
	struct rwlock *rw = rwlock_of(lock);
	const struct any_rw_ops *ops = ops_of(rw);
	struct w_deadline deadline = {.clock = clock, .at = *at};
	struct realtime_writer *blocked;
	bool entered;

	if (w_unlikely(!ops))
		return real.pthread_rwlock_clockwrlock(lock, clock, at);
	if (!any_deadline_valid(&deadline))
		return EINVAL;
	if (w_unlikely(is_writer(rw)))
		return EDEADLK;
	blocked = realtime_block(rw);
	entered = ops->timedwrlock(rw, &deadline, ops);
	realtime_unblock(blocked);
	if (!entered)
		return ETIMEDOUT;
	w_store_relaxed(&rw->writer, own_tid());
	return 0;
}

/* ---- Both ---- */

static void unlock_write(struct rwlock *rw, const struct any_rw_ops *ops)
{
	w_store_relaxed(&rw->writer, 0);
	ops->wrunlock(rw, ops);
}

__attribute__((noinline)) static int unlock_any(pthread_rwlock_t *lock)
{
	struct rwlock *rw = rwlock_of(lock);
	const struct any_rw_ops *ops = ops_of(rw);
	uint8_t *held = read_locks_like(rw);

	if (w_unlikely(!ops))
		return real.pthread_rwlock_unlock(lock);
	if (is_writer(rw)) {
		unlock_write(rw, ops);
		return 0;
	}
	/* No reader: the writer is another thread, or this one's parent before a fork. */
	if (w_unlikely(!ops->rdunlock(rw, ops)))
		unlock_write(rw, ops);
	else
		count_one_less(held);
	return 0;
}

/* Functions of their own: they need no stack frame. */
#define BY_TABLE(name)                                                                            \
	__attribute__((noinline)) static int name##_by_table(pthread_rwlock_t *lock)              \
	{                                                                                         \
		return is_native_counted() ? real.pthread_rwlock_##name(lock) : name##_any(lock); \
	}
BY_TABLE(rdlock)
BY_TABLE(tryrdlock)
BY_TABLE(wrlock)
BY_TABLE(trywrlock)
BY_TABLE(unlock)
#undef BY_TABLE

struct rwlock_calls rwlock_calls = {rdlock_by_table, wrlock_by_table, unlock_by_table};

/* ---- Fast paths: the default lock without waiters, without a call ---- */

static inline rw_word *word_of(struct rwlock *rw)
{
	return &((struct shfl_rw *)rw)->word;
}

/*
 * @seen -> @to, for a caller that has just read @seen: an only thread need not read it again. False
 * if the word has changed, or the lock is used through its table.
 */
#define CHANGES(way, word, seen, to, order)                                                   \
	(*(way) == WAY_THREADS                                                                \
		 ? w_likely(pound_word_change((uint32_t *)(word), seen, to, __ATOMIC_##order, \
					      false))                                         \
		 : w_likely(*(way) > WAY_THREADS) && (w_store_relaxed(word, to), true))

/* Locks for reading if the thread has no read lock like it, and no writer is inside or waits. */
static inline bool default_read(struct rwlock *rw, const signed char *way)
{
	uint8_t *held = read_locks_like(rw);
	uint32_t seen;

	if (w_unlikely(rw->shared | *held))
		return false;
	/* relaxed: the compare-exchange decides */
	seen = w_load_relaxed(word_of(rw));
	if (w_unlikely(seen & (RW_WRITER | RW_CLOSED | RW_FULL)))
		return false;
	/* Counted first, as in rdlock_by_table(). acquire: as [RW_WORD-1] */
	*held = 1;
	if (w_likely(CHANGES(way, word_of(rw), &seen, seen + RW_READER, ACQUIRE)))
		return true;
	*held = 0;
	return false;
}

/* Locks for writing if it is free. False: nothing is changed. */
static inline bool default_write(struct rwlock *rw, const signed char *way)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(word_of(rw));

	/* acquire: as [RW_WORD-1] */
	if (w_unlikely((rw->shared | seen) ||
		       !CHANGES(way, word_of(rw), &seen, RW_WRITER, ACQUIRE)))
		return false;
	w_store_relaxed(&rw->writer, own_tid());
	return true;
}

/*
 * Leaves @rw, last seen as @seen, if it has readers and no waiter. False: nothing is changed; there
 * are flags, or it is an error.
 */
static inline bool default_leave_read(struct rwlock *rw, const signed char *way, uint32_t seen)
{
	/* release: as [RW_WORD-2] */
	if (w_unlikely((seen & ~RW_READERS) || !seen ||
		       !CHANGES(way, word_of(rw), &seen, seen - RW_READER, RELEASE)))
		return false;
	count_one_less(read_locks_like(rw));
	return true;
}

/* The same of the writer, or of readers. */
static inline bool default_leave(struct rwlock *rw, const signed char *way)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(word_of(rw));

	if (seen != RW_WRITER)
		return default_leave_read(rw, way, seen);
	w_store_relaxed(&rw->writer, 0);
	/* release: as [RW_WORD-3] */
	return CHANGES(way, word_of(rw), &seen, 0, RELEASE);
}

/* As pthread's functions of these names; @take is that of a default lock. */
#define LOCKING(name, take)                                                              \
	static int rwlock_##name(pthread_rwlock_t *lock)                                 \
	{                                                                                \
		/* acquire: pairs with the release in choose(); the lock's settings */   \
		const signed char *way = w_load_acquire(&chosen_rw_way);                 \
                                                                                         \
		if (*way == WAY_TABLE)                                                   \
			return CALL_OF(rwlock_calls, name)(lock);                        \
		return w_likely(take(rwlock_of(lock), way)) ? 0 : name##_by_table(lock); \
	}
LOCKING(rdlock, default_read)
LOCKING(wrlock, default_write)
#undef LOCKING

static int rwlock_tryrdlock(pthread_rwlock_t *lock)
{
	/* acquire, here and below: as above */
	const signed char *way = w_load_acquire(&chosen_rw_way);

	return w_likely(default_read(rwlock_of(lock), way)) ? 0 : tryrdlock_by_table(lock);
}

static int rwlock_trywrlock(pthread_rwlock_t *lock)
{
	const signed char *way = w_load_acquire(&chosen_rw_way);

	return w_likely(default_write(rwlock_of(lock), way)) ? 0 : trywrlock_by_table(lock);
}

static int rwlock_unlock(pthread_rwlock_t *lock)
{
	struct rwlock *rw = rwlock_of(lock);
	/* acquire: as above */
	const signed char *way = w_load_acquire(&chosen_rw_way);

	if (*way == WAY_TABLE)
		return CALL_OF(rwlock_calls, unlock)(lock);
	if (w_unlikely(rw->shared))
		return unlock_by_table(lock);
	return w_likely(default_leave(rw, way)) ? 0 : unlock_by_table(lock);
}

/* ---- The default lock with statistics ---- */

/* chosen_rw_way without statistics. */
static const signed char *unobserved_way;

/* For a lock that the thread did not take last for reading. */
__attribute__((noinline)) static int observed_rdlock_elsewhere(pthread_rwlock_t *lock)
{
	struct stats_row *row;

	if (w_unlikely(!stats_row_at_once(stats_readers_key(lock), &row) ||
		       !default_read(rwlock_of(lock), unobserved_way)))
		return rdlock_by_table(lock);
	return stats_count_acquisition(row, true);
}

static int observed_rdlock(pthread_rwlock_t *lock)
{
	struct stats_row *row;

	if (!stats_row_if_last(stats_readers_key(lock), true, &row) ||
	    w_unlikely(!default_read(rwlock_of(lock), unobserved_way)))
		return observed_rdlock_elsewhere(lock);
	return stats_count_again(row);
}

static int observed_wrlock(pthread_rwlock_t *lock)
{
	struct stats_row *row;

	if (w_unlikely(!stats_row_at_once(stats_key(lock), &row) ||
		       !default_write(rwlock_of(lock), unobserved_way)))
		return wrlock_by_table(lock);
	return stats_count_acquisition(row, true);
}

__attribute__((noinline)) static int observed_unlock_elsewhere(pthread_rwlock_t *lock)
{
	struct rwlock *rw = rwlock_of(lock);
	uint64_t key = is_writer(rw) ? stats_key(lock) : stats_readers_key(lock);

	return !rw->shared && stats_is_at_once_and_quiet(key) && default_leave(rw, unobserved_way)
		       ? 0
		       : unlock_by_table(lock);
}

static int observed_unlock(pthread_rwlock_t *lock)
{
	struct rwlock *rw = rwlock_of(lock);

	/* relaxed: the compare-exchange decides */
	return w_likely(!rw->shared) && stats_is_last_and_quiet(stats_readers_key(lock), true) &&
			       w_likely(default_leave_read(rw, unobserved_way,
							   w_load_relaxed(word_of(rw))))
		       ? 0
		       : observed_unlock_elsewhere(lock);
}

void rwlock_observe_default(void)
{
	unobserved_way = (const signed char *)alone_place();
	CALLS_SET(rwlock_calls, rdlock, observed_rdlock);
	CALLS_SET(rwlock_calls, wrlock, observed_wrlock);
	CALLS_SET(rwlock_calls, unlock, observed_unlock);
}

/* ---- Initialisation ---- */

static int rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attr)
{
	struct rwlock *rw = rwlock_of(lock);
	unsigned int kind;
	int result;

	initialise();
	/* Real functions that have not been looked up yet leave what they find. */
	memset(lock, 0, sizeof(*lock));
	result = real.pthread_rwlock_init(lock, attr);
	if (result || !ops_of(rw))
		return result;
	kind = rw->kind;
	memset(lock, 0, sizeof(*lock));
	rw->kind = kind;
	rules_rw_initialised(rw, __builtin_return_address(0));
	control_forget(lock);
	stats_forget(lock);
	debug_created(lock);
	return 0;
}

static int rwlock_destroy(pthread_rwlock_t *lock)
{
	struct rwlock *rw = rwlock_of(lock);

	if (!ops_of(rw))
		return real.pthread_rwlock_destroy(lock);
	debug_destroyed(lock);
	control_forget(lock);
	stats_forget(lock);
	return 0;
}

/* ---- Names: pthread's, and those for objects linked on glibc 2.33 or older ---- */

KNOWN_AS(pthread_rwlock_init, rwlock_init);
KNOWN_AS(pthread_rwlock_destroy, rwlock_destroy);
KNOWN_AS(pthread_rwlock_rdlock, rwlock_rdlock);
KNOWN_AS(pthread_rwlock_tryrdlock, rwlock_tryrdlock);
KNOWN_AS(pthread_rwlock_clockrdlock, rwlock_clockrdlock);
KNOWN_AS(pthread_rwlock_wrlock, rwlock_wrlock);
KNOWN_AS(pthread_rwlock_trywrlock, rwlock_trywrlock);
KNOWN_AS(pthread_rwlock_clockwrlock, rwlock_clockwrlock);
KNOWN_AS(pthread_rwlock_unlock, rwlock_unlock);
KNOWN_AS(__pthread_rwlock_init, rwlock_init);
KNOWN_AS(__pthread_rwlock_destroy, rwlock_destroy);
KNOWN_AS(__pthread_rwlock_rdlock, rwlock_rdlock);
KNOWN_AS(__pthread_rwlock_tryrdlock, rwlock_tryrdlock);
KNOWN_AS(__pthread_rwlock_wrlock, rwlock_wrlock);
KNOWN_AS(__pthread_rwlock_trywrlock, rwlock_trywrlock);
KNOWN_AS(__pthread_rwlock_unlock, rwlock_unlock);

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *at)
{
	return rwlock_clockrdlock(lock, CLOCK_REALTIME, at);
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *at)
{
	return rwlock_clockwrlock(lock, CLOCK_REALTIME, at);
}
