/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A mutex that is held while the process forks, in each way to fork: other threads wait for it,
 * another thread holds it, the child re-initialises or unmaps it, or a vfork child takes it.
 */
#include <sys/mman.h>

#include "forks.h"
#include "posix.h"

#define WAITERS 3
#define CONTENDERS 4
#define ROUNDS 200

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long counted;
static atomic_uint about_to_wait;

static void *wait_once(void *argument)
{
	atomic_fetch_add(&about_to_wait, 1);
	EXPECT_OK(pthread_mutex_lock(&mutex));
	counted++;
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

static void *contend(void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		EXPECT_OK(pthread_mutex_lock(&mutex));
		counted++;
		if (i % 16 == 0)
			sched_yield(); /* so that others queue */
		EXPECT_OK(pthread_mutex_unlock(&mutex));
	}
	return argument;
}

static void contend_together(void)
{
	pthread_t threads[CONTENDERS];

	counted = 0;
	for (int i = 0; i < CONTENDERS; i++)
		threads[i] = start(contend, NULL);
	for (int i = 0; i < CONTENDERS; i++)
		finish(threads[i]);
	EXPECT(counted == CONTENDERS * ROUNDS, "%lu", counted);
}

/* Threads that wait for the held mutex, or will within a moment on a busy machine. */
static void start_waiters(pthread_t *threads)
{
	atomic_store(&about_to_wait, 0);
	for (int i = 0; i < WAITERS; i++)
		threads[i] = start(wait_once, NULL);
	while (atomic_load(&about_to_wait) < WAITERS)
		sched_yield();
	sleep_ms(20);
}

/* Releases the mutex, and waits until the threads of start_waiters() have had it. */
static void release_to(pthread_t *threads)
{
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	for (int i = 0; i < WAITERS; i++)
		finish(threads[i]);
}

/* ---- Waiters that do not exist in the child ---- */

/* Forks while the mutex is held and waited for, and runs @in_child in the child. */
static void fork_beside_waiters(int way, void (*in_child)(void))
{
	pthread_t waiters[WAITERS];
	pid_t child;

	EXPECT_OK(pthread_mutex_lock(&mutex));
	start_waiters(waiters);
	child = fork_by(way);
	if (!child) {
		limit();
		in_child();
		_exit(0);
	}
	reap(child);
	release_to(waiters);
}

static void release_and_contend(void)
{
	EXPECT_RESULT(pthread_mutex_trylock(&mutex), EBUSY);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	contend_together();
}

static void waiters_left_behind(int way)
{
	fork_beside_waiters(way, release_and_contend);
}

static void release_to_new_waiters(void)
{
	pthread_t waiters[WAITERS];

	start_waiters(waiters);
	counted = 0;
	release_to(waiters);
	EXPECT(counted == WAITERS, "%lu", counted);
}

/* The child's own threads wait before the forking thread releases. */
static void waiters_old_and_new(int way)
{
	fork_beside_waiters(way, release_to_new_waiters);
}

/* ---- A mutex that another thread locked for the forking thread ---- */

static void *lock_for_another(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(&mutex));
	return argument;
}

static void handed_over(int way)
{
	pthread_t waiters[WAITERS];
	pid_t child;

	finish(start(lock_for_another, NULL));
	start_waiters(waiters);
	child = fork_by(way);
	if (!child) {
		limit();
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		contend_together();
		_exit(0);
	}
	reap(child);
	release_to(waiters);
}

/* ---- A held mutex that is gone at the next fork ---- */

static void *trylock(void *result)
{
	*(int *)result = pthread_mutex_trylock(&mutex);
	return NULL;
}

/* As allocators do in a handler of pthread_atfork(). */
static void made_anew(int way)
{
	int result;
	pid_t child;

	EXPECT_OK(pthread_mutex_lock(&mutex));
	child = fork_by(way);
	if (!child) {
		limit();
		EXPECT_OK(pthread_mutex_init(&mutex, NULL));
		EXPECT_OK(pthread_mutex_lock(&mutex));
		EXPECT_OK(pthread_mutex_unlock(&mutex));
		child = fork_by(way);
		if (!child) {
			limit();
			finish(start(trylock, &result));
			EXPECT_OK(result);
			_exit(0);
		}
		reap(child);
		EXPECT_OK(elsewhere(pthread_mutex_trylock, &mutex));
		_exit(0);
	}
	reap(child);
	EXPECT_OK(pthread_mutex_unlock(&mutex));
}

static void unmapped(int way)
{
	pthread_mutex_t *held =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	EXPECT(held != MAP_FAILED);
	EXPECT_OK(pthread_mutex_init(held, NULL));
	EXPECT_OK(pthread_mutex_lock(held));
	EXPECT(!munmap(held, 4096));
	child = fork_by(way);
	if (!child) {
		limit();
		contend_together();
		_exit(0);
	}
	reap(child);
}

/* ---- A child that shares its parent's memory ---- */

static void *has_vfork_child(void *argument)
{
	pid_t child = vfork();

	if (!child) {
		(void)pthread_mutex_lock(&mutex);
		(void)pthread_mutex_unlock(&mutex);
		_exit(0);
	}
	reap(child);
	EXPECT_OK(pthread_mutex_lock(&mutex));
	EXPECT_OK(pthread_mutex_unlock(&mutex));
	return argument;
}

/* Takes the mutex before its parent's thread ever has, while others contend for it. */
static void vforked(void)
{
	pthread_t contender = start(contend, NULL);

	for (int i = 0; i < 20; i++)
		finish(start(has_vfork_child, NULL));
	finish(contender);
	contend_together();
}

/* ---- Mutexes that name their owner in the bytes that a child reads waiters from ---- */

static void with_owners(int way)
{
	static const int types[] = {PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
	pid_t child = fork_by(way);

	if (child) {
		reap(child);
		return;
	}
	limit();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		init_mutex(&mutex, types[i]);
		contend_together();
	}
	_exit(0);
}

int main(void)
{
	for (int way = 0; way < FORKS; way++) {
		with_owners(way);
		waiters_left_behind(way);
		waiters_old_and_new(way);
		handed_over(way);
		made_anew(way);
		unmapped(way);
	}
	vforked();
	return 0;
}
