/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program for ThreadSanitizer (lib/poundlock_watch.h). Without an argument its threads count
 * under one lock of each kind in each way of locking, wait for each other with a condition
 * variable, and initialise data once. The sanitizer must report nothing. With one of these
 * arguments it must report a data race, or an inversion:
 *   unlocked   no lock
 *   other      each thread has a lock of its own
 *   reader     writes under a read lock
 *   failed     writes after a failed attempt to lock, or to take a semaphore
 *   waited     each thread has a lock of its own and waits with a common condition variable
 *   inversion  locks two mutexes in both orders, one thread after the other
 */
#include "poundlock.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "../expect.h"

#define THREADS 4
#define ROUNDS 200

static pound_mutex_t mutex, mutexes[THREADS];
static pound_rwlock_t rwlock;
static pound_lock_t lock;
static pound_recursive_mutex_t recursive;
static pound_sem_t one = POUND_SEM_INIT(1), none;
static unsigned count;
static const struct timespec past = {0, 0}, far_future = {1L << 32, 0};

static void count_up(void *each, unsigned round)
{
	(void)each;
	count += round % 2;
}

/* Runs @work(each, round) in all threads, ROUNDS times each. */
struct crew {
	void (*work)(void *each, unsigned round);
	unsigned thread;
};

static void *labour(void *argument)
{
	const struct crew *crew = argument;

	for (unsigned round = 0; round < ROUNDS; round++)
		crew->work(&mutexes[crew->thread], round);
	return NULL;
}

static void all_threads(void (*work)(void *each, unsigned round))
{
	struct crew crews[THREADS];
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		crews[i] = (struct crew){work, i};
		EXPECT(!pthread_create(&threads[i], NULL, labour, &crews[i]));
	}
	for (unsigned i = 0; i < THREADS; i++)
		EXPECT(!pthread_join(threads[i], NULL));
}

static void with_mutex(void *each, unsigned round)
{
	switch (round % 3) {
	case 0:
		pound_mutex_lock(&mutex);
		break;
	case 1:
		while (!pound_mutex_trylock(&mutex))
			;
		break;
	default:
		EXPECT(!pound_mutex_timedlock(&mutex, CLOCK_REALTIME, &far_future));
	}
	count_up(each, round);
	if (round % 2)
		pound_mutex_unlock_fair(&mutex);
	else
		pound_mutex_unlock(&mutex);
}

static void with_lock(void *each, unsigned round)
{
	switch (round % 3) {
	case 0:
		pound_lock_lock(&lock);
		break;
	case 1:
		while (!pound_lock_trylock(&lock))
			;
		break;
	default:
		EXPECT(!pound_lock_timedlock(&lock, CLOCK_REALTIME, &far_future));
	}
	count_up(each, round);
	if (round % 2)
		pound_lock_unlock_fair(&lock);
	else
		pound_lock_unlock(&lock);
}

static void read_again(void)
{
	unsigned before = count;

	EXPECT(!pound_rwlock_rdlock_again(&rwlock));
	EXPECT(pound_rwlock_tryrdlock_again(&rwlock));
	EXPECT(!pound_rwlock_timedrdlock_again(&rwlock, CLOCK_REALTIME, &far_future));
	EXPECT(count == before);
	for (int i = 0; i < 3; i++)
		pound_rwlock_rdunlock(&rwlock);
}

static void with_rwlock(void *each, unsigned round)
{
	switch (round % 6) {
	case 0:
		EXPECT(!pound_rwlock_rdlock(&rwlock));
		break;
	case 1:
		while (!pound_rwlock_tryrdlock(&rwlock))
			;
		break;
	case 2:
		EXPECT(!pound_rwlock_timedrdlock(&rwlock, CLOCK_REALTIME, &far_future));
		break;
	case 3:
		pound_rwlock_wrlock(&rwlock);
		break;
	case 4:
		while (!pound_rwlock_trywrlock(&rwlock))
			;
		break;
	default:
		EXPECT(!pound_rwlock_timedwrlock(&rwlock, CLOCK_REALTIME, &far_future));
	}
	if (round % 6 < 3) {
		read_again();
		if (round % 2)
			pound_rwlock_rdunlock_fair(&rwlock);
		else
			pound_rwlock_rdunlock(&rwlock);
	} else {
		count_up(each, round);
		if (round % 2)
			pound_rwlock_wrunlock_fair(&rwlock);
		else
			pound_rwlock_wrunlock(&rwlock);
	}
}

static void with_recursive(void *each, unsigned round)
{
	switch (round % 3) {
	case 0:
		EXPECT(!pound_recursive_mutex_lock(&recursive));
		break;
	case 1:
		while (!pound_recursive_mutex_trylock(&recursive))
			;
		break;
	default:
		EXPECT(!pound_recursive_mutex_timedlock(&recursive, CLOCK_REALTIME, &far_future));
	}
	EXPECT(pound_recursive_mutex_trylock(&recursive));
	pound_recursive_mutex_unlock(&recursive);
	count_up(each, round);
	pound_recursive_mutex_unlock(&recursive);
}

static void with_semaphore(void *each, unsigned round)
{
	switch (round % 3) {
	case 0:
		pound_sem_wait(&one);
		break;
	case 1:
		while (!pound_sem_trywait(&one))
			;
		break;
	default:
		EXPECT(!pound_sem_timedwait(&one, CLOCK_REALTIME, &far_future));
	}
	count_up(each, round);
	EXPECT(!pound_sem_post(&one, 1));
}

/* ---- Once ---- */

static pound_once_t flags[ROUNDS];

static void initialise(void *number)
{
	count += *(const unsigned *)number;
}

/* One thread of all writes, by a function or after a failed attempt, and all read. */
static void with_once(void *each, unsigned round)
{
	unsigned before;

	if (each == mutexes && pound_once_begin(&flags[round])) {
		count++;
		pound_once_end(&flags[round], false);
	}
	pound_once(&flags[round], initialise, &round);
	if (round + 1 == ROUNDS) {
		before = count;
		EXPECT(!pound_once_begin(&flags[round]) && count == before);
	}
}

/* ---- Condition variables ---- */

static pound_cond_t turned;

static bool other_turn(const void *each)
{
	return count % THREADS != (const pound_mutex_t *)each - mutexes;
}

/* Counts under @lock_it when it is the thread's turn, for which it waits in both ways. */
#define BY_TURNS(lock_it, wait, timedwait, unlock, ...)                                 \
	do {                                                                            \
		lock_it;                                                                \
		(void)timedwait(&turned, __VA_ARGS__, CLOCK_REALTIME, &past);           \
		while (other_turn(each))                                                \
			if (round % 2)                                                  \
				wait(&turned, __VA_ARGS__);                             \
			else                                                            \
				EXPECT(!timedwait(&turned, __VA_ARGS__, CLOCK_REALTIME, \
						  &far_future));                        \
		count++;                                                                \
		pound_cond_broadcast(&turned);                                          \
		unlock;                                                                 \
	} while (0)

static void wait_with_mutex(void *each, unsigned round)
{
	BY_TURNS(pound_mutex_lock(&mutex), pound_cond_wait, pound_cond_timedwait,
		 pound_mutex_unlock(&mutex), &mutex);
}

static void wait_with_lock(void *each, unsigned round)
{
	BY_TURNS(pound_lock_lock(&lock), pound_cond_wait_lock, pound_cond_timedwait_lock,
		 pound_lock_unlock(&lock), &lock);
}

static void wait_with_writer(void *each, unsigned round)
{
	BY_TURNS(pound_rwlock_wrlock(&rwlock), pound_cond_wait_wrlock, pound_cond_timedwait_wrlock,
		 pound_rwlock_wrunlock(&rwlock), &rwlock);
}

static void lock_any(void *any)
{
	EXPECT(!pthread_mutex_lock(any));
}

static void unlock_any(void *any)
{
	EXPECT(!pthread_mutex_unlock(any));
}

static void wait_with_any(void *each, unsigned round)
{
	static const struct pound_lockable type = {lock_any, unlock_any};
	static pthread_mutex_t any = PTHREAD_MUTEX_INITIALIZER;

	BY_TURNS(lock_any(&any), pound_cond_wait_any, pound_cond_timedwait_any, unlock_any(&any),
		 &any, &type);
}

static void waiting(void (*work)(void *each, unsigned round))
{
	count = 0;
	all_threads(work);
	EXPECT(count == THREADS * ROUNDS, "%u", count);
}

static void locked(void)
{
	void (*const works[])(void *, unsigned) = {with_mutex, with_recursive, with_semaphore};

	for (unsigned i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		count = 0;
		all_threads(works[i]);
		EXPECT(count == THREADS * ROUNDS / 2, "%u", count);
	}
	all_threads(with_once);
	for (size_t i = 0; pound_lock_info(i); i++) {
		EXPECT(!pound_lock_init(&lock, pound_lock_info(i)->name, NULL, 0));
		all_threads(with_lock);
		pound_lock_destroy(&lock);
	}
	for (size_t i = 0; pound_rwlock_info(i); i++) {
		EXPECT(!pound_rwlock_init(&rwlock, pound_rwlock_info(i)->name, NULL, 0));
		all_threads(with_rwlock);
	}
	lock = (pound_lock_t)POUND_LOCK_INIT;
	rwlock = (pound_rwlock_t)POUND_RWLOCK_INIT;
	waiting(wait_with_mutex);
	waiting(wait_with_lock);
	waiting(wait_with_writer);
	waiting(wait_with_any);
}

static void under_own_lock(void *each, unsigned round)
{
	pound_mutex_lock(each);
	count_up(each, round);
	pound_mutex_unlock(each);
}

static void under_read_lock(void *each, unsigned round)
{
	EXPECT(!pound_rwlock_rdlock(&rwlock));
	count_up(each, round);
	pound_rwlock_rdunlock(&rwlock);
}

static void after_a_wait(void *each, unsigned round)
{
	pound_mutex_lock(each);
	EXPECT(pound_cond_timedwait(&turned, each, CLOCK_REALTIME, &past) == ETIMEDOUT);
	count_up(each, round);
	pound_mutex_unlock(each);
}

/* All threads fail: the mutex is held. */
static void after_a_failure(void *each, unsigned round)
{
	EXPECT(!pound_mutex_trylock(&mutex));
	EXPECT(pound_mutex_timedlock(&mutex, CLOCK_REALTIME, &past));
	EXPECT(!pound_sem_trywait(&none));
	EXPECT(pound_sem_timedwait(&none, CLOCK_REALTIME, &past) == ETIMEDOUT);
	count_up(each, round);
}

static void *lock_both(void *argument)
{
	unsigned first = *(unsigned *)argument;

	pound_mutex_lock(&mutexes[first]);
	pound_mutex_lock(&mutexes[1 - first]);
	pound_mutex_unlock(&mutexes[1 - first]);
	pound_mutex_unlock(&mutexes[first]);
	return NULL;
}

static void inversion(void)
{
	for (unsigned first = 0; first < 2; first++) {
		pthread_t thread;

		EXPECT(!pthread_create(&thread, NULL, lock_both, &first));
		EXPECT(!pthread_join(thread, NULL));
	}
}

int main(int argc, char **argv)
{
	const char *error = argc > 1 ? argv[1] : "";

	expect_part = "race";
	limit();
	if (!strcmp(error, "unlocked"))
		all_threads(count_up);
	else if (!strcmp(error, "other"))
		all_threads(under_own_lock);
	else if (!strcmp(error, "reader"))
		all_threads(under_read_lock);
	else if (!strcmp(error, "waited"))
		all_threads(after_a_wait);
	else if (!strcmp(error, "inversion"))
		inversion();
	else if (!strcmp(error, "failed")) {
		pound_mutex_lock(&mutex);
		all_threads(after_a_failure);
		pound_mutex_unlock(&mutex);
	} else
		locked();
	return 0;
}
