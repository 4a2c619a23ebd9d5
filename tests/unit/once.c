/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pound_once_t: one run whose result all callers see, threads that end within the function, and
 * forks while it runs.
 */
#define _GNU_SOURCE
#include "poundlock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../forks.h"
#include "unit.h"

#define CALLERS 6

_Static_assert(sizeof(pound_once_t) == 4, "4 bytes");

static pound_once_t once;
static int runs, result;

static void start_over(void)
{
	static const pound_once_t fresh = POUND_ONCE_INIT;

	once = fresh;
	runs = result = 0;
}

static void set_result(void *argument)
{
	runs++;
	result = *(int *)argument;
}

static void call_with(int value)
{
	pound_once(&once, set_result, &value);
}

/* ---- One thread ---- */

static void first_call_runs(void)
{
	start_over();
	errno = 77;
	call_with(5);
	call_with(6);
	EXPECT(runs == 1 && result == 5);
	EXPECT(errno == 77);
}

static void halves(void)
{
	start_over();
	EXPECT(pound_once_begin(&once));
	pound_once_end(&once, false);
	EXPECT(pound_once_begin(&once), "a run that failed counts");
	pound_once_end(&once, true);
	EXPECT(!pound_once_begin(&once));
	call_with(5);
	EXPECT(!runs);
}

/* ---- Threads that wait ---- */

static W_ATOMIC(int) inside; /* threads that have begun the function */
static W_ATOMIC(int) may_end;
static W_ATOMIC(int) returned;

static void wait_for(W_ATOMIC(int) *count, int value)
{
	while (atomic_load(count) < value)
		sched_yield();
}

/* Waits until the state says that a thread sleeps. */
static void wait_for_sleeper(void)
{
	while (!(__atomic_load_n(&once.pound_state, __ATOMIC_RELAXED) & 2))
		sched_yield();
}

static void run_slowly(void *unused)
{
	(void)unused;
	atomic_fetch_add(&inside, 1);
	wait_for(&may_end, 1);
	runs++;
	result = 7;
}

static void *call_slowly(void *unused)
{
	pound_once(&once, run_slowly, NULL);
	EXPECT(runs == 1 && result == 7, "a call returned before the function had ended");
	atomic_fetch_add(&returned, 1);
	return unused;
}

static void begin_slowly(pthread_t *threads, int count)
{
	start_over();
	atomic_store(&inside, 0);
	atomic_store(&may_end, 0);
	atomic_store(&returned, 0);
	for (int i = 0; i < count; i++)
		EXPECT(!pthread_create(&threads[i], NULL, call_slowly, NULL));
	wait_for(&inside, 1);
}

static void end_slowly(pthread_t *threads, int count)
{
	atomic_store(&may_end, 1);
	for (int i = 0; i < count; i++)
		EXPECT(!pthread_join(threads[i], NULL));
}

static void all_wait_for_one(void)
{
	pthread_t threads[CALLERS];

	begin_slowly(threads, CALLERS);
	wait_for_sleeper();
	EXPECT(!atomic_load(&returned));
	end_slowly(threads, CALLERS);
	EXPECT(atomic_load(&inside) == 1 && atomic_load(&returned) == CALLERS);
}

/* ---- Threads that end within the function ---- */

static void exit_thread(void *unused)
{
	atomic_fetch_add(&inside, 1);
	wait_for(&may_end, 1);
	pthread_exit(unused);
}

static void be_cancelled(void *unused)
{
	(void)unused;
	atomic_fetch_add(&inside, 1);
	for (;;)
		pause();
}

static void *call_and_end(void *function)
{
	pound_once(&once, (void (*)(void *))(uintptr_t)function, NULL);
	EXPECT(!"the thread goes on");
	return NULL;
}

static void *call_after(void *unused)
{
	call_with(9);
	return unused;
}

/* A thread ends in @function, while another sleeps until it has. */
static void ends_in(void (*function)(void *), bool cancel)
{
	pthread_t ending, waiting;

	start_over();
	atomic_store(&inside, 0);
	atomic_store(&may_end, 0);
	EXPECT(!pthread_create(&ending, NULL, call_and_end, (void *)(uintptr_t)function));
	wait_for(&inside, 1);
	EXPECT(!pthread_create(&waiting, NULL, call_after, NULL));
	wait_for_sleeper();
	if (cancel)
		EXPECT(!pthread_cancel(ending));
	atomic_store(&may_end, 1);
	EXPECT(!pthread_join(ending, NULL));
	EXPECT(!pthread_join(waiting, NULL));
	EXPECT(runs == 1 && result == 9);
}

static void thread_exits(void)
{
	ends_in(exit_thread, false);
}

static void thread_is_cancelled(void)
{
	ends_in(be_cancelled, true);
}

/* ---- Forks ---- */

static void fork_while_another_runs(void)
{
	pthread_t threads[2];
	pid_t child;

	for (int way = 0; way < FORKS; way++) {
		begin_slowly(threads, 2);
		wait_for_sleeper();
		child = fork_by(way);
		if (!child) {
			call_with(3);
			call_with(4);
			_exit(runs != 1 || result != 3);
		}
		reap(child);
		end_slowly(threads, 2);
		EXPECT(runs == 1 && result == 7);
	}
}

static pid_t forked;

static void fork_inside(void *way)
{
	forked = fork_by(*(int *)way);
	runs++;
}

static void function_forks(void)
{
	for (int way = 0; way < FORKS; way++) {
		start_over();
		pound_once(&once, fork_inside, &way);
		call_with(1);
		EXPECT(runs == 1);
		if (!forked)
			_exit(0);
		reap(forked);
	}
}

static _Atomic(pid_t) handlers_child = -1;

static void fork_in_handler(int number)
{
	(void)number;
	handlers_child = fork();
}

/* Sleeps until another thread's function has ended; the child, until its own has. */
static void *wait_across_fork(void *unused)
{
	int value = 11;

	pound_once(&once, set_result, &value);
	if (!handlers_child)
		_exit(runs != 1 || result != 11);
	EXPECT(runs == 1 && result == 7);
	return unused;
}

static void wait_ends_in_child(void)
{
	struct sigaction action = {.sa_handler = fork_in_handler};
	pthread_t running, waiting;

	EXPECT(!sigaction(SIGUSR1, &action, NULL));
	begin_slowly(&running, 1);
	EXPECT(!pthread_create(&waiting, NULL, wait_across_fork, NULL));
	wait_for_sleeper();
	EXPECT(!pthread_kill(waiting, SIGUSR1));
	while (handlers_child < 0)
		sched_yield();
	reap(handlers_child);
	end_slowly(&running, 1);
	EXPECT(!pthread_join(waiting, NULL));
}

int main(void)
{
	RUN(first_call_runs);
	RUN(halves);
	RUN(all_wait_for_one);
	RUN(thread_exits);
	RUN(thread_is_cancelled);
	RUN(fork_while_another_runs);
	RUN(function_forks);
	RUN(wait_ends_in_child);
	return 0;
}
