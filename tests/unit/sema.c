/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pound_sem_t: values, errors and deadlines, how many waiters a post lets in, and posts by signal
 * handlers.
 */
#define _GNU_SOURCE
#include "poundlock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../forks.h"
#include "unit.h"

#define WAITERS 6

_Static_assert(sizeof(pound_sem_t) == 8, "8 bytes");

static pound_sem_t sem;

static const struct timespec past = {0, 0}, invalid = {0, 1000000000};

/* ---- Signal handlers, in a process of one thread ---- */

#define SIGNALS 500

static volatile int signals;

static void post_in_handler(int number)
{
	(void)number;
	signals++;
	EXPECT(!pound_sem_post(&sem, 1));
}

/* Sends signals to its parent until that kills it. */
static void send_signals(void)
{
	pid_t parent = getppid();

	while (!kill(parent, SIGUSR1))
		sched_yield();
	_exit(0);
}

/* No post is lost that interrupts another post, or a wait. */
static void handlers_interrupt_posts(void)
{
	struct sigaction action = {.sa_handler = post_in_handler, .sa_flags = SA_RESTART};
	uint32_t posts = 0, taken = 0;
	pid_t child;

	EXPECT(!sigaction(SIGUSR1, &action, NULL));
	child = fork();
	if (!child)
		send_signals();
	EXPECT(child > 0);
	while (signals < SIGNALS) {
		for (int i = 0; i < 2; i++)
			posts += !pound_sem_post(&sem, 1);
		for (int i = 0; i < 2; i++)
			taken += pound_sem_trywait(&sem);
	}
	EXPECT(!kill(child, SIGKILL));
	EXPECT(waitpid(child, NULL, 0) == child);
	signal(SIGUSR1, SIG_IGN);
	EXPECT(pound_sem_value(&sem) == posts + (uint32_t)signals - taken,
	       "%u posts, %d by handlers, %u taken, %u left", posts, signals, taken,
	       pound_sem_value(&sem));
}

/* ---- One thread ---- */

static void values(void)
{
	static pound_sem_t three = POUND_SEM_INIT(3), zeroed;

	errno = 77;
	EXPECT(pound_sem_value(&three) == 3 && !pound_sem_value(&zeroed));
	pound_sem_wait(&three);
	EXPECT(pound_sem_trywait(&three));
	EXPECT(!pound_sem_timedwait(&three, CLOCK_REALTIME, &invalid),
	       "a deadline matters only to a wait");
	EXPECT(!pound_sem_trywait(&three));
	EXPECT(!pound_sem_post(&three, 0) && !pound_sem_value(&three));
	EXPECT(!pound_sem_post(&three, 4) && pound_sem_value(&three) == 4);
	EXPECT(!pound_sem_init(&sem, 2) && pound_sem_value(&sem) == 2);
	EXPECT(pound_sem_init(&sem, POUND_SEM_MAX + 1) == EINVAL);
	EXPECT(pound_sem_value(&sem) == 2, "a value that is refused is set");
	EXPECT(errno == 77);
}

static void overflows(void)
{
	EXPECT(!pound_sem_init(&sem, POUND_SEM_MAX - 1));
	EXPECT(pound_sem_post(&sem, 2) == EOVERFLOW);
	EXPECT(pound_sem_post(&sem, UINT32_MAX) == EOVERFLOW);
	EXPECT(pound_sem_value(&sem) == POUND_SEM_MAX - 1);
	EXPECT(!pound_sem_post(&sem, 1) && pound_sem_value(&sem) == POUND_SEM_MAX);
	EXPECT(pound_sem_post(&sem, 1) == EOVERFLOW);
	EXPECT(pound_sem_trywait(&sem) && pound_sem_value(&sem) == POUND_SEM_MAX - 1);
}

static void deadlines(void)
{
	static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
	static const struct timespec before = {-1, 0};
	struct timespec soon;

	errno = 77;
	EXPECT(!pound_sem_init(&sem, 0));
	for (int i = 0; i < COUNT(clocks); i++) {
		EXPECT(pound_sem_timedwait(&sem, clocks[i], &past) == ETIMEDOUT);
		EXPECT(pound_sem_timedwait(&sem, clocks[i], &before) == ETIMEDOUT);
		clock_gettime(clocks[i], &soon);
		soon.tv_nsec = (soon.tv_nsec + 1000000) % 1000000000;
		soon.tv_sec += soon.tv_nsec < 1000000;
		EXPECT(pound_sem_timedwait(&sem, clocks[i], &soon) == ETIMEDOUT);
	}
	EXPECT(pound_sem_timedwait(&sem, CLOCK_MONOTONIC, &invalid) == EINVAL);
	EXPECT(pound_sem_timedwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &past) == EINVAL);
	EXPECT(!pound_sem_value(&sem) && !sem.pound_waiters);
	EXPECT(errno == 77);
}

/* ---- Waiters ---- */

static W_ATOMIC(int) gone;

static void *wait_and_go(void *number)
{
	struct timespec far = {.tv_sec = INT32_MAX};

	if ((uintptr_t)number % 2)
		EXPECT(!pound_sem_timedwait(&sem, CLOCK_REALTIME, &far));
	else
		pound_sem_wait(&sem);
	atomic_fetch_add(&gone, 1);
	return NULL;
}

static void wait_for_waiters(uint32_t count)
{
	while (__atomic_load_n(&sem.pound_waiters, __ATOMIC_RELAXED) != count)
		sched_yield();
}

static void start_waiters(pthread_t *threads)
{
	EXPECT(!pound_sem_init(&sem, 0));
	atomic_store(&gone, 0);
	for (uintptr_t i = 0; i < WAITERS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, wait_and_go, (void *)i));
	wait_for_waiters(WAITERS);
}

/* Posts @count at a time, and expects as many waiters to go. */
static void let_in(uint32_t count)
{
	pthread_t threads[WAITERS];

	start_waiters(threads);
	for (uint32_t left = WAITERS; left; left -= count) {
		EXPECT(!pound_sem_post(&sem, count));
		wait_for_waiters(left - count);
		while (atomic_load(&gone) < (int)(WAITERS - left + count))
			sched_yield();
		EXPECT(atomic_load(&gone) == (int)(WAITERS - left + count));
	}
	for (int i = 0; i < WAITERS; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	EXPECT(!sem.pound_state, "the semaphore is not as it was: %x", sem.pound_state);
}

static void posts_let_in_as_many(void)
{
	for (uint32_t count = 1; count <= 3; count++)
		let_in(count);
	let_in(WAITERS);
}

/* ---- A handler of the waiting thread ---- */

static void wakes_its_own_thread(void)
{
	struct sigaction action = {.sa_handler = post_in_handler, .sa_flags = SA_RESTART};
	pthread_t thread;

	EXPECT(!sigaction(SIGUSR1, &action, NULL));
	EXPECT(!pound_sem_init(&sem, 0));
	EXPECT(!pthread_create(&thread, NULL, wait_and_go, (void *)0));
	wait_for_waiters(1);
	EXPECT(!pthread_kill(thread, SIGUSR1));
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(!pound_sem_value(&sem));
}

/* ---- Forks ---- */

/* A child's semaphore works although the parent's waiters are counted in it. */
static void fork_among_waiters(void)
{
	pthread_t threads[WAITERS];
	pid_t child;

	start_waiters(threads);
	for (int way = 0; way < FORKS; way++) {
		child = fork_by(way);
		if (!child) {
			EXPECT(!pound_sem_post(&sem, 2));
			pound_sem_wait(&sem);
			EXPECT(pound_sem_trywait(&sem) && !pound_sem_trywait(&sem));
			EXPECT(pound_sem_timedwait(&sem, CLOCK_REALTIME, &past) == ETIMEDOUT);
			_exit(0);
		}
		reap(child);
	}
	EXPECT(!pound_sem_post(&sem, WAITERS));
	for (int i = 0; i < WAITERS; i++)
		EXPECT(!pthread_join(threads[i], NULL));
}

int main(void)
{
	RUN(handlers_interrupt_posts); /* first: the process has one thread */
	RUN(values);
	RUN(overflows);
	RUN(deadlines);
	RUN(posts_let_in_as_many);
	RUN(wakes_its_own_thread);
	RUN(fork_among_waiters);
	return 0;
}
