/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Mutual exclusion among threads that lock, try and nest, released in any order; a mutex that
 * travels from thread to thread; memory reused directly after an unlock; and 10,000 threads in the
 * life of the process.
 */
#include <sys/mman.h>

#include "posix.h"

#define THREADS 8
#define ROUNDS 2000
#define MUTEXES 3

static pthread_mutex_t mutexes[MUTEXES] = {PTHREAD_MUTEX_INITIALIZER,
					   PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
					   PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};
static unsigned long counts[MUTEXES];

static void lock_by_trying(pthread_mutex_t *mutex)
{
	int result;

	while ((result = pthread_mutex_trylock(mutex)) == EBUSY)
		sched_yield();
	EXPECT_OK(result);
}

static void *increment(void *argument)
{
	uintptr_t number = (uintptr_t)argument;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < MUTEXES; i++) {
			if ((round + number) % 7)
				EXPECT_OK(pthread_mutex_lock(&mutexes[i]));
			else
				lock_by_trying(&mutexes[i]);
			counts[i]++;
		}
		/* in the order of acquisition, not the reverse */
		for (size_t i = 0; i < MUTEXES; i++)
			EXPECT_OK(pthread_mutex_unlock(&mutexes[(i + round) % MUTEXES]));
	}
	return NULL;
}

static void exclusion(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start(increment, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
	for (size_t i = 0; i < MUTEXES; i++)
		EXPECT(counts[i] == THREADS * ROUNDS, "%lu", counts[i]);
}

/* Baton: each thread locks its own mutex twice; its predecessor's unlock ends the second wait. */
static pthread_mutex_t batons[THREADS];
static atomic_uint passed;

static void *pass_on(void *argument)
{
	uintptr_t number = (uintptr_t)argument;

	for (unsigned round = 0; round < 100; round++) {
		EXPECT_OK(pthread_mutex_lock(&batons[number]));
		EXPECT(atomic_fetch_add(&passed, 1) == round * THREADS + number, "out of turn");
		EXPECT_OK(pthread_mutex_unlock(&batons[(number + 1) % THREADS]));
	}
	return NULL;
}

static void travel(void)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		EXPECT_OK(pthread_mutex_init(&batons[i], NULL));
		if (i)
			EXPECT_OK(pthread_mutex_lock(&batons[i]));
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start(pass_on, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		finish(threads[i]);
}

/* The second of two holders frees the object: the first one's unlock must not touch it any more. */
struct shared {
	pthread_mutex_t mutex;
	unsigned users;
};

static void *drop(void *argument)
{
	struct shared *shared = argument;
	bool last;

	EXPECT_OK(pthread_mutex_lock(&shared->mutex));
	last = !--shared->users;
	EXPECT_OK(pthread_mutex_unlock(&shared->mutex));
	if (last) {
		EXPECT_OK(pthread_mutex_destroy(&shared->mutex));
		EXPECT_OK(munmap(shared, sizeof(*shared)));
	}
	return NULL;
}

static void free_after_unlock(void)
{
	pthread_t threads[3];

	for (unsigned round = 0; round < 1000; round++) {
		struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		EXPECT(shared != MAP_FAILED, "mmap");
		shared->users = 3;
		for (size_t i = 0; i < 3; i++)
			threads[i] = start(drop, shared);
		for (size_t i = 0; i < 3; i++)
			finish(threads[i]);
	}
}

static void *lock_once(void *argument)
{
	EXPECT_OK(pthread_mutex_lock(argument));
	EXPECT_OK(pthread_mutex_unlock(argument));
	return NULL;
}

static void come_and_go(void)
{
	pthread_t threads[2];

	for (unsigned round = 0; round < 5000; round++) {
		for (size_t i = 0; i < 2; i++)
			threads[i] = start(lock_once, &mutexes[round % MUTEXES]);
		for (size_t i = 0; i < 2; i++)
			finish(threads[i]);
	}
}

/*
 * A mutex held by an ended thread stays locked, also for a thread that gets the same stack memory.
 */
static void end_while_holding(void)
{
	static pthread_mutex_t held[] = {PTHREAD_MUTEX_INITIALIZER,
					 PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
					 PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

	for (size_t i = 0; i < 3; i++) {
		EXPECT_OK(elsewhere(pthread_mutex_lock, &held[i]));
		EXPECT_RESULT(elsewhere(pthread_mutex_trylock, &held[i]), EBUSY);
		EXPECT_RESULT(pthread_mutex_trylock(&held[i]), EBUSY);
	}
}

int main(void)
{
	exclusion();
	travel();
	free_after_unlock();
	come_and_go();
	end_while_holding();
	return 0;
}
