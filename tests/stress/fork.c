/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fork(), in each way, while other threads hold, wait and sleep. The child can unlock what the
 * forking thread held, and its threads can use that lock and others, including trylock. A lock
 * whose holder does not exist in the child stays held, and a timed wait for it ends at its deadline
 * without harm to other locks. The same holds for the child's child. The parent notices nothing.
 */
#include "../forks.h"
#include "poundlock.h"
#include "stress.h"

/* More than the thread records in one chunk of memory, so that the parent's records are reused. */
#define CHILD_THREADS 110

static struct {
	struct stress_lock ours;   /* held by the forking thread */
	struct stress_lock theirs; /* held by a thread that does not exist in the child */
	struct stress_lock own[CHILD_THREADS];
	pthread_barrier_t all_hold, all_may_leave, they_hold, they_may_leave;
} forked;

static void waits_for_ours(int number, void *shared)
{
	struct w_deadline deadline = after(CLOCK_MONOTONIC, HOUR);

	(void)shared;
	if (number)
		EXPECT(ops->timedlock(&forked.ours, &deadline, ops));
	else
		ops->lock(&forked.ours, ops);
	EXPECT(ops->unlock(&forked.ours, ops));
}

static void holds_theirs(int number, void *shared)
{
	(void)number, (void)shared;
	ops->lock(&forked.theirs, ops);
	pthread_barrier_wait(&forked.they_hold);
	pthread_barrier_wait(&forked.they_may_leave);
	EXPECT(ops->unlock(&forked.theirs, ops));
}

static void waits_for_theirs(int number, void *shared)
{
	(void)number, (void)shared;
	ops->lock(&forked.theirs, ops);
	EXPECT(ops->unlock(&forked.theirs, ops));
}

/* ---- In the child ---- */

static void holds_own(int number, void *shared)
{
	(void)shared;
	ops->lock(&forked.own[number], ops);
	pthread_barrier_wait(&forked.all_hold);
	pthread_barrier_wait(&forked.all_may_leave);
	EXPECT(ops->unlock(&forked.own[number], ops));
	expect_free(&forked.own[number]);
}

static void expect_theirs_held(void)
{
	struct w_deadline deadline = after(CLOCK_MONOTONIC, 2000000);
	struct crew crew;

	pthread_barrier_init(&forked.all_hold, NULL, CHILD_THREADS + 1);
	pthread_barrier_init(&forked.all_may_leave, NULL, CHILD_THREADS + 1);
	crew_start(&crew, CHILD_THREADS, holds_own, NULL);
	pthread_barrier_wait(&forked.all_hold);
	EXPECT(!ops->trylock(&forked.theirs), "the child took a lock that was held");
	EXPECT(!ops->timedlock(&forked.theirs, &deadline, ops),
	       "the child took a lock that was held");
	pthread_barrier_wait(&forked.all_may_leave);
	crew_join(&crew);
}

static void use_ours(void)
{
	EXPECT(!ops->trylock(&forked.ours), "the child took a lock that its parent held");
	EXPECT(ops->unlock(&forked.ours, ops));
	expect_free(&forked.ours);
	contend(&forked.ours, rounds(100));
}

static void child_main(int way)
{
	pid_t child;

	limit();
	use_ours();
	expect_theirs_held();
	ops->lock(&forked.ours, ops);
	child = fork_by(way);
	if (!child) {
		limit();
		use_ours();
		_exit(0);
	}
	reap(child);
	EXPECT(ops->unlock(&forked.ours, ops));
	_exit(0);
}

/* ---- The parent ---- */

static void fork_among_waiters(int way)
{
	int waiters = only_spins() ? 1 : 3;
	struct crew holder, for_ours, for_theirs;
	uint64_t before = contended_so_far();
	pid_t child;

	ops->lock(&forked.ours, ops);
	crew_start(&holder, 1, holds_theirs, NULL);
	pthread_barrier_wait(&forked.they_hold);
	crew_start(&for_ours, waiters, waits_for_ours, NULL);
	crew_start(&for_theirs, waiters, waits_for_theirs, NULL);
	/* Waiters without a deadline wait by now; the others may or may not, and both must work. */
	while (contended_so_far() < before + 1 + (uint64_t)waiters)
		w_yield();
	child = fork_by(way);
	if (!child)
		child_main(way);
	reap(child);
	EXPECT(ops->unlock(&forked.ours, ops));
	pthread_barrier_wait(&forked.they_may_leave);
	crew_join(&for_ours);
	crew_join(&for_theirs);
	crew_join(&holder);
	expect_free(&forked.ours);
	expect_free(&forked.theirs);
}

void scenario_fork(void)
{
	if (!STRESS_FORK)
		return;
	pound_events_start();
	pthread_barrier_init(&forked.they_hold, NULL, 2);
	pthread_barrier_init(&forked.they_may_leave, NULL, 2);
	for (int i = 0; i < rounds(10); i++)
		fork_among_waiters(i % FORKS);
}
