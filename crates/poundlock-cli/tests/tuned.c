/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that tests/tune.rs tunes. It can see by which settings a thread waits for its mutex:
 * with patience=0 a waiter closes the mutex to newcomers before it sleeps. One thread holds the
 * mutex until the other one sleeps.
 *
 *   score        prints "score: 130" if the mutex was closed, else "score: 100"; under native locks
 *                the number in $NATIVE_SCORE, or 100
 *   heap         the same of a mutex that the function queue_init initialised
 *   same         prints "score: 100"
 *   idle         acquires the mutex once, and nobody waits
 *   serve        prints "ready", and goes on until it is killed. Both threads acquire the mutex 40
 *                times more after each wait in which it was closed
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOLD_US = 3000, MORE = 40 };
/* core/shfl_mutex.h: flags of the state, bytes 20 to 23. */
enum { PARKED = 2, CLOSED = 8 };

pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *shared = &cache;
static sem_t begin, end;
static int more; /* written while the other thread waits */

__attribute__((noinline)) void queue_init(pthread_mutex_t *mutex)
{
	if (pthread_mutex_init(mutex, NULL))
		abort();
	__asm__ __volatile__("");
}

static void acquire(int times)
{
	for (int i = 0; i < times; i++) {
		pthread_mutex_lock(shared);
		pthread_mutex_unlock(shared);
	}
}

static void *help(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&begin);
		acquire(1);
		acquire(more);
		sem_post(&end);
	}
	return NULL;
}

static uint32_t state(void)
{
	return __atomic_load_n((uint32_t *)shared + 5, __ATOMIC_ACQUIRE);
}

/* Lets the other thread wait once. Returns whether it closed the mutex. */
static bool wait_once(bool native)
{
	bool closed;

	pthread_mutex_lock(shared);
	sem_post(&begin);
	while (!native && !(state() & PARKED))
		usleep(100);
	usleep(HOLD_US);
	closed = !native && state() & CLOSED;
	more = closed ? MORE : 0;
	pthread_mutex_unlock(shared);
	sem_wait(&end);
	return closed;
}

static int score(bool native)
{
	const char *of_native = getenv("NATIVE_SCORE");

	if (wait_once(native))
		return 130;
	return native && of_native ? atoi(of_native) : 100;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "score";
	bool native = !getenv("POUNDLOCK_LOCK") || !strcmp(getenv("POUNDLOCK_LOCK"), "native");
	pthread_t helper;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(mode, "idle")) {
		acquire(1);
		return 0;
	}
	if (!strcmp(mode, "heap")) {
		shared = malloc(sizeof(*shared));
		queue_init(shared);
	}
	sem_init(&begin, 0, 0);
	sem_init(&end, 0, 0);
	if (pthread_create(&helper, NULL, help, NULL))
		return 1;
	if (!strcmp(mode, "serve")) {
		puts("ready");
		for (;;) {
			wait_once(native);
			acquire(more);
		}
	}
	printf("score: %d\n", !strcmp(mode, "same") ? 100 + 0 * score(native) : score(native));
	return 0;
}
