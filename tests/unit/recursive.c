/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pound_recursive_mutex_t: depth, other threads, errors, and ownership after a fork. */
#define _GNU_SOURCE
#include "poundlock.h"

#include <errno.h>
#include <pthread.h>

#include "../forks.h"
#include "unit.h"

_Static_assert(sizeof(pound_recursive_mutex_t) == 40, "40 bytes");

static pound_recursive_mutex_t mutex = POUND_RECURSIVE_MUTEX_INIT;

static const struct timespec past = {0, 0}, invalid = {0, 1000000000};

static void lock(void)
{
	EXPECT(!pound_recursive_mutex_lock(&mutex));
}

static void unlock(void)
{
	pound_recursive_mutex_unlock(&mutex);
}

static void *in_thread(void *run)
{
	((void (*)(void))(uintptr_t)run)();
	return NULL;
}

static void elsewhere(void (*run)(void))
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, in_thread, (void *)(uintptr_t)run));
	EXPECT(!pthread_join(thread, NULL));
}

static void is_locked(void)
{
	errno = 77;
	EXPECT(!pound_recursive_mutex_trylock(&mutex));
	EXPECT(pound_recursive_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	EXPECT(pound_recursive_mutex_timedlock(&mutex, CLOCK_REALTIME, &invalid) == EINVAL);
	EXPECT(errno == 77);
}

static void is_free(void)
{
	EXPECT(pound_recursive_mutex_trylock(&mutex));
	unlock();
	EXPECT(!pound_recursive_mutex_timedlock(&mutex, CLOCK_REALTIME, &invalid));
	unlock();
}

static void owner_locks_again(void)
{
	lock();
	elsewhere(is_locked);
	lock();
	EXPECT(pound_recursive_mutex_trylock(&mutex));
	EXPECT(!pound_recursive_mutex_timedlock(&mutex, CLOCK_MONOTONIC, &past));
	for (int i = 0; i < 3; i++) {
		unlock();
		elsewhere(is_locked);
	}
	unlock();
	elsewhere(is_free);
	is_free();
}

static void depth_is_bounded(void)
{
	lock();
	mutex.pound_recursion.pound_depth = UINT32_MAX - 1;
	lock();
	EXPECT(pound_recursive_mutex_lock(&mutex) == EAGAIN);
	EXPECT(!pound_recursive_mutex_trylock(&mutex));
	EXPECT(pound_recursive_mutex_timedlock(&mutex, CLOCK_REALTIME, &past) == EAGAIN);
	EXPECT(mutex.pound_recursion.pound_depth == UINT32_MAX);
	mutex.pound_recursion.pound_depth = 0;
	unlock();
	elsewhere(is_free);
}

static void child_owns_it(void)
{
	pid_t child;

	for (int way = 0; way < FORKS; way++) {
		lock();
		child = fork_by(way);
		if (!child) {
			lock();
			unlock();
			unlock();
			is_free();
			_exit(0);
		}
		reap(child);
		unlock();
		elsewhere(is_free);
	}
}

static void embedder_is_the_programs(void)
{
	mutex.pound_mutex.embedder = 12345;
	lock();
	lock();
	unlock();
	unlock();
	EXPECT(mutex.pound_mutex.embedder == 12345);
}

int main(void)
{
	RUN(owner_locks_again);
	RUN(depth_is_bounded);
	RUN(child_owns_it);
	RUN(embedder_is_the_programs);
	return 0;
}
