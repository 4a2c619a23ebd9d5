/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pthread_cond_*, in place (layout.h): a sequence word that waiters sleep on, and a count of threads inside a wait.
 *
 *   wait        waiters++; s = sequence; unlock the mutex; sleep while sequence == s; waiters--; lock the mutex
 *   signal      if there are waiters: advance sequence and wake one sleeper, both in one step of the kernel
 *   broadcast   the same for all sleepers
 *   destroy     wait until the count is 0
 *
 * Why a signal reaches a thread that was waiting before it, and none that came after it instead: FUTEX_WAKE_OP advances
 * the word and wakes while it holds the kernel's lock of the futex, under which sleepers compare the word. Who is asleep
 * then has read an older value; who has read an older value and is not asleep yet will not fall asleep. So a sleeper
 * that is woken and finds the word unchanged was not meant: it passes the wake-up on.
 *
 * Why destruction may follow at once after a broadcast, or after a signal once its waiter has run: a waiter's last
 * access to the memory takes it out of the count, before it locks the mutex; signals make theirs in one system call, and
 * the kernel survives memory that has gone.
 *
 * Why a cancelled waiter loses no signal: if the word has changed since it came, it may have been the one woken, and
 * wakes another one in its place. That one may wake for nothing, as POSIX allows.
 *
 * In a forked child the threads that waited in the parent do not exist: the count carries the generation of its threads.
 *
 * Process-shared condition variables are glibc's as long as their mutexes are: other processes may use them without us.
 * One that is waited for with a mutex of ours cannot be shared, whatever its attribute says, and is ours from then on.
 */
#define _GNU_SOURCE
#include "cond.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layout.h"
#include "mutex.h"
#include "preload.h"
#include "real.h"

/* ---- The kernel ---- */

/* Returns 0 or an error number. errno may change. */
static int futex_wait(const void *word, uint32_t expected, const struct w_deadline *deadline)
{
	int operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;

	if (deadline && deadline->clock == CLOCK_REALTIME)
		operation |= FUTEX_CLOCK_REALTIME;
	return syscall(SYS_futex, word, operation, expected, deadline ? &deadline->at : NULL, NULL,
		       FUTEX_BITSET_MATCH_ANY) < 0
		       ? errno
		       : 0;
}

static void futex_wake(const void *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count);
}

/* The sequence word stays even, so that the second wake-up which FUTEX_WAKE_OP offers on a condition is never made. */
#define SEQUENCE_STEP 2
#define ADVANCE FUTEX_OP(FUTEX_OP_ADD, SEQUENCE_STEP, FUTEX_OP_CMP_EQ, 1)

static void advance_and_wake(struct cond *c, int count)
{
	int saved = errno;

	if (syscall(SYS_futex, &c->sequence, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, count, 0, &c->sequence, ADVANCE) < 0) {
		/* The kernel lacks it. Two steps: a waiter of real-time priority might slip in between. */
		(void)w_fetch_add_relaxed(&c->sequence, SEQUENCE_STEP);
		futex_wake(&c->sequence, count);
	}
	errno = saved;
}

/* ---- Whose it is ---- */

/* Whether @c, to be waited for with @mutex, is ours. */
static bool claim(struct cond *c, pthread_mutex_t *mutex)
{
	initialise();
	/* relaxed, all three here and below: initialise() has acquired; flags change only here, once */
	if (!w_load_relaxed(&chosen_ops))
		return false;
	if (w_likely(!(w_load_relaxed(cond_flags(c)) & cond_layout.pshared)))
		return true;
	if (mutex_is_native(mutex_of(mutex)))
		return false;
	(void)w_fetch_and_relaxed(cond_flags(c), ~cond_layout.pshared);
	return true;
}

static bool is_ours(struct cond *c)
{
	initialise();
	return w_load_relaxed(&chosen_ops) && !(w_load_relaxed(cond_flags(c)) & cond_layout.pshared);
}

/* ---- The count of threads inside a wait ---- */

static uint32_t generation_of(uint64_t waiters)
{
	return (uint32_t)(waiters >> 32);
}

static void enter(struct cond *c, uint32_t generation)
{
	/* relaxed, both: who signals after the waiter has unlocked the mutex sees the count through the mutex */
	uint64_t seen = w_load_relaxed(&c->waiters), next;

	do
		next = generation_of(seen) == generation ? seen + 1 : (uint64_t)generation << 32 | 1;
	while (!w_compare_exchange_relaxed(&c->waiters, &seen, next));
}

/* The last access to @c of a waiter that entered in @generation. */
static void leave(struct cond *c, uint32_t generation)
{
	/* relaxed: the compare-exchange decides */
	uint64_t seen = w_load_relaxed(&c->waiters);

	do {
		if (generation_of(seen) != generation)
			return;
		/* release: pairs with the acquire in cond_destroy(); all our accesses come before the destruction */
	} while (!w_compare_exchange_release(&c->waiters, &seen, seen - 1));
	if ((uint32_t)seen == (COND_DESTROYING | 1))
		futex_wake(&c->waiters, INT_MAX);
}

/* ---- Waiting ---- */

struct waiter {
	struct cond *cond;
	pthread_mutex_t *mutex;
	uint32_t sequence;
	uint32_t generation;
};

/* relaxed: only whether it is another one than the waiter's matters; what was signalled is under the mutex */
static bool is_advanced(const struct waiter *waiter)
{
	return w_load_relaxed(&waiter->cond->sequence) != waiter->sequence;
}

static void cancelled(void *argument)
{
	struct waiter *waiter = argument;

	if (is_advanced(waiter))
		futex_wake(&waiter->cond->sequence, 1);
	leave(waiter->cond, waiter->generation);
	mutex_lock(waiter->mutex);
}

/*
 * Sleeps once; a cancellation point. The system call has no wrapper that is one, so that cancellation is asynchronous
 * around it: the handler is right wherever it strikes. The deferred type is the caller's to restore.
 *
 * glibc's own waits wait for a cancellation that is on its way when they return; we cannot see that. It then strikes
 * later, harmlessly, but for a thread that is ending just then: it has run to its end, and pthread_join says
 * PTHREAD_CANCELED.
 */
static int sleep_cancellably(struct waiter *waiter, const struct w_deadline *deadline)
{
	int result;

	pthread_cleanup_push(cancelled, waiter);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	result = futex_wait(&waiter->cond->sequence, waiter->sequence, deadline);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	pthread_cleanup_pop(0);
	return result;
}

/* Sleeps until a signal, which may be another's (0), or the deadline (ETIMEDOUT). */
static int sleep_until_signalled(struct waiter *waiter, const struct w_deadline *deadline)
{
	int result;

	if (deadline && deadline->at.tv_sec < 0)
		return ETIMEDOUT;
	do
		result = sleep_cancellably(waiter, deadline);
	while (result == EINTR);
	if (!result && !is_advanced(waiter))
		futex_wake(&waiter->cond->sequence, 1);
	return result == ETIMEDOUT ? ETIMEDOUT : 0;
}

static int wait_with_type_deferred(struct cond *c, pthread_mutex_t *mutex, const struct w_deadline *deadline)
{
	struct waiter waiter = {.cond = c, .mutex = mutex, .generation = w_fork_generation()};
	int result, locked;

	pthread_testcancel();
	enter(c, waiter.generation);
	/* relaxed: still under the mutex */
	waiter.sequence = w_load_relaxed(&c->sequence);
	result = mutex_unlock(mutex);
	if (result) {
		leave(c, waiter.generation);
		return result;
	}
	result = sleep_until_signalled(&waiter, deadline);
	leave(c, waiter.generation);
	locked = mutex_lock(mutex);
	return locked ? locked : result;
}

/* Waits for @c, which is ours. */
static int wait_for(struct cond *c, pthread_mutex_t *mutex, const struct w_deadline *deadline)
{
	int result, type, saved = errno;

	if (deadline && !any_deadline_valid(deadline))
		return EINVAL;
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	result = wait_with_type_deferred(c, mutex, deadline);
	pthread_setcanceltype(type, NULL);
	errno = saved;
	return result;
}

/* ---- pthread_cond_* ---- */

int cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	initialise();
	/* glibc's, to which all-zero memory is a private condition variable too, sets nothing but the flags. */
	memset(cond, 0, sizeof(*cond));
	return real.pthread_cond_init(cond, attr);
}

int cond_destroy(pthread_cond_t *cond)
{
	struct cond *c = cond_of(cond);
	uint32_t generation = w_fork_generation();
	int saved = errno;
	uint64_t seen;

	if (!is_ours(c))
		return real.pthread_cond_destroy(cond);
	/* acquire, here and in the loop: pairs with the release in leave(); the accesses of those who have left */
	seen = w_load_acquire(&c->waiters);
	while (generation_of(seen) == generation && (uint32_t)seen & ~COND_DESTROYING) {
		if (w_compare_exchange_acquire(&c->waiters, &seen, seen | COND_DESTROYING)) {
			futex_wait(&c->waiters, (uint32_t)seen | COND_DESTROYING, NULL);
			seen = w_load_acquire(&c->waiters);
		}
	}
	errno = saved;
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

	/* relaxed: as in enter(). Waiters of another generation are counted too: a wake-up for nobody is harmless */
	if ((uint32_t)w_load_relaxed(&c->waiters) & ~COND_DESTROYING)
		advance_and_wake(c, count);
	return 0;
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

EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *at)
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
