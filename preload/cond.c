/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pthread_cond_*, in place (layout.h): one word of 64 bits. Waiters sleep on its low half,
 * destroyers on the high one.
 *
 *   state = DESTROYING:1 waiters:31 | sequence:26 woken:5 0:1
 *     waiters     number of threads inside a wait; each changes it for itself
 *     sequence    advanced by each signal and broadcast that wakes
 *     woken       at least min(woken, waiters) waiters return without another signal
 *     DESTROYING  a destroyer sleeps until waiters is 0
 *
 *   wait        waiters++, and s = sequence, in one step; unlock the mutex; sleep while
 *               sequence == s; waiters-- and woken-- in one step; lock the mutex
 *   signal      if waiters > woken: advance sequence, woken++, and wake one sleeper, in one step of
 *               the kernel
 *   broadcast   the same with all sleepers, and woken increased by its maximum
 *   destroy     wait until waiters is 0
 *
 * A signal reaches a thread that was waiting before it, and no later one instead. FUTEX_WAKE_OP
 * changes the word and wakes while it holds the kernel's lock of the futex, under which sleepers
 * compare the word. A thread that is asleep then has read an older sequence; a thread that has read
 * an older one and is not asleep yet will not fall asleep. So a sleeper that is woken and finds the
 * sequence unchanged passes the wake-up on: it was meant for another one.
 *
 * A signal may do nothing if waiters <= woken: all waiters return without it then, and see under
 * the mutex what was signalled. Call a waiter awake if it is not asleep and will not fall asleep:
 * it was woken, or has read an older sequence, or is leaving. At all times at least min(woken,
 * waiters) are awake:
 *   - A signal that finds a sleeper makes it awake, and adds 1 to woken. One that finds none leaves
 *     all waiters awake, since a waiter that is not asleep has an older sequence now: any value of
 *     woken is right.
 *   - A thread that enters adds a waiter that is not awake. So it first sets woken to
 *     min(woken, waiters): the excess stands for no waiter.
 *   - A thread that leaves was awake, and takes 1 from min(woken, waiters).
 *   - A waiter that is awake stays so until it leaves. If woken overflows into sequence, woken
 *     becomes smaller and the sequence newer.
 * Waiters are entered, counted and compared in one word, and woken is raised in the same step as
 * the wake-up: no signal relies on another that has not happened yet. tests/posix/cond_model.py
 * explores all interleavings of a model of this.
 *
 * The bound: a thread that is preempted between its last read of the sequence and the kernel's
 * comparison, for a multiple of 2^26 wake-ups, falls asleep although it was signalled.
 *
 * Destruction may follow at once after a broadcast, or after a signal once its waiter has run: the
 * last access of a waiter takes it out of the count, before it locks the mutex. A signal accesses
 * the memory in one system call, which survives memory that is unmapped.
 *
 * A cancelled waiter loses no signal: if the sequence has changed since it entered, it may have
 * been the one woken, and wakes another one in its place. That is a spurious wake-up at worst.
 *
 * In a forked child the threads that waited in the parent do not exist: the first one that enters
 * there counts from 0.
 *
 * Process-shared condition variables are glibc's as long as their mutexes are: other processes may
 * use them without this library. One that is waited for with a mutex of ours cannot be shared,
 * whatever its attribute is, and is ours from then on.
 */
#define _GNU_SOURCE
#include "cond.h"

#include <limits.h>
#include <string.h>

#include "part/generation.h"
#include "kernel.h"
#include "layout.h"
#include "mutex.h"
#include "preload.h"
#include "real.h"

/* ---- The state ---- */

/* Bit 0 stays 0: FUTEX_WAKE_OP's second wake-up, which is conditional on it, never happens. */
#define WOKEN_STEP 2u
#define WOKEN_MOST 31u
#define SEQUENCE_STEP 64u
#define WAITER ((uint64_t)1 << 32)
#define DESTROYING 0x80000000u /* in the high half */

static uint32_t sequence_of(uint64_t state)
{
	return (uint32_t)state / SEQUENCE_STEP;
}

static uint32_t waiters_of(uint64_t state)
{
	return (uint32_t)(state >> 32) & ~DESTROYING;
}

static uint32_t woken_of(uint64_t state)
{
	return (uint32_t)state / WOKEN_STEP & WOKEN_MOST;
}

/* The number of waiters that are certain to be awake. */
static uint32_t awake_of(uint64_t state)
{
	return woken_of(state) < waiters_of(state) ? woken_of(state) : waiters_of(state);
}

static uint64_t with_woken(uint64_t state, uint32_t woken)
{
	return (state & ~(uint64_t)(WOKEN_MOST * WOKEN_STEP)) | woken * WOKEN_STEP;
}

/* The futex of waiters. */
static W_ATOMIC(uint32_t) *low_half(struct cond *c)
{
	return (W_ATOMIC(uint32_t) *)&c->state;
}

/* The futex of destroyers. */
static W_ATOMIC(uint32_t) *high_half(struct cond *c)
{
	return low_half(c) + 1;
}

#define SIGNAL FUTEX_OP(FUTEX_OP_ADD, SEQUENCE_STEP + WOKEN_STEP, FUTEX_OP_CMP_EQ, 1)
#define BROADCAST \
	FUTEX_OP(FUTEX_OP_ADD, SEQUENCE_STEP + WOKEN_MOST * WOKEN_STEP, FUTEX_OP_CMP_EQ, 1)

static W_SLOW int advance_and_wake(struct cond *c, int count)
{
	int operation = FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG,
	    change = count == 1 ? SIGNAL : BROADCAST;

	if (w_system_call(SYS_futex, (long)low_half(c), operation, count, 0, (long)low_half(c),
			  change) < 0) {
		/*
		 * The kernel lacks it. Two steps: a waiter of real-time priority may enter in
		 * between, so woken must not count a waiter that is not woken yet.
		 */
		(void)w_fetch_add_relaxed(low_half(c), SEQUENCE_STEP);
		w_futex_wake(low_half(c), count);
	}
	return 0;
}

/* ---- Native or ours ---- */

/* Whether @c, to be waited for with @mutex, is ours. */
static bool claim(struct cond *c, pthread_mutex_t *mutex)
{
	initialise();
	/* relaxed, here and below: initialise() has acquired; flags change only here, once */
	if (!w_load_relaxed(&chosen_ops))
		return false;
	if (w_likely(!(w_load_relaxed(cond_flags(c)) & cond_layout.pshared)))
		return true;
	if (mutex_is_native(mutex))
		return false;
	(void)w_fetch_and_relaxed(cond_flags(c), ~cond_layout.pshared);
	return true;
}

W_SLOW static bool any_is_ours(void)
{
	initialise();
	return w_load_relaxed(&chosen_ops);
}

static inline bool is_ours(struct cond *c)
{
	/*
	 * acquire: pairs with the release in choose(); relaxed: flags change only in claim(), once
	 */
	return (w_likely(w_load_acquire(&chosen_ops)) || any_is_ours()) &&
	       !(w_load_relaxed(cond_flags(c)) & cond_layout.pshared);
}

/* ---- The count of threads inside a wait ---- */

/* In a forked child: forgets the waiters that do not exist here. */
static void forget_parents(struct cond *c)
{
	if (w_likely(!generation_claim(&c->generation)))
		return;
	/* relaxed: [GENERATION-3] publishes it; a signal may advance the sequence meanwhile */
	(void)w_fetch_and_relaxed(&c->state, UINT32_MAX & ~(uint64_t)(WOKEN_MOST * WOKEN_STEP));
	generation_settle(&c->generation);
}

/* Counts the calling thread as a waiter. Returns the sequence. */
static uint32_t enter(struct cond *c)
{
	uint64_t seen;

	forget_parents(c);
	/* relaxed, both: a signal after the waiter's unlock sees the count through the mutex */
	seen = w_load_relaxed(&c->state);
	while (!w_compare_exchange_relaxed(&c->state, &seen,
					   with_woken(seen, awake_of(seen)) + WAITER))
		;
	return sequence_of(seen);
}

/* The last access to @c of a waiter that entered in @generation. */
static void leave(struct cond *c, uint32_t generation)
{
	uint64_t seen;
	uint32_t awake;

	/* A signal handler forked during the wait: the child's count does not include it. */
	if (w_fork_generation() != generation)
		return;
	/* relaxed: the compare-exchange decides */
	seen = w_load_relaxed(&c->state);
	do
		awake = awake_of(seen);
	/* release: pairs with the acquire in cond_destroy(); all our accesses precede it */
	while (!w_compare_exchange_release(&c->state, &seen,
					   with_woken(seen, awake ? awake - 1 : 0) - WAITER));
	if ((uint32_t)(seen >> 32) == (DESTROYING | 1))
		w_futex_wake(high_half(c), INT_MAX);
}

/* ---- Waiting ---- */

struct waiter {
	struct cond *cond;
	pthread_mutex_t *mutex;
	uint32_t sequence;
	uint32_t generation;
	int type; /* its own type of cancellation, while it waits with another one */
};

/* relaxed: it is only compared; the mutex orders what was signalled */
static bool is_advanced(const struct waiter *waiter)
{
	return sequence_of(w_load_relaxed(&waiter->cond->state)) != waiter->sequence;
}

/*
 * Sleeps until it is woken (0), the word has changed (EAGAIN), a signal handler has run (EINTR) or
 * the deadline (ETIMEDOUT).
 */
static int sleep_once(const struct waiter *waiter, const struct w_deadline *deadline)
{
	/* relaxed: as in is_advanced() */
	uint64_t seen = w_load_relaxed(&waiter->cond->state);

	if (sequence_of(seen) != waiter->sequence)
		return EAGAIN;
	return w_futex_wait(low_half(waiter->cond), (uint32_t)seen, deadline);
}

static void pass_on(const struct waiter *waiter)
{
	w_futex_wake(low_half(waiter->cond), 1);
}

/* After a cancellation, or a siglongjmp() out of the wait. */
static void cancelled(void *argument)
{
	struct waiter *waiter = argument;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	if (is_advanced(waiter))
		pass_on(waiter);
	leave(waiter->cond, waiter->generation);
	mutex_lock(waiter->mutex);
	if (waiter->type != PTHREAD_CANCEL_DEFERRED)
		pthread_setcanceltype(waiter->type, NULL);
}

/*
 * glibc's clean-up handlers of the older kind: in a list, instead of by a sigsetjmp(). glibc's own
 * waits have them in there as well, so that a siglongjmp() out of a wait runs them.
 */
extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*handler)(void *),
				  void *argument);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

/*
 * As glibc, checks before each sleep whether another thread could cancel this one: a signal handler
 * may have started one.
 */
static int sleep_asynchronously(const struct waiter *waiter, const struct w_deadline *deadline)
{
	int result, type;

	if (w_alone())
		return sleep_once(waiter, deadline);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	result = sleep_once(waiter, deadline);
	pthread_setcanceltype(type, NULL);
	return result;
}

/*
 * Sleeps until it is woken (0), the sequence has advanced (EAGAIN), or the deadline (ETIMEDOUT); a
 * cancellation point. The system call has no wrapper that is one. So cancellation is asynchronous
 * around it: the handler works wherever it strikes. The caller restores its own type; here it is
 * deferred.
 *
 * glibc's own waits wait for a cancellation in progress when they return; ours cannot see it. It
 * then strikes later, harmlessly, except for a thread that is ending just then: it has run to its
 * end, and pthread_join() returns PTHREAD_CANCELED.
 */
static int sleep_cancellably(struct waiter *waiter, const struct w_deadline *deadline)
{
	struct _pthread_cleanup_buffer handler;
	int result;

	_pthread_cleanup_push(&handler, cancelled, waiter);
	do
		result = sleep_asynchronously(waiter, deadline);
	while (result == EINTR || (result == EAGAIN && !is_advanced(waiter)));
	_pthread_cleanup_pop(&handler, 0);
	return result;
}

/* Sleeps until a signal (0; it may be spurious), or the deadline (ETIMEDOUT). */
static int sleep_until_signalled(struct waiter *waiter, const struct w_deadline *deadline)
{
	int result;

	if (deadline && deadline->at.tv_sec < 0)
		return ETIMEDOUT;
	result = sleep_cancellably(waiter, deadline);
	if (!result && !is_advanced(waiter))
		pass_on(waiter);
	return result == ETIMEDOUT ? ETIMEDOUT : 0;
}

static int wait_with_type_deferred(struct waiter *waiter, const struct w_deadline *deadline)
{
	int result, locked;

	pthread_testcancel();
	waiter->sequence = enter(waiter->cond);
	result = mutex_unlock(waiter->mutex);
	if (result) {
		leave(waiter->cond, waiter->generation);
		return result;
	}
	result = sleep_until_signalled(waiter, deadline);
	leave(waiter->cond, waiter->generation);
	locked = mutex_lock(waiter->mutex);
	return locked ? locked : result;
}

/* Waits for @c, which is ours. */
static int wait_for(struct cond *c, pthread_mutex_t *mutex, const struct w_deadline *deadline)
{
	struct waiter waiter = {.cond = c,
				.mutex = mutex,
				.generation = w_fork_generation(),
				.type = PTHREAD_CANCEL_DEFERRED};
	int result;

	if (deadline && !any_deadline_valid(deadline))
		return EINVAL;
	if (!w_alone())
		pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &waiter.type);
	result = wait_with_type_deferred(&waiter, deadline);
	if (waiter.type != PTHREAD_CANCEL_DEFERRED)
		pthread_setcanceltype(waiter.type, NULL);
	return result;
}

/* ---- pthread_cond_* ---- */

int cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	initialise();
	/* glibc's sets nothing but the flags: all-zero memory is a private one to glibc also. */
	memset(cond, 0, sizeof(*cond));
	return real.pthread_cond_init(cond, attr);
}

int cond_destroy(pthread_cond_t *cond)
{
	struct cond *c = cond_of(cond);
	uint64_t seen;

	if (!is_ours(c))
		return real.pthread_cond_destroy(cond);
	forget_parents(c);
	/*
	 * acquire, here and in the loop: pairs with the release in leave(); the leavers' accesses
	 */
	seen = w_load_acquire(&c->state);
	while (waiters_of(seen)) {
		if (w_compare_exchange_acquire(&c->state, &seen, seen | DESTROYING * WAITER)) {
			w_futex_wait(high_half(c), (uint32_t)(seen >> 32) | DESTROYING, NULL);
			seen = w_load_acquire(&c->state);
		}
	}
	return 0;
}

int cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct cond *c = cond_of(cond);

	return claim(c, mutex) ? wait_for(c, mutex, NULL) : real.pthread_cond_wait(cond, mutex);
}

int cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *at)
{
	struct cond *c = cond_of(cond);
	struct w_deadline deadline = {.clock = CLOCK_REALTIME, .at = *at};

	if (!claim(c, mutex))
		return real.pthread_cond_timedwait(cond, mutex, at);
	if (w_load_relaxed(cond_flags(c)) & cond_layout.monotonic)
		deadline.clock = CLOCK_MONOTONIC;
	return wait_for(c, mutex, &deadline);
}

static int wake(pthread_cond_t *cond, int count)
{
	struct cond *c = cond_of(cond);
	/*
	 * relaxed: as in enter(). Waiters of another generation count: a useless wake-up is
	 * harmless
	 */
	uint64_t seen = w_load_relaxed(&c->state);

	return w_likely(waiters_of(seen) <= woken_of(seen)) ? 0 : advance_and_wake(c, count);
}

int cond_signal(pthread_cond_t *cond)
{
	return is_ours(cond_of(cond)) ? wake(cond, 1) : real.pthread_cond_signal(cond);
}

int cond_broadcast(pthread_cond_t *cond)
{
	return is_ours(cond_of(cond)) ? wake(cond, INT_MAX) : real.pthread_cond_broadcast(cond);
}

EXPORT int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	return cond_init(cond, attr);
}

EXPORT int pthread_cond_destroy(pthread_cond_t *cond)
{
	return cond_destroy(cond);
}

EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return cond_wait(cond, mutex);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *at)
{
	return cond_timedwait(cond, mutex, at);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *at)
{
	struct cond *c = cond_of(cond);
	struct w_deadline deadline = {.clock = clock, .at = *at};

	if (!claim(c, mutex))
		return real.pthread_cond_clockwait(cond, mutex, clock, at);
	return wait_for(c, mutex, &deadline);
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
	return cond_signal(cond);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
	return cond_broadcast(cond);
}
