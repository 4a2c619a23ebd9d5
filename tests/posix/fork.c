/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fork() while other threads hold locks and wait, with atfork handlers that lock: the child can use
 * every lock that the forking thread held, with new threads of its own, and the parent continues.
 * Includes handlers of libraries that were initialised before everything else.
 */
#include "forks.h"
#include "posix.h"

#define THREADS 6

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_bool stop;
static unsigned long counted, waits;
static bool ready;

/* ---- Handlers: the first from before any constructor and any lock ---- */

static void lock_first(void)
{
	EXPECT_OK(pthread_mutex_lock(&first));
	if (!atomic_load(&stop))
		sleep_ms(1); /* so that others queue for it */
}

static void unlock_first(void)
{
	EXPECT_OK(pthread_mutex_unlock(&first));
	EXPECT_OK(pthread_mutex_lock(&first));
	EXPECT_OK(pthread_mutex_unlock(&first));
}

static void register_first(void)
{
	pthread_atfork(lock_first, unlock_first, unlock_first);
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const before_constructors)(void) = register_first;

static void lock_both(void)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	EXPECT_OK(pthread_mutex_lock(&recursive));
}

static void unlock_both(void)
{
	EXPECT_OK(pthread_mutex_unlock(&recursive));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
}

/*
 * Natively a recursive mutex cannot be unlocked in the child, where its owner has another thread
 * id: it is re-initialised, as programs do.
 */
static void unlock_in_child(void)
{
	pthread_mutex_t fresh = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

	recursive = fresh;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
}

/* ---- The other threads ---- */

static void *contend(void *argument)
{
	struct timespec at;

	while (!atomic_load(&stop)) {
		at = from_now(CLOCK_MONOTONIC, 1);
		if (!argument)
			EXPECT_OK(pthread_mutex_lock(&mutex));
		else if (pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at))
			continue;
		EXPECT_OK(pthread_mutex_lock(&recursive));
		counted++;
		EXPECT_OK(pthread_mutex_unlock(&recursive));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return NULL;
}

static void *contend_for_first(void *argument)
{
	while (!atomic_load(&stop)) {
		EXPECT_OK(pthread_mutex_lock(&first));
		EXPECT_OK(pthread_mutex_unlock(&first));
		sched_yield();
	}
	return argument;
}

static void *wait_for_ready(void *argument)
{
	(void)argument;
	EXPECT_OK(pthread_mutex_lock(&mutex));
	waits++;
	while (!ready)
		EXPECT_OK(pthread_cond_wait(&cond, &mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return NULL;
}

static void until_waits(unsigned long count)
{
	unsigned long seen;

	do {
		sched_yield();
		EXPECT_OK(pthread_mutex_lock(&mutex));
		seen = waits;
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	} while (seen != count);
}

/* ---- The child ---- */

static void *count_up(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < 500; i++) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		EXPECT_OK(pthread_mutex_lock(&recursive));
		counted++;
		EXPECT_OK(pthread_mutex_unlock(&recursive));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return NULL;
}

static void in_child(void)
{
	pthread_t threads[3], waiter;

	counted = waits = 0;
	/* Natively the parent's waiters would prevent its destruction. */
	EXPECT_OK(pthread_cond_init(&cond, NULL));
	waiter = start(wait_for_ready, NULL);
	for (size_t i = 0; i < 3; i++)
		threads[i] = start(count_up, NULL);
	for (size_t i = 0; i < 3; i++)
		finish(threads[i]);
	EXPECT(counted == 3 * 500, "%lu", counted);
	until_waits(1);
	EXPECT_OK(pthread_mutex_lock(&mutex));
	ready = true;
	EXPECT_OK(pthread_cond_signal(&cond));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	finish(waiter);
	EXPECT_OK(pthread_cond_destroy(&cond));
	_exit(0);
}

/* Without handlers, the child may use free locks and those that the forking thread held. */
static void holding(void)
{
	pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
	pid_t child;

	EXPECT_OK(pthread_mutex_lock(&held));
	child = fork();
	if (!child) {
		EXPECT_RESULT(pthread_mutex_trylock(&held), EBUSY);
		EXPECT_OK(pthread_mutex_unlock(&held));
		EXPECT_OK(elsewhere(pthread_mutex_lock, &held));
		_exit(0);
	}
	reap(child);
	EXPECT_OK(pthread_mutex_unlock(&held));
}

int main(void)
{
	pthread_t threads[THREADS], waiter;
	pid_t child;

	EXPECT_OK(pthread_atfork(lock_both, unlock_both, unlock_in_child));
	holding();
	waiter = start(wait_for_ready, NULL);
	until_waits(1);
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start(i % 3 ? contend : contend_for_first, (void *)(i % 2));
	for (unsigned round = 0; round < 20; round++) {
		child = fork();
		if (!child)
			in_child();
		reap(child);
	}
	atomic_store(&stop, true);
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
	EXPECT_OK(pthread_mutex_lock(&mutex));
	ready = true;
	EXPECT_OK(pthread_cond_broadcast(&cond));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	finish(waiter);
	EXPECT_OK(pthread_cond_destroy(&cond));
	return 0;
}
