/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pound_cond_t: errors, deadlines, the order of signals, broadcasts that wake one waiter after
 * another, what they report, each kind of lock, waits that allow one lock only, and a wait in a
 * child that a signal handler forks.
 */
#define _GNU_SOURCE
#include "poundlock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../events.h"
#include "../forks.h"
#include "built.h"
#include "unit.h"

#define MOST 6

_Static_assert(sizeof(pound_cond_t) == 16, "16 bytes");

static pound_cond_t cond = POUND_COND_INIT;
static pound_mutex_t mutex;
static pound_lock_t lock;
static pound_rwlock_t rwlock;

static const struct timespec past = {0, 0}, invalid = {0, 1000000000};

/* ---- Without another thread ---- */

static void nobody_waits(void)
{
	static const pound_cond_t none;

	EXPECT(!pound_cond_signal(&cond));
	EXPECT(!pound_cond_broadcast(&cond));
	EXPECT(!memcmp(&cond, &none, sizeof(cond)));
}

static void deadlines_have_passed(void)
{
	static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
	static const struct timespec before = {-1, 0};
	struct timespec soon;

	errno = 77;
	pound_mutex_lock(&mutex);
	for (int i = 0; i < COUNT(clocks); i++) {
		EXPECT(pound_cond_timedwait(&cond, &mutex, clocks[i], &past) == ETIMEDOUT);
		EXPECT(pound_cond_timedwait(&cond, &mutex, clocks[i], &before) == ETIMEDOUT);
		clock_gettime(clocks[i], &soon);
		soon.tv_nsec = (soon.tv_nsec + 1000000) % 1000000000;
		soon.tv_sec += soon.tv_nsec < 1000000;
		EXPECT(pound_cond_timedwait(&cond, &mutex, clocks[i], &soon) == ETIMEDOUT);
		EXPECT(!pound_mutex_trylock(&mutex), "the wait left the mutex unlocked");
		EXPECT(!cond.pound_last && !cond.pound_list, "a waiter that left is in the list");
	}
	pound_mutex_unlock(&mutex);
	EXPECT(errno == 77);
}

static void deadlines_are_invalid(void)
{
	pound_mutex_lock(&mutex);
	EXPECT(pound_cond_timedwait(&cond, &mutex, CLOCK_MONOTONIC, &invalid) == EINVAL);
	EXPECT(pound_cond_timedwait(&cond, &mutex, CLOCK_PROCESS_CPUTIME_ID, &past) == EINVAL);
	EXPECT(!pound_mutex_trylock(&mutex), "an error unlocked the mutex");
	pound_mutex_unlock(&mutex);
}

static void other_locks_time_out(void)
{
	EXPECT(!pound_lock_init(&lock, built("mcs") ? "mcs" : "shfl_mutex", NULL, 0));
	pound_lock_lock(&lock);
	EXPECT(pound_cond_timedwait_lock(&cond, &lock, CLOCK_REALTIME, &invalid) == EINVAL);
	EXPECT(pound_cond_timedwait_lock(&cond, &lock, CLOCK_REALTIME, &past) == ETIMEDOUT);
	pound_lock_unlock(&lock);
	pound_rwlock_wrlock(&rwlock);
	EXPECT(pound_cond_timedwait_wrlock(&cond, &rwlock, CLOCK_REALTIME, &invalid) == EINVAL);
	EXPECT(pound_cond_timedwait_wrlock(&cond, &rwlock, CLOCK_REALTIME, &past) == ETIMEDOUT);
	EXPECT(!pound_rwlock_tryrdlock(&rwlock), "the wait left the lock unlocked");
	pound_rwlock_wrunlock(&rwlock);
}

/* ---- Waiters ---- */

/* The waiters: how many wait, may return and have returned, and the order of their returns. */
static struct {
	int waiting, may_go, gone;
	int order[MOST];
} crowd;

static void lock_mutex(void *of)
{
	pound_mutex_lock(of);
}

static void unlock_mutex(void *of)
{
	pound_mutex_unlock(of);
}

static void lock_no_mutex(void *of)
{
	(void)of;
	pound_mutex_lock(&mutex);
}

static void unlock_no_mutex(void *of)
{
	(void)of;
	pound_mutex_unlock(&mutex);
}

/* By the mutex's address, and by one that each thread has for itself. */
static const struct pound_lockable shared_type = {lock_mutex, unlock_mutex},
				   own_type = {lock_no_mutex, unlock_no_mutex};

enum way { NATIVE, ANY, OWN };

static enum way way;

static void wait_in_way(void)
{
	struct timespec far = {.tv_sec = INT32_MAX};
	char own;

	if (way == NATIVE && crowd.waiting % 2)
		EXPECT(!pound_cond_timedwait(&cond, &mutex, CLOCK_REALTIME, &far));
	else if (way == NATIVE)
		pound_cond_wait(&cond, &mutex);
	else if (way == ANY)
		pound_cond_wait_any(&cond, &mutex, &shared_type);
	else
		EXPECT(!pound_cond_timedwait_any(&cond, &own, &own_type, CLOCK_REALTIME, &far));
}

static void *wait_and_go(void *unused)
{
	int number;

	pound_mutex_lock(&mutex);
	number = crowd.waiting++;
	wait_in_way();
	EXPECT(crowd.gone < crowd.may_go, "a waiter that was not signalled has gone");
	crowd.order[crowd.gone++] = number;
	pound_mutex_unlock(&mutex);
	return unused;
}

static pthread_t threads[MOST];

/* Returns with the mutex locked when *@count is @value. Only a wait unlocks it at that moment. */
static void lock_when(const int *count, int value)
{
	pound_mutex_lock(&mutex);
	while (*count != value) {
		pound_mutex_unlock(&mutex);
		sched_yield();
		pound_mutex_lock(&mutex);
	}
}

/* Starts MOST waiters, in order, and returns when all wait. */
static void start_waiters(enum way by)
{
	memset(&crowd, 0, sizeof(crowd));
	way = by;
	for (int i = 0; i < MOST; i++) {
		EXPECT(!pthread_create(&threads[i], NULL, wait_and_go, NULL));
		lock_when(&crowd.waiting, i + 1);
		pound_mutex_unlock(&mutex);
	}
}

static void expect_order(void)
{
	for (int i = 0; i < MOST; i++) {
		EXPECT(!pthread_join(threads[i], NULL));
		EXPECT(crowd.order[i] == i, "waiter %d went as number %d", crowd.order[i], i);
	}
	EXPECT(!cond.pound_last);
}

static void signals_are_in_order(void)
{
	start_waiters(NATIVE);
	for (int i = 0; i < MOST; i++) {
		lock_when(&crowd.gone, i);
		crowd.may_go++;
		if (i % 2)
			pound_cond_signal(&cond);
		pound_mutex_unlock(&mutex);
		if (i % 2 == 0)
			pound_cond_signal(&cond);
	}
	expect_order();
}

/* @relays: how many waiters are woken by another waiter. */
static void broadcast(enum way by, uint64_t relays)
{
	uint64_t before = count_of("relay");

	start_waiters(by);
	pound_mutex_lock(&mutex);
	crowd.may_go = MOST;
	pound_cond_broadcast(&cond);
	pound_mutex_unlock(&mutex);
	if (relays)
		expect_order();
	for (int i = 0; i < MOST && !relays; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	EXPECT(count_of("relay") - before == relays, "%d relays",
	       (int)(count_of("relay") - before));
}

static void broadcasts(void)
{
	pound_events_start();
	broadcast(NATIVE, MOST - 1);
	broadcast(ANY, MOST - 1);
	broadcast(OWN, 0);
}

/* ---- Each lock ---- */

static bool turn;

static void *turn_with_lock(void *unused)
{
	pound_lock_lock(&lock);
	while (!turn)
		pound_cond_wait_lock(&cond, &lock);
	turn = false;
	pound_cond_signal(&cond);
	pound_lock_unlock(&lock);
	return unused;
}

static void *turn_with_writer(void *unused)
{
	pound_rwlock_wrlock(&rwlock);
	while (!turn)
		pound_cond_wait_wrlock(&cond, &rwlock);
	turn = false;
	pound_cond_signal(&cond);
	pound_rwlock_wrunlock(&rwlock);
	return unused;
}

static void all_locks(void)
{
	pthread_t thread;

	for (size_t i = 0; pound_lock_info(i); i++) {
		EXPECT(!pound_lock_init(&lock, pound_lock_info(i)->name, NULL, 0));
		EXPECT(!pthread_create(&thread, NULL, turn_with_lock, NULL));
		pound_lock_lock(&lock);
		turn = true;
		pound_cond_signal(&cond);
		while (turn)
			pound_cond_wait_lock(&cond, &lock);
		pound_lock_unlock(&lock);
		EXPECT(!pthread_join(thread, NULL));
		pound_lock_destroy(&lock);
	}
	for (size_t i = 0; pound_rwlock_info(i); i++) {
		EXPECT(!pound_rwlock_init(&rwlock, pound_rwlock_info(i)->name, NULL, 0));
		EXPECT(!pthread_create(&thread, NULL, turn_with_writer, NULL));
		pound_rwlock_wrlock(&rwlock);
		turn = true;
		pound_cond_signal(&cond);
		while (turn)
			pound_cond_wait_wrlock(&cond, &rwlock);
		pound_rwlock_wrunlock(&rwlock);
		EXPECT(!pthread_join(thread, NULL));
	}
}

/* ---- Waits that allow one lock only ---- */

static void *turn_with_mutex_only(void *unused)
{
	pound_mutex_lock(&mutex);
	crowd.waiting++;
	while (!turn)
		EXPECT(!pound_cond_wait_only(&cond, &mutex, &shared_type, CLOCK_MONOTONIC, NULL));
	turn = false;
	pound_mutex_unlock(&mutex);
	return unused;
}

static void other_mutexes_are_refused(void)
{
	pound_mutex_t other = POUND_MUTEX_INIT;
	pthread_t thread;

	memset(&crowd, 0, sizeof(crowd));
	pound_mutex_lock(&other);
	EXPECT(pound_cond_wait_only(&cond, &other, &shared_type, CLOCK_MONOTONIC, &past) ==
	       ETIMEDOUT);
	EXPECT(!pthread_create(&thread, NULL, turn_with_mutex_only, NULL));
	lock_when(&crowd.waiting, 1);
	EXPECT(pound_cond_wait_only(&cond, &other, &shared_type, CLOCK_MONOTONIC, &past) == EBUSY);
	EXPECT(pound_cond_wait_only(&cond, &other, &shared_type, CLOCK_MONOTONIC, NULL) == EBUSY);
	EXPECT(pound_cond_wait_only(&cond, &other, &shared_type, CLOCK_MONOTONIC, &invalid) ==
	       EINVAL);
	EXPECT(!pound_mutex_trylock(&other), "a refused wait left the mutex unlocked");
	turn = true;
	EXPECT(pound_cond_broadcast(&cond) == 1);
	EXPECT(!pound_cond_signal(&cond));
	pound_mutex_unlock(&mutex);
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(pound_cond_wait_only(&cond, &other, &shared_type, CLOCK_MONOTONIC, &past) ==
	       ETIMEDOUT);
	pound_mutex_unlock(&other);
}

/* ---- A handler that forks ---- */

static _Atomic(pid_t) child = -1;

static void fork_in_handler(int number)
{
	(void)number;
	child = fork();
}

static void *wait_across_fork(void *unused)
{
	pound_mutex_lock(&mutex);
	crowd.waiting++;
	while (!turn) {
		pound_cond_wait(&cond, &mutex);
		if (!child) {
			pound_cond_broadcast(&cond);
			EXPECT(!cond.pound_last);
			_exit(0);
		}
	}
	pound_mutex_unlock(&mutex);
	return unused;
}

static void wait_ends_in_child(void)
{
	struct sigaction action = {.sa_handler = fork_in_handler};
	pthread_t thread;

	memset(&crowd, 0, sizeof(crowd));
	EXPECT(!sigaction(SIGUSR1, &action, NULL));
	EXPECT(!pthread_create(&thread, NULL, wait_across_fork, NULL));
	lock_when(&crowd.waiting, 1);
	pound_mutex_unlock(&mutex);
	EXPECT(!pthread_kill(thread, SIGUSR1));
	while (child < 0)
		sched_yield();
	reap(child);
	pound_mutex_lock(&mutex);
	turn = true;
	pound_mutex_unlock(&mutex);
	pound_cond_signal(&cond);
	EXPECT(!pthread_join(thread, NULL));
}

int main(void)
{
	RUN(nobody_waits);
	RUN(deadlines_have_passed);
	RUN(deadlines_are_invalid);
	RUN(other_locks_time_out);
	RUN(signals_are_in_order);
	RUN(broadcasts);
	RUN(all_locks);
	RUN(other_mutexes_are_refused);
	RUN(wait_ends_in_child);
	return 0;
}
