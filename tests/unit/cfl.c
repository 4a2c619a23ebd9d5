/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cfl_spin and cfl_mutex, in counted time: who holds the lock for how long, whatever the holds' lengths, the weights, the
 * groups and the numbers of threads; what newcomers get; that no time is wasted while somebody wants the lock, and that
 * strict_guarantee does; that grace_period keeps the lock in a domain, and no longer; how often a waiter is passed, and
 * how often the clock is read.
 */
#include "cfl_mutex.h"
#include "cfl_spin.h"
#include "turns.h"

static struct cfl_policy policy;
static struct cfl lock;

static void acquire(void)
{
	cfl_acquire_by(&lock, policy, NULL);
}

static bool release(void)
{
	return cfl_release_by(&lock, policy);
}

static void begin(bool spins)
{
	memset((void *)&lock, 0, sizeof(lock));
	atomic_store(&lock.generation, 2 * w_fork_generation());
	policy = (struct cfl_policy){.wait = WAIT_PARK, .sleeps = !spins, .bypass = SHFL_MAX_BATCH};
	clear_machine(acquire, release);
}

static void run(uint64_t end)
{
	run_machine(end);
	EXPECT(!atomic_load(&lock.state) && !atomic_load(&lock.tail));
}

/* ---- Tests, each for both locks ---- */

static void long_and_short_holds(bool spins)
{
	static const uint64_t longest[] = {10000, 100000, 1000000};

	for (int i = 0; i < COUNT(longest); i++) {
		for (int threads = 2; threads <= 8; threads *= 2) {
			begin(spins);
			for (int j = 0; j < threads; j++)
				add(j % 2 ? longest[i] : longest[i] / 10, 0);
			run(longest[i] * 2000);
			EXPECT(jain(threads) >= 0.98, "spins %d, %d threads, %llu ns: Jain's index is %.4f", spins,
			       threads, (unsigned long long)longest[i], jain(threads));
		}
	}
}

static void weights_of(bool spins, int each, uint64_t think)
{
	static const uint32_t shares[] = {1, 2, 8};
	int threads = each * COUNT(shares);

	begin(spins);
	for (int i = 0; i < threads; i++)
		add(10000, think)->weight = 1024 * shares[i % COUNT(shares)];
	run(200 * MILLISECOND);
	for (int i = 0; i < threads; i++) {
		double share = (double)machine.threads[i].held / total(0, threads) * 11 * each / shares[i % 3];

		EXPECT(share > 0.95 && share < 1.05, "spins %d, %d threads: weight %u has %.3f of its share", spins,
		       threads, shares[i % 3], share);
	}
}

/* Also of those that do something else in between, for less long than a head gives way. */
static void weights(bool spins)
{
	for (int each = 1; each <= 3; each++)
		for (uint64_t think = 0; think < TURNS_BRIEF * TURNS_LOOK; think += 1500)
			weights_of(spins, each, think);
}

/* Where all sleep and nobody comes back at once, it is the order of the queue that decides, and somebody must see to it. */
static void weights_of_sleepers(bool spins)
{
	for (uint64_t think = 5000; think <= 20000; think += 5000)
		weights_of(spins, 4, think);
}

static void groups(bool spins)
{
	double share;

	begin(spins);
	for (int i = 0; i < 36; i++)
		add(10000, 0)->group = i < 32 ? 1 : 2;
	atomic_store(&w_group_weights[1], 1024);
	atomic_store(&w_group_weights[2], 1024);
	run(200 * MILLISECOND);
	share = total(0, 32) / total(0, 36);
	EXPECT(share > 0.475 && share < 0.525, "spins %d: 32 threads have %.3f, 4 the rest", spins, share);
}

static void newcomer(bool spins)
{
	double late = 0, share;

	begin(spins);
	for (int i = 0; i < 4; i++)
		add(10000, 0);
	add(10000, 0)->begin = 100 * MILLISECOND;
	machine.watched = 100 * MILLISECOND;
	run(110 * MILLISECOND);
	for (int i = 0; i < 5; i++)
		late += (double)machine.threads[i].late;
	share = (double)machine.threads[4].late / late;
	EXPECT(share > 0.15 && share < 0.25, "spins %d: the newcomer has %.3f", spins, share);
}

/* One that comes back is owed no more than a little of what it did not take while it was away. */
static void one_that_was_away(bool spins)
{
	uint64_t span = 20 * MILLISECOND, late;

	begin(spins);
	for (int i = 0; i < 4; i++)
		add(10000, 0);
	add(10000, 0)->leaves = 10 * MILLISECOND;
	machine.threads[4].returns = machine.watched = 200 * MILLISECOND;
	run(200 * MILLISECOND + span);
	late = machine.threads[4].late;
	EXPECT(late > span / 8 && late < CFL_BEHIND + (span - CFL_BEHIND) / 4,
	       "spins %d: one that was away had the lock for %llu ns", spins, (unsigned long long)late);
}

/* Alone, a thread gets the lock whenever it asks; contended, the lock is hardly ever free. */
static void no_time_is_wasted(bool spins)
{
	begin(spins);
	add(1000, 1000);
	run(10 * MILLISECOND);
	EXPECT(machine.threads[0].turns > 4500, "spins %d: a thread that is alone got it %u times", spins,
	       machine.threads[0].turns);
	begin(spins);
	for (int i = 0; i < 4; i++)
		add(i % 2 ? 40 * TURNS_WAKE : 20 * TURNS_WAKE, 0);
	run(500 * MILLISECOND);
	/* A wake-up and the way into the lock for each hold, at most. */
	EXPECT(machine.busy > 450 * MILLISECOND, "spins %d: the lock was held for %llu ns of 500 ms", spins,
	       (unsigned long long)machine.busy);
}

/* One that has had much, and then finds the lock free: it gets it at once, but under strict_guarantee. */
static void strict_guarantee(bool spins)
{
	uint32_t turns[2];

	for (uint32_t strict = 0; strict < 2; strict++) {
		begin(spins);
		policy.strict_guarantee = strict;
		add(100000, 100000);
		add(1000, 199000);
		run(200 * MILLISECOND);
		turns[strict] = machine.threads[0].turns;
	}
	EXPECT(turns[1] < turns[0] * 3 / 4, "spins %d: %u turns without it, %u with it", spins, turns[0], turns[1]);
}

/* Two domains of four: how often the lock goes from one to the other with such a grace, in microseconds. */
static uint32_t crossings(bool spins, uint32_t grace)
{
	begin(spins);
	policy.grace_period = grace;
	for (int i = 0; i < 8; i++)
		add(10000, 0)->domain = i % 2;
	run(200 * MILLISECOND);
	EXPECT(jain(8) >= 0.98, "spins %d, grace %u: Jain's index is %.4f", spins, grace, jain(8));
	return machine.crossings;
}

/* A domain keeps the lock for its grace, and a few holds longer; then the other one has it, so that all have as much. */
static void grace_period(bool spins)
{
	static const uint64_t graces[] = {200, 1000, 5000};
	uint32_t without = crossings(spins, 0), with;

	for (int i = 0; i < COUNT(graces); i++) {
		with = crossings(spins, (uint32_t)graces[i]);
		EXPECT(with * 3 < without, "spins %d, grace %llu: %u crossings, %u without", spins,
		       (unsigned long long)graces[i], with, without);
		EXPECT(machine.longest >= graces[i] * 1000 && machine.longest <= graces[i] * 1000 + 40000,
		       "spins %d, grace %llu: %llu ns in a domain", spins, (unsigned long long)graces[i],
		       (unsigned long long)machine.longest);
	}
}

static void bypasses(bool spins)
{
	for (uint32_t bypass = 1; bypass <= 64; bypass *= 4) {
		begin(spins);
		policy.bypass = bypass;
		for (int i = 0; i < 8; i++)
			add(i ? 1000 : 1000000, 0);
		run(100 * MILLISECOND);
		/* Those that were there before it, the moves, and the thefts before its turn and in it. */
		for (int i = 0; i < 8; i++)
			EXPECT(machine.threads[i].most_passed <= 8 + 3 * bypass,
			       "spins %d: passed %u times, %u allowed", spins, machine.threads[i].most_passed, bypass);
	}
}

static void clock_readings(bool spins)
{
	begin(spins);
	add(1000, 1000);
	turns_readings = 0;
	run(1 * MILLISECOND);
	EXPECT(turns_readings == machine.threads[0].turns, "spins %d: %llu readings for %u turns", spins,
	       (unsigned long long)turns_readings, machine.threads[0].turns);
	begin(spins);
	add(1000, 0);
	add(1000, 0);
	turns_readings = 0;
	run(1 * MILLISECOND);
	EXPECT(turns_readings <= 3 * (machine.threads[0].turns + machine.threads[1].turns));
}

static void (*const tests[])(bool spins) = {
	long_and_short_holds, weights,          weights_of_sleepers, groups,   newcomer,       one_that_was_away,
	no_time_is_wasted,    strict_guarantee, grace_period,        bypasses, clock_readings,
};

static void all(void)
{
	for (int test = 0; test < COUNT(tests); test++)
		for (int spins = 0; spins < 2; spins++)
			tests[test](spins);
}

int main(void)
{
	RUN(all);
	return 0;
}
