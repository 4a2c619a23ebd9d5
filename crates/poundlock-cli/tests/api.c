/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program with known uses of poundlock.h. tests/stats.rs contains the expected numbers. */
#define _GNU_SOURCE
#include <poundlock.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

pound_mutex_t waited_for = POUND_MUTEX_INIT;
pound_lock_t by_name, unnamed;
pound_rwlock_t of_zeroes = POUND_RWLOCK_INIT, rw_by_name;

static void *wait_once(void *unused)
{
	pound_mutex_lock(&waited_for);
	pound_mutex_unlock(&waited_for);
	return unused;
}

static void read_and_write(pound_rwlock_t *lock)
{
	for (int i = 0; i < 20; i++) {
		if (pound_rwlock_rdlock(lock))
			abort();
		pound_rwlock_rdunlock(lock);
	}
	for (int i = 0; i < 7; i++) {
		pound_rwlock_wrlock(lock);
		pound_rwlock_wrunlock(lock);
	}
}

static uint32_t note(void *context, const void *lock)
{
	(void)context, (void)lock;
	return 0;
}

static uint32_t rank(void *context, uint32_t shuffler, uint32_t waiter)
{
	(void)context, (void)shuffler, (void)waiter;
	return POUND_STAY;
}

static void *init_and_destroy(void *unused)
{
	pound_lock_t lock;

	for (int i = 0; i < 100000; i++) {
		if (pound_lock_init(&lock, "shfl,policy=mine", NULL, 0))
			abort();
		pound_lock_destroy(&lock);
	}
	return unused;
}

/* A policy can be removed after two threads have destroyed their locks that had it. */
static void remove_policy(void)
{
	static const struct pound_policy policy = {.note = note, .rank = rank};
	pthread_t thread;

	if (pound_policy_register("mine", &policy) ||
	    pthread_create(&thread, NULL, init_and_destroy, NULL))
		abort();
	init_and_destroy(NULL);
	if (pthread_join(thread, NULL) || pound_policy_unregister("mine"))
		abort();
}

static void lock_often(pound_lock_t *lock, int times)
{
	for (int i = 0; i < times; i++) {
		pound_lock_lock(lock);
		pound_lock_unlock(lock);
	}
}

/* Locks that have names from before, during and after their use, and two at one address. */
static void use_names(void)
{
	static pound_lock_t early, late, in_turn;
	static pound_rwlock_t table;

#ifndef OWN_LOCKS_ONLY
	static pthread_mutex_t native = PTHREAD_MUTEX_INITIALIZER;

	if (pound_set_name(&native, "pthread's") || pthread_mutex_lock(&native) ||
	    pthread_mutex_unlock(&native))
		abort();
#endif
	if (pound_set_name(&early, "early\nname") || pound_set_name(&table, "table"))
		abort();
	lock_often(&early, 2);
	read_and_write(&table);
	lock_often(&late, 3);
	if (pound_set_name(&late, "late name"))
		abort();
	if (pound_set_name(&unnamed, "removed") || pound_set_name(&unnamed, NULL))
		abort();
	lock_often(&unnamed, 4);
	if (pound_lock_init(&in_turn, "mcs", NULL, 0) || pound_set_name(&in_turn, "first"))
		abort();
	lock_often(&in_turn, 5);
	pound_lock_destroy(&in_turn);
	if (pound_lock_init(&in_turn, "ticket", NULL, 0) || pound_set_name(&in_turn, "second"))
		abort();
	lock_often(&in_turn, 6);
	pound_lock_destroy(&in_turn);
}

int main(void)
{
	pthread_t thread;

	remove_policy();
	use_names();
	if (pound_lock_init(&by_name, "mcs", NULL, 0) ||
	    pound_rwlock_init(&rw_by_name, "fair_rw", NULL, 0))
		return 1;
	for (int i = 0; i < 100; i++) {
		pound_lock_lock(&by_name);
		if (pound_lock_trylock(&by_name))
			abort();
		pound_lock_unlock(&by_name);
	}
	read_and_write(&of_zeroes);
	read_and_write(&rw_by_name);
	pound_mutex_lock(&waited_for);
	if (pthread_create(&thread, NULL, wait_once, NULL))
		abort();
	/* The waiter cannot acquire the lock before this thread has seen it wait. */
	while (__atomic_load_n(&waited_for.pound_state, __ATOMIC_RELAXED) == 1)
		usleep(1000);
	pound_mutex_unlock(&waited_for);
	return pthread_join(thread, NULL);
}
