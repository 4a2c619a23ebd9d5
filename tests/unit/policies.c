/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The program's policies while other threads initialise and destroy locks, and in children that are
 * forked meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../forks.h"
#include "poundlock.h"
#include "unit.h"

#define THREADS 2
#define ROUNDS 200
#define CHILDREN 100

static atomic_bool done;

/* ---- Policies that are registered and removed ---- */

/* Not atomic: true while the policy is registered. */
static bool registered;

static uint32_t note_if_registered(void *context, const void *of)
{
	(void)of;
	sched_yield(); /* another thread may try to remove it */
	EXPECT(*(bool *)context, "the policy of a lock has been removed");
	return 0;
}

static uint32_t in_order(void *context, uint32_t shuffler, uint32_t waiter)
{
	(void)context, (void)shuffler, (void)waiter;
	return POUND_STAY;
}

static const struct pound_policy policy = {note_if_registered, in_order, &registered};

/* Waits for a lock that it holds, so that the policy is used. */
static void use(pound_lock_t *lock)
{
	const struct timespec past = {0, 0};

	pound_lock_lock(lock);
	EXPECT(pound_lock_timedlock(lock, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	pound_lock_unlock(lock);
}

static void *initialises_locks(void *unused)
{
	pound_lock_t lock;

	(void)unused;
	while (!atomic_load(&done)) {
		if (!pound_lock_init(&lock, "shfl,policy=mine", NULL, 0)) {
			use(&lock);
			pound_lock_destroy(&lock);
		}
		sched_yield();
	}
	return NULL;
}

/* EBUSY protects what the policy uses until the last lock that has it is destroyed. */
static void removed_when_no_lock_has_it(void)
{
	pthread_t threads[THREADS];
	int result;

	atomic_store(&done, false);
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, initialises_locks, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		registered = true;
		EXPECT(!pound_policy_register("mine", &policy));
		sched_yield();
		while ((result = pound_policy_unregister("mine")) == EBUSY)
			sched_yield();
		EXPECT(!result, "%d", result);
		registered = false;
		sched_yield();
	}
	atomic_store(&done, true);
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	EXPECT(pound_policy_unregister("mine") == ENOENT);
}

/* ---- Locks that are destroyed ---- */

/* A destroyed lock has no policy to give back again. */
static void destroyed_twice(void)
{
	pound_lock_t once, twice;

	registered = true;
	EXPECT(!pound_policy_register("mine", &policy));
	EXPECT(!pound_lock_init(&once, "shfl,policy=mine", NULL, 0));
	EXPECT(!pound_lock_init(&twice, "shfl,policy=mine", NULL, 0));
	pound_lock_destroy(&twice);
	pound_lock_destroy(&twice);
	EXPECT(pound_policy_unregister("mine") == EBUSY, "a lock has it");
	pound_lock_destroy(&once);
	EXPECT(!pound_policy_unregister("mine"));
	/* It is the default lock. */
	use(&twice);
}

/* ---- Children ---- */

static void *replaces(void *unused)
{
	(void)unused;
	while (!atomic_load(&done)) {
		EXPECT(!pound_policy_register("theirs", &policy));
		EXPECT(!pound_policy_register("theirs", &policy));
		EXPECT(!pound_policy_unregister("theirs"));
	}
	return NULL;
}

static void in_child(void)
{
	pound_lock_t lock;

	EXPECT(!pound_policy_register("theirs", &policy));
	EXPECT(!pound_lock_init(&lock, "shfl,policy=theirs", NULL, 0));
	use(&lock);
	EXPECT(pound_policy_unregister("theirs") == EBUSY);
	pound_lock_destroy(&lock);
	EXPECT(!pound_policy_unregister("theirs"));
	_exit(0);
}

/* A child has the name for itself, at whatever point of a registration it was forked. */
static void forked_meanwhile(void)
{
	pthread_t thread;

	atomic_store(&done, false);
	EXPECT(!pthread_create(&thread, NULL, replaces, NULL));
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (!child)
			in_child();
		reap(child);
	}
	atomic_store(&done, true);
	EXPECT(!pthread_join(thread, NULL));
}

int main(void)
{
	RUN(removed_when_no_lock_has_it);
	RUN(destroyed_twice);
	RUN(forked_meanwhile);
	return 0;
}
