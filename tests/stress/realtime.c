/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * realtime SPEC: SCHED_OTHER threads and one SCHED_FIFO thread contend for a lock on one CPU. The
 * ordinary threads sleep before some of the lock's operations, as if they were preempted there.
 * Whatever they are in the middle of, the real-time thread must not keep the CPU from them while it
 * waits: the CPU time of one acquisition is bounded.
 *
 * Returns 77 where SCHED_FIFO is not permitted.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "poundlock.h"
#include "stress.h"

#define ROUNDS 1000
#define SECONDS 5 /* fewer rounds suffice if the time is over */
#define SKIPPED 77

/*
 * The kernel throttles a real-time thread that keeps the CPU for 950 ms. A thread that naps needs
 * less, except if other processes take the CPU during its naps.
 */
#define MOST_NANOSECONDS 900000000ull

const struct any_ops *ops;
static uint64_t memory[ANY_LOCK_SIZE / sizeof(uint64_t)];
static struct cell cell;
static atomic_bool stop;

static uint64_t cpu_time(void)
{
	struct timespec now;

	EXPECT(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now));
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void ordinary(int number, void *unused)
{
	uint32_t random = (uint32_t)number + 1;

	(void)unused;
	stress_nap.tv_nsec = 300000;
	while (!atomic_load(&stop)) {
		ops->lock(memory, ops);
		cell_write(&cell, next_random(&random));
		EXPECT(ops->unlock(memory, ops));
	}
	stress_nap.tv_nsec = 0;
}

/* The CPU time of the worst round. */
static uint64_t worst_round(void)
{
	const struct timespec apart = {.tv_nsec = 50000};
	struct w_deadline end = after(CLOCK_MONOTONIC, SECONDS * UINT64_C(1000000000));
	uint64_t took, worst = 0;

	for (int i = 0; i < ROUNDS && !w_expired(&end); i++) {
		nanosleep(&apart, NULL);
		took = cpu_time();
		ops->lock(memory, ops);
		cell_write(&cell, 3);
		EXPECT(ops->unlock(memory, ops));
		took = cpu_time() - took;
		worst = took > worst ? took : worst;
	}
	return worst;
}

/* Binds the process to the first of its CPUs. */
static void use_one_cpu(void)
{
	cpu_set_t cpus, one;
	int first = 0;

	EXPECT(!sched_getaffinity(0, sizeof(cpus), &cpus));
	while (!CPU_ISSET(first, &cpus))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	EXPECT(!sched_setaffinity(0, sizeof(one), &one));
}

/*
 * Makes the calling thread SCHED_FIFO if @real_time, else SCHED_OTHER. False if that is forbidden.
 */
static bool change_class(bool real_time)
{
	struct sched_param priority = {.sched_priority = real_time ? 10 : 0};

	return !pthread_setschedparam(pthread_self(), real_time ? SCHED_FIFO : SCHED_OTHER,
				      &priority);
}

int main(int count, char **arguments)
{
	char error[256];
	struct crew crew;
	uint64_t worst;

	if (count != 2) {
		fprintf(stderr, "Usage: realtime SPEC\n");
		return 2;
	}
	ops = any_find(arguments[1], error, sizeof(error));
	if (!ops) {
		fprintf(stderr, "realtime: %s\n", error);
		return 2;
	}
	limit();
	use_one_cpu();
	way = ops->wait;
	crew_start(&crew, contenders() - 1, ordinary, NULL);
	if (!change_class(true)) {
		fprintf(stderr, "realtime: skipped: SCHED_FIFO is not permitted\n");
		return SKIPPED;
	}
	worst = worst_round();
	EXPECT(change_class(false));
	atomic_store(&stop, true);
	crew_join(&crew);
	EXPECT(worst < MOST_NANOSECONDS, "one acquisition took %llu ms of CPU time",
	       (unsigned long long)worst / 1000000);
	return 0;
}
