/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * No signal and no broadcast is lost: to one of several waiters, to many, without holding the
 * mutex, and while signals interrupt the waiters.
 */
#include <signal.h>

#include "posix.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned waiting, tokens, done;

static void *take_token(void *argument)
{
	(void)argument;
	EXPECT_OK(pthread_mutex_lock(&mutex));
	waiting++;
	while (!tokens)
		EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	tokens--;
	waiting--;
	done++;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return NULL;
}

static void give(unsigned count, int (*wake)(pthread_cond_t *cond), bool holding)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	tokens += count;
	if (holding)
		EXPECT_OK(wake(&cond));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	if (!holding)
		EXPECT_OK(wake(&cond));
}

static void wake_waiters(unsigned threads, int (*wake)(pthread_cond_t *cond), unsigned each)
{
	pthread_t *thread = calloc(threads, sizeof(*thread));

	done = 0;
	for (unsigned i = 0; i < threads; i++)
		thread[i] = start(take_token, NULL);
	until_is(&mutex, &waiting, threads);
	for (unsigned given = 0; given < threads; given += each) {
		give(each, wake, given % 2);
		until_is(&mutex, &done, given + each);
	}
	for (unsigned i = 0; i < threads; i++)
		finish(thread[i]);
	free(thread);
}

/* ---- Producers and consumers of a short ring buffer ---- */

#define RING 4
#define WORKERS 8
#define ITEMS 3000

static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static unsigned filled;
static unsigned long consumed;

static void *produce(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < ITEMS; i++) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		while (filled == RING)
			EXPECT_OK(pthread_cond_wait(&not_full, &mutex));
		filled++;
		if (i % 2)
			EXPECT_OK(pthread_cond_signal(&not_empty));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		if (i % 2 == 0)
			EXPECT_OK(pthread_cond_signal(&not_empty));
	}
	return NULL;
}

static void *consume(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < ITEMS; i++) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		while (!filled)
			EXPECT_OK(pthread_cond_wait(&not_empty, &mutex));
		filled--;
		consumed++;
		EXPECT_OK(pthread_cond_signal(&not_full));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return NULL;
}

static void ring(void)
{
	pthread_t threads[2 * WORKERS];

	for (size_t i = 0; i < 2 * WORKERS; i++)
		threads[i] = start(i % 2 ? produce : consume, NULL);
	for (size_t i = 0; i < 2 * WORKERS; i++)
		finish(threads[i]);
	EXPECT(consumed == WORKERS * ITEMS, "%lu", consumed);
}

/* ---- Two threads that take turns: each is signalled while it falls asleep ---- */

#define TURNS 20000

static pthread_cond_t yours[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static uintptr_t turn;

static void *take_turns(void *argument)
{
	uintptr_t me = (uintptr_t)argument;

	for (unsigned i = 0; i < TURNS; i++) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		while (turn != me)
			EXPECT_OK(pthread_cond_wait(&yours[me], &mutex));
		turn = !me;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		EXPECT_OK(pthread_cond_signal(&yours[!me]));
	}
	return NULL;
}

static void ping_pong(void)
{
	pthread_t threads[2];

	for (uintptr_t i = 0; i < 2; i++)
		threads[i] = start(take_turns, (void *)i);
	for (size_t i = 0; i < 2; i++)
		finish(threads[i]);
}

/* ---- An interrupted waiter continues to wait, without EINTR and with errno unchanged ---- */

static void on_signal(int number)
{
	(void)number;
	errno = E2BIG;
}

static void *wait_interrupted(void *argument)
{
	struct timespec at = from_now(CLOCK_REALTIME, 3600 * 1000);

	(void)argument;
	errno = ENOTTY;
	EXPECT_OK(pthread_mutex_lock(&mutex));
	waiting++;
	while (!tokens)
		EXPECT_OK(waiting % 2 ? pthread_cond_wait(&cond, &mutex)
				      : pthread_cond_timedwait(&cond, &mutex, &at));
	tokens--;
	waiting--;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	EXPECT(errno == ENOTTY || errno == E2BIG, "errno became %d", errno);
	return NULL;
}

static void interrupted(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t threads[2];

	EXPECT(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	for (size_t i = 0; i < 2; i++)
		threads[i] = start(wait_interrupted, NULL);
	until_is(&mutex, &waiting, 2);
	for (size_t i = 0; i < 20; i++) {
		EXPECT_OK(pthread_kill(threads[i % 2], SIGUSR1));
		sleep_ms(1);
	}
	give(2, pthread_cond_broadcast, true);
	for (size_t i = 0; i < 2; i++)
		finish(threads[i]);
}

/*
 * ---- Givers without the mutex, and takers whom signals move to the end of the futex's queue ----
 */

#define GIVERS 4
#define TAKERS 6
#define GIFTS 3000 /* by each giver: a multiple of TAKERS */

static atomic_bool given;

static void *give_many(void *argument)
{
	for (unsigned i = 0; i < GIFTS; i++)
		give(1, pthread_cond_signal, false);
	return argument;
}

static void *take_many(void *argument)
{
	for (unsigned i = 0; i < GIVERS * GIFTS / TAKERS; i++) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		while (!tokens)
			EXPECT_OK(pthread_cond_wait(&cond, &mutex));
		tokens--;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return argument;
}

static void *pester(void *argument)
{
	pthread_t *takers = argument;

	for (unsigned i = 0; !atomic_load(&given); i++) {
		EXPECT_OK(pthread_kill(takers[i % TAKERS], SIGUSR1));
		sched_yield();
	}
	return NULL;
}

static void from_outside(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t givers[GIVERS], takers[TAKERS], pesterer;

	EXPECT(!sigaction(SIGUSR1, &action, NULL), "sigaction");
	for (size_t i = 0; i < TAKERS; i++)
		takers[i] = start(take_many, NULL);
	for (size_t i = 0; i < GIVERS; i++)
		givers[i] = start(give_many, NULL);
	pesterer = start(pester, takers);
	for (size_t i = 0; i < GIVERS; i++)
		finish(givers[i]);
	/* An ended taker is joined only after the last signal was sent to it. */
	until_is(&mutex, &tokens, 0);
	atomic_store(&given, true);
	finish(pesterer);
	for (size_t i = 0; i < TAKERS; i++)
		finish(takers[i]);
}

int main(void)
{
	EXPECT_OK(pthread_cond_signal(&cond));
	EXPECT_OK(pthread_cond_broadcast(&cond));
	wake_waiters(1, pthread_cond_signal, 1);
	wake_waiters(40, pthread_cond_signal, 1);
	wake_waiters(1000, pthread_cond_broadcast, 1000);
	wake_waiters(1000, pthread_cond_broadcast, 250);
	ring();
	ping_pong();
	interrupted();
	from_outside();
	EXPECT_OK(pthread_cond_destroy(&cond));
	return 0;
}
