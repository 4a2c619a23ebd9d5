/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * pthread_cond_*, in place (layout.h), on the word of cond_word.h.
 *
 * A cancelled waiter loses no signal: if the sequence has changed since it entered, it may have
 * been the one woken, and wakes another one in its place. That is a spurious wake-up at worst.
 *
 * Process-shared condition variables are glibc's as long as their mutexes are: other processes may
 * use them without this library. One that is waited for with a mutex of ours cannot be shared,
 * whatever its attribute is, and is ours from then on. If all mutexes are glibc's and are counted,
 * other condition variables are ours all the same (stats/native.h).
 */
#define _GNU_SOURCE
#include "cond.h"

#include <string.h>

#include "kernel.h"
#include "cond_word.h"
#include "layout.h"
#include "mutex.h"
#include "preload.h"
#include "real.h"

_Static_assert(sizeof(struct cond) <= sizeof(pthread_cond_t), "a condition variable fits in place");

/* ---- Native or ours ---- */

/*
 * Whether there are any of ours. With statistics of native mutexes as well: glibc's wait locks the
 * mutex again where that cannot be counted or timed.
 */
static inline bool has_ours(void)
{
	/* acquire: pairs with the release in choose() */
	if (w_likely(w_load_acquire(&chosen_ops)))
		return true;
	initialise();
	/* relaxed: initialise() has acquired */
	return w_load_relaxed(&chosen_ops) || is_native_counted();
}

/* Whether @c, to be waited for with @mutex, is ours. */
static bool claim(struct cond *c, pthread_mutex_t *mutex)
{
	if (!has_ours())
		return false;
	/* relaxed, here and below: flags change only here, once */
	if (w_likely(!(w_load_relaxed(cond_flags(c)) & cond_layout.pshared)))
		return true;
	if (mutex_is_native(mutex))
		return false;
	(void)w_fetch_and_relaxed(cond_flags(c), ~cond_layout.pshared);
	return true;
}

static inline bool is_ours(struct cond *c)
{
	/* relaxed: flags change only in claim(), once */
	return has_ours() && !(w_load_relaxed(cond_flags(c)) & cond_layout.pshared);
}

/* ---- Waiting ---- */

struct waiter {
	struct cond_waiter in;
	pthread_mutex_t *mutex;
	int type; /* its own type of cancellation, while it waits with another one */
};

/* After a cancellation, or a siglongjmp() out of the wait. */
static void cancelled(void *argument)
{
	struct waiter *waiter = argument;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	leave_cancelled(&waiter->in);
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
		return sleep_once(&waiter->in, deadline);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	result = sleep_once(&waiter->in, deadline);
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
	while (sleeps_again(&waiter->in, result));
	_pthread_cleanup_pop(&handler, 0);
	return result;
}

/* Sleeps until a signal (0; it may be spurious), or the deadline (ETIMEDOUT). */
static int sleep_until_signalled(struct waiter *waiter, const struct w_deadline *deadline)
{
	if (deadline && deadline->at.tv_sec < 0)
		return ETIMEDOUT;
	return slept(&waiter->in, sleep_cancellably(waiter, deadline));
}

static int wait_with_type_deferred(struct waiter *waiter, const struct w_deadline *deadline)
{
	int result, locked;

	pthread_testcancel();
	waiter->in.sequence = enter(waiter->in.cond);
	result = mutex_unlock(waiter->mutex);
	if (result) {
		leave(waiter->in.cond, waiter->in.generation);
		return result;
	}
	result = sleep_until_signalled(waiter, deadline);
	leave(waiter->in.cond, waiter->in.generation);
	locked = mutex_lock(waiter->mutex);
	return locked ? locked : result;
}

/* Waits for @c, which is ours. */
static int wait_for(struct cond *c, pthread_mutex_t *mutex, const struct w_deadline *deadline)
{
	struct waiter waiter = {.in = {.cond = c, .generation = w_fork_generation()},
				.mutex = mutex,
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

	if (!is_ours(c))
		return real.pthread_cond_destroy(cond);
	await_leavers(c);
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

int cond_signal(pthread_cond_t *cond)
{
	return is_ours(cond_of(cond)) ? wake(cond_of(cond), 1) : real.pthread_cond_signal(cond);
}

int cond_broadcast(pthread_cond_t *cond)
{
	return is_ours(cond_of(cond)) ? wake(cond_of(cond), INT_MAX)
				      : real.pthread_cond_broadcast(cond);
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
