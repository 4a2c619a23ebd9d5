/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A wait is a cancellation point: for both cancellation types, for pending and later requests, with
 * and without a deadline. The waiter holds the mutex again when its clean-up handlers run. A signal
 * that a cancelled waiter consumed goes to another waiter.
 */
#include <setjmp.h>
#include <signal.h>

#include "../forks.h"
#include "posix.h"

static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned waiting;

/* Only the owner may unlock an error-checking mutex. */
static void unlock(void *argument)
{
	unsigned *cleaned = argument;

	++*cleaned;
	waiting--;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
}

struct way {
	int type;
	bool timed, pending, disabled;
	pid_t waiter;
	unsigned cleaned;
};

static int wait_once(bool timed)
{
	struct timespec at = from_now(CLOCK_REALTIME, 3600 * 1000);

	return timed ? pthread_cond_timedwait(&cond, &mutex, &at)
		     : pthread_cond_wait(&cond, &mutex);
}

static void *wait_for_ever(void *argument)
{
	struct way *way = argument;
	int type;

	EXPECT_OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
	EXPECT_OK(pthread_mutex_lock(&mutex));
	way->waiter = kernel_id();
	waiting++;
	pthread_cleanup_push(unlock, &way->cleaned);
	if (way->pending)
		EXPECT_OK(pthread_cancel(pthread_self()));
	EXPECT_OK(pthread_setcanceltype(way->type, NULL));
	if (!way->disabled)
		EXPECT_OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
	do
		EXPECT_OK(wait_once(way->timed));
	while (!way->disabled);
	EXPECT_OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type));
	EXPECT(type == way->type, "the type became %d", type);
	pthread_cleanup_pop(1);
	return NULL;
}

static void cancel(struct way way)
{
	pthread_t thread = start(wait_for_ever, &way);
	void *result;

	if (!way.pending) {
		until_is(&mutex, &waiting, 1);
		/*
		 * POSIX has no wait that allows asynchronous cancellation before it sleeps: glibc's
		 * may lose the mutex then.
		 */
		until_asleep(way.waiter);
		EXPECT_OK(pthread_cancel(thread));
	}
	if (way.disabled) {
		sleep_ms(5);
		EXPECT_OK(pthread_mutex_lock(&mutex));
		EXPECT(waiting == 1, "cancelled though that is disabled");
		EXPECT_OK(pthread_cond_signal(&cond));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	result = finish(thread);
	EXPECT(result == (way.disabled ? NULL : PTHREAD_CANCELED), "ended by %p", result);
	EXPECT(way.cleaned == 1, "cleaned up %u times", way.cleaned);
	EXPECT_OK(pthread_mutex_trylock(&mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
}

/* ---- Signals race with cancellation: one signal wakes one of two waiters, or is passed on ---- */

static unsigned tokens;
static bool taken[2];

static void give_up(void *argument)
{
	(void)argument;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
}

static void *take_token(void *argument)
{
	bool *took = argument;

	EXPECT_OK(pthread_mutex_lock(&mutex));
	pthread_cleanup_push(give_up, NULL);
	waiting++;
	while (!tokens)
		EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	tokens--;
	*took = true;
	pthread_cleanup_pop(1);
	return NULL;
}

static void *cancel_it(void *argument)
{
	EXPECT_OK(pthread_cancel(*(pthread_t *)argument));
	return NULL;
}

static void give_token(bool holding)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	tokens++;
	if (holding)
		EXPECT_OK(pthread_cond_signal(&cond));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	if (!holding)
		EXPECT_OK(pthread_cond_signal(&cond));
}

static void signal_and_cancel(bool holding)
{
	pthread_t threads[2], canceller;

	waiting = 0;
	taken[0] = taken[1] = false;
	for (size_t i = 0; i < 2; i++)
		threads[i] = start(take_token, &taken[i]);
	until_is(&mutex, &waiting, 2);
	canceller = start(cancel_it, &threads[0]);
	give_token(holding);
	finish(canceller);
	finish(threads[0]);
	if (taken[0])
		give_token(holding);
	finish(threads[1]); /* hangs if the signal was lost */
	EXPECT(taken[1], "the other one was cancelled");
	EXPECT(!tokens, "%u tokens left", tokens);
	waiting = 0;
}

/* ---- A signal handler jumps out of a wait: the wait ends, and the waiter owns the mutex ---- */

static sigjmp_buf out;
static pid_t jumper;

static void jump(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

static void *interrupt(void *argument)
{
	until_is(&mutex, &waiting, 1);
	until_asleep(jumper);
	EXPECT_OK(pthread_kill(*(pthread_t *)argument, SIGUSR1));
	return NULL;
}

static void jump_out(void)
{
	struct sigaction action = {.sa_handler = jump};
	pthread_t self = pthread_self(), other;

	EXPECT(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	EXPECT_OK(pthread_mutex_lock(&mutex));
	waiting = 1;
	jumper = kernel_id();
	other = start(interrupt, &self);
	if (!sigsetjmp(out, 1))
		for (;;)
			EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	waiting = 0;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	finish(other);
}

/* ---- The only thread waits; a signal handler starts another one, which cancels it ---- */

static pthread_t only;

static void start_canceller(int number)
{
	pthread_t canceller;

	(void)number;
	EXPECT_OK(pthread_create(&canceller, NULL, cancel_it, &only));
}

static void succeed(void *argument)
{
	(void)argument;
	_exit(0);
}

static void wait_alone(void)
{
	struct sigaction action = {.sa_handler = start_canceller};
	pid_t child;

	EXPECT(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	only = pthread_self();
	child = fork();
	if (!child) {
		limit();
		EXPECT_OK(pthread_mutex_lock(&mutex));
		pthread_cleanup_push(succeed, NULL);
		for (;;)
			EXPECT_OK(pthread_cond_wait(&cond, &mutex));
		pthread_cleanup_pop(0);
	}
	sleep_ms(50); /* probably asleep by now; otherwise the cancellation is pending */
	EXPECT(!kill(child, SIGUSR1), "kill");
	reap(child);
}

int main(void)
{
	static const int types[] = {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS};

	wait_alone();
	for (unsigned i = 0; i < 8; i++)
		cancel((struct way){.type = types[i & 1], .timed = i & 2, .pending = i & 4});
	for (unsigned i = 0; i < 2; i++)
		cancel((struct way){.type = types[i], .disabled = true});
	for (unsigned i = 0; i < 300; i++)
		signal_and_cancel(i & 1);
	jump_out();
	EXPECT_OK(pthread_cond_destroy(&cond)); /* hangs if cancelled waits are still counted */
	return 0;
}
