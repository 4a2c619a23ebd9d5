/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Robust, priority-inheriting and process-shared mutexes keep their meaning: alone, with both kinds
 * of condition variables, and between processes. Other mutexes work with process-shared condition
 * variables.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "posix.h"

struct meeting {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int turn;
};

enum { ROBUST = 1, PI = 2, SHARED = 4, SHARED_COND = 8, MONOTONIC = 16, ALL = 32 };

static void init(struct meeting *meeting, int kind)
{
	pthread_mutexattr_t attr;
	pthread_condattr_t cond_attr;

	EXPECT_OK(pthread_mutexattr_init(&attr));
	EXPECT_OK(pthread_condattr_init(&cond_attr));
	if (kind & ROBUST)
		EXPECT_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	if (kind & PI)
		EXPECT_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
	if (kind & SHARED)
		EXPECT_OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	if (kind & SHARED_COND)
		EXPECT_OK(pthread_condattr_setpshared(&cond_attr, PTHREAD_PROCESS_SHARED));
	if (kind & MONOTONIC)
		EXPECT_OK(pthread_condattr_setclock(&cond_attr, CLOCK_MONOTONIC));
	EXPECT_OK(pthread_mutex_init(&meeting->mutex, &attr));
	EXPECT_OK(pthread_cond_init(&meeting->cond, &cond_attr));
	meeting->turn = 0;
	EXPECT_OK(pthread_mutexattr_destroy(&attr));
	EXPECT_OK(pthread_condattr_destroy(&cond_attr));
}

/* Two players take turns. */
static void play(struct meeting *meeting, int me)
{
	for (int round = 0; round < 50; round++) {
		EXPECT_OK(pthread_mutex_lock(&meeting->mutex));
		while (meeting->turn != me)
			EXPECT_OK(pthread_cond_wait(&meeting->cond, &meeting->mutex));
		meeting->turn = !me;
		EXPECT_OK(round % 2 ? pthread_cond_signal(&meeting->cond)
				    : pthread_cond_broadcast(&meeting->cond));
		EXPECT_OK(pthread_mutex_unlock(&meeting->mutex));
	}
}

static void *play_second(void *argument)
{
	play(argument, 1);
	return NULL;
}

static void between_threads(struct meeting *meeting)
{
	pthread_t thread = start(play_second, meeting);

	play(meeting, 0);
	finish(thread);
}

static void between_processes(struct meeting *meeting)
{
	pid_t child = fork();
	int status;

	EXPECT(child >= 0, "fork");
	if (!child) {
		play(meeting, 1);
		_exit(0);
	}
	play(meeting, 0);
	EXPECT(waitpid(child, &status, 0) == child && !status, "the child ended with %x", status);
}

static void time_out(struct meeting *meeting, clockid_t clock)
{
	struct timespec at = from_now(clock, 10);

	EXPECT_OK(pthread_mutex_lock(&meeting->mutex));
	EXPECT_RESULT(pthread_cond_timedwait(&meeting->cond, &meeting->mutex, &at), ETIMEDOUT);
	EXPECT(has_come(clock, at), "returned before the deadline");
	EXPECT_RESULT(elsewhere(pthread_mutex_trylock, &meeting->mutex), EBUSY);
	EXPECT_OK(pthread_mutex_unlock(&meeting->mutex));
}

/* The owner ends: the next thread gets EOWNERDEAD, also at the end of a condition wait. */
static void *end_holding(void *argument)
{
	struct meeting *meeting = argument;

	EXPECT_OK(pthread_mutex_lock(&meeting->mutex));
	meeting->turn = 1;
	EXPECT_OK(pthread_cond_signal(&meeting->cond));
	return NULL;
}

static void owner_ends(struct meeting *meeting)
{
	pthread_t thread;
	int result;

	meeting->turn = 0;
	EXPECT_OK(pthread_mutex_lock(&meeting->mutex));
	thread = start(end_holding, meeting);
	do
		result = pthread_cond_wait(&meeting->cond, &meeting->mutex);
	while (!result && !meeting->turn);
	EXPECT_RESULT(result, EOWNERDEAD);
	finish(thread);
	EXPECT_OK(pthread_mutex_consistent(&meeting->mutex));
	EXPECT_OK(pthread_mutex_unlock(&meeting->mutex));
	EXPECT_OK(elsewhere(pthread_mutex_lock, &meeting->mutex));
	EXPECT_RESULT(pthread_mutex_trylock(&meeting->mutex), EOWNERDEAD);
	EXPECT_OK(pthread_mutex_unlock(&meeting->mutex));
	EXPECT_RESULT(pthread_mutex_lock(&meeting->mutex), ENOTRECOVERABLE);
}

int main(void)
{
	struct meeting *meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(meeting != MAP_FAILED, "mmap");
	for (int kind = 0; kind < ALL; kind++) {
		init(meeting, kind);
		time_out(meeting, kind & MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME);
		between_threads(meeting);
		if (kind & SHARED && kind & SHARED_COND)
			between_processes(meeting);
		if (kind & ROBUST)
			owner_ends(meeting);
		EXPECT_OK(pthread_cond_destroy(&meeting->cond));
		EXPECT_OK(pthread_mutex_destroy(&meeting->mutex));
	}
	return 0;
}
