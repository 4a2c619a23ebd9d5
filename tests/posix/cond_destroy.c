/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A condition variable is destroyed and unmapped as soon as its waiters have been woken: directly
 * after a broadcast, before they may have run; and by a waiter directly after a signal. Also in a
 * forked child.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "posix.h"

#define WAITERS 8
#define ROUNDS 300

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t *cond;
static unsigned waiting;
static bool ready;

static pthread_cond_t *map_cond(void)
{
	pthread_cond_t *mapped = mmap(NULL, sizeof(*mapped), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(mapped != MAP_FAILED, "mmap");
	EXPECT_OK(pthread_cond_init(mapped, NULL));
	return mapped;
}

static void destroy(void)
{
	EXPECT_OK(pthread_cond_destroy(cond));
	memset(cond, 0x5a, sizeof(*cond));
	EXPECT(!munmap(cond, sizeof(*cond)), "munmap");
}

static void *wait_until_ready(void *argument)
{
	struct timespec at = from_now(CLOCK_REALTIME, 3600 * 1000);
	unsigned number;

	(void)argument;
	EXPECT_OK(pthread_mutex_lock(&mutex));
	number = waiting++;
	/*
	 * The broadcast that wakes it precedes unmapping: it must not read the condition variable
	 * again.
	 */
	while (!ready)
		EXPECT_OK(number % 2 ? pthread_cond_wait(cond, &mutex)
				     : pthread_cond_timedwait(cond, &mutex, &at));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return NULL;
}

static void lock_when_waiting(unsigned count)
{
	until_is(&mutex, &waiting, count);
	EXPECT_OK(pthread_mutex_lock(&mutex));
}

static void after_broadcast(bool holding)
{
	pthread_t threads[WAITERS];

	cond = map_cond();
	waiting = 0;
	ready = false;
	for (size_t i = 0; i < WAITERS; i++)
		threads[i] = start(wait_until_ready, NULL);
	lock_when_waiting(WAITERS);
	ready = true;
	EXPECT_OK(pthread_cond_broadcast(cond));
	if (holding)
		destroy();
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	if (!holding)
		destroy();
	for (size_t i = 0; i < WAITERS; i++)
		finish(threads[i]);
}

static void *wait_and_destroy(void *argument)
{
	wait_until_ready(argument);
	destroy();
	return NULL;
}

static void by_the_waiter(void)
{
	pthread_t thread;

	cond = map_cond();
	waiting = 0;
	ready = false;
	thread = start(wait_and_destroy, NULL);
	lock_when_waiting(1);
	ready = true;
	EXPECT_OK(pthread_cond_signal(cond));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	finish(thread);
}

static void destroy_often(void)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		after_broadcast(round % 2);
		by_the_waiter();
	}
}

int main(void)
{
	int status;
	pid_t child;

	destroy_often();
	child = fork();
	EXPECT(child >= 0, "fork");
	if (!child) {
		destroy_often();
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && !status, "the child ended with %x", status);
	return 0;
}
