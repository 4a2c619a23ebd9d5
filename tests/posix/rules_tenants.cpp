/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program with three tenants of which one holds the lock much longer than the others, and with a
 * rule by which their lock, and no other, is cfl_mutex. argv[1] is the library. Each tenant has the
 * lock for the same time: the others acquire it several times as often as the noisy one. In arrival
 * order all would acquire it equally often, since each holder waits until the others sleep.
 */
#include <atomic>

#include "ruled.h"

#define TENANTS 3
#define NOISY_HOLDS 100
/* The noisy tenant's holds in those of the others. Equal times allow as many of their holds. */
#define NOISE 10
#define LEAST_RATIO 4

extern "C" {
pthread_mutex_t tenants = PTHREAD_MUTEX_INITIALIZER;
}

struct tenant {
	pid_t id;
	unsigned long holds;
	long held; /* nanoseconds */
};

static struct tenant all[TENANTS], *const noisy = all;
static pthread_barrier_t ready;
static std::atomic<bool> done;

static long nanoseconds()
{
	struct timespec now = from_now(CLOCK_MONOTONIC, 0);

	return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The mean hold of the others, however busy the machine is. */
static long mean_of_others()
{
	unsigned long holds = 0;
	long held = 0;

	for (const struct tenant *other = noisy + 1; other < all + TENANTS; other++) {
		holds += other->holds;
		held += other->held;
	}
	return holds ? held / (long)holds : 0;
}

static void until_others_sleep(const struct tenant *tenant)
{
	for (const struct tenant *other = all; other < all + TENANTS; other++)
		if (other != tenant)
			until_asleep(other->id);
}

static void hold(struct tenant *tenant)
{
	long begin, end;

	EXPECT_OK(pthread_mutex_lock(&tenants));
	if (!done) {
		begin = nanoseconds();
		end = begin + (tenant == noisy ? NOISE * mean_of_others() : 0);
		until_others_sleep(tenant);
		while (nanoseconds() < end)
			sched_yield();
		tenant->held += nanoseconds() - begin;
		tenant->holds++;
		done = noisy->holds == NOISY_HOLDS;
	}
	EXPECT_OK(pthread_mutex_unlock(&tenants));
}

static void *serve(void *argument)
{
	struct tenant *tenant = (struct tenant *)argument;

	tenant->id = kernel_id();
	pthread_barrier_wait(&ready);
	while (!done)
		hold(tenant);
	return NULL;
}

static int child()
{
	pthread_t threads[TENANTS];

	EXPECT_OK(pthread_barrier_init(&ready, NULL, TENANTS));
	for (int i = 0; i < TENANTS; i++)
		threads[i] = start(serve, &all[i]);
	for (pthread_t thread : threads)
		finish(thread);
	printf("acquisitions: %lu, %lu and %lu\n", all[0].holds, all[1].holds, all[2].holds);
	for (int i = 1; i < TENANTS; i++)
		EXPECT(all[i].holds >= LEAST_RATIO * NOISY_HOLDS, "tenant %d: %lu", i,
		       all[i].holds);
	return 0;
}

int main(int argc, char **argv)
{
	EXPECT(argc == 2, "usage: rules_tenants LIBRARY");
	limit();
	if (!strcmp(argv[1], "child"))
		return child();
	begin(argv[1]);
	write_rules("[[rule]]\nsymbol = \"tenants\"\nlock = \"cfl_mutex,strict_guarantee=on\"\n");
	EXPECT(run({variable(file)}, "child").empty(), "a report");
	end();
	return 0;
}
