/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * scl in simulated time: the share of each thread for all lengths of holds, weights and numbers of
 * threads; throttling, slices and their end; a lone thread never waits; ended threads are
 * forgotten.
 */
#include "turns.h"
#include "scl.h"

static struct scl_policy policy;
static struct scl lock;

static int last;
static uint32_t changes; /* hand-overs */

static void acquire(void)
{
	EXPECT(scl_acquire(&lock, policy, NULL));
	changes += last != machine.running;
	last = machine.running;
}

static bool release(void)
{
	return scl_release(&lock, policy);
}

static bool try_acquire_failed;

static void try_acquire(void)
{
	try_acquire_failed |= !scl_try_acquire(&lock);
}

static void begin(enum wait wait)
{
	memset((void *)&lock, 0, sizeof(lock));
	atomic_store(&lock.generation, 2 * w_fork_generation());
	policy = (struct scl_policy){.wait = wait, .slice = 100};
	clear_machine(acquire, release);
}

static void run(uint64_t end)
{
	run_machine(end);
	EXPECT(!atomic_load(&lock.word) && !atomic_load(&lock.queue.tail));
}

/* ---- Tests of every way of waiting ---- */

/* Includes holds far longer than a slice and a period, by a sleeping holder. */
static void long_and_short_holds(enum wait wait)
{
	static const uint64_t longest[] = {10000, 1000000, 2000000000};

	for (int i = 0; i < (wait == WAIT_PARK ? COUNT(longest) : 1); i++) {
		for (int threads = 2; threads <= 8; threads *= 2) {
			begin(wait);
			for (int j = 0; j < threads; j++)
				add(j % 2 ? longest[i] : longest[i] / 10, 0);
			run(longest[i] * 1000);
			EXPECT(jain(threads) >= 0.98,
			       "wait %d, %d threads, %llu ns: Jain's index is %.4f", (int)wait,
			       threads, (unsigned long long)longest[i], jain(threads));
		}
	}
}

static void run_weights(enum wait wait, uint32_t slice, const uint32_t *shares, int count)
{
	begin(wait);
	policy.slice = slice;
	for (int i = 0; i < count; i++)
		add(10000, 0)->weight = 1024 * shares[i];
	run((uint64_t)slice * 1000 * 500);
}

/*
 * No thread exceeds its weight's share, except by a slice that it began; and all get their shares
 * of the used time if hand-overs are cheap compared with a slice. Throttling counts elapsed time,
 * as in the paper, so the cost of hand-overs is in nobody's share.
 */
static void weights(enum wait wait)
{
	static const uint32_t shares[] = {1, 2, 8}, slices[] = {100, 2000};

	for (int i = 0; i < (wait == WAIT_PARK ? COUNT(slices) : 1); i++) {
		run_weights(wait, slices[i], shares, COUNT(shares));
		for (int j = 0; j < COUNT(shares); j++) {
			double held = (double)machine.threads[j].held, time = slices[i] * 500e3;
			double share = held / total(0, COUNT(shares)) * 11 / shares[j];

			EXPECT(held <= time * shares[j] / 11 + slices[i] * 1e3 + 1e4,
			       "wait %d: %.3f of weight %u's", (int)wait,
			       held / time * 11 / shares[j], shares[j]);
			EXPECT((wait == WAIT_PARK && slices[i] < 2000) ||
				       (share > 0.95 && share < 1.05),
			       "wait %d: weight %u has %.3f of its share", (int)wait, shares[j],
			       share);
		}
	}
}

/* A lone thread is never throttled, and waits for no slice. */
static void alone(enum wait wait)
{
	begin(wait);
	add(1000, 1000);
	run(10 * MILLISECOND);
	EXPECT(machine.threads[0].turns > 4500, "wait %d: a thread that is alone got it %u times",
	       (int)wait, machine.threads[0].turns);
	EXPECT(lock.weights == 1024, "counted more than once");
}

/* The owner keeps the lock for a slice despite waiters: one hand-over per slice, not per hold. */
static void slices(enum wait wait)
{
	begin(wait);
	changes = 0;
	for (int i = 0; i < 4; i++)
		add(100, 900);
	run(10 * MILLISECOND);
	EXPECT(changes >= 50 && changes <= 110, "wait %d: %u changes of hands in 100 slices",
	       (int)wait, changes);
}

/* A thread that came seldom has credit for one slice, however long it was away. */
static void newcomer(enum wait wait)
{
	begin(wait);
	add(10000, 0);
	add(10000, 0)->begin = 20 * MILLISECOND;
	machine.watched = 20 * MILLISECOND;
	run(22 * MILLISECOND);
	EXPECT(machine.threads[1].late <= MILLISECOND + 100000, "wait %d: %llu ns of 2 ms",
	       (int)wait, (unsigned long long)machine.threads[1].late);
}

/*
 * A thread that is alone after many is throttled for at most two periods on their account; each
 * ends when all could have had a turn.
 */
static void forgotten(enum wait wait)
{
	const uint32_t many = 24;
	uint32_t period, turns = 0;

	begin(wait);
	for (uint32_t i = 0; i < many; i++)
		add(1000, 0);
	run(10 * MILLISECOND);
	EXPECT(scl_total(&lock) == many * 1024);
	period = lock.period;
	while (lock.period < period + 2) {
		EXPECT(scl_total(&lock) >= many * 1024 && ++turns < 5 * many, "turn %u", turns);
		lock.since += SCL_PERIOD / many;
		lock.turns++;
		scl_count_in(&lock, scl_open(w_account(&lock), 0));
	}
	EXPECT(scl_total(&lock) == w_weight());
}

/*
 * A thread whose account is forgotten between acquisitions is counted once per period, and not
 * throttled while alone.
 */
static void forgotten_account(enum wait wait)
{
	struct w_account none = {0};

	begin(wait);
	for (int i = 0; i < 100; i++) {
		*w_account(&lock) = (struct w_account){.lock = &lock};
		EXPECT(scl_try_acquire(&lock));
		*w_account(&lock) = (struct w_account){.lock = &lock};
		EXPECT(scl_release(&lock, policy));
		EXPECT(lock.weights == w_weight() && w_account(&lock)->until <= w_now());
	}
	*w_account(&lock) = none;
}

/* trylock takes a free lock in another thread's slice, and while its own thread is throttled. */
static void trylock(enum wait wait)
{
	begin(wait);
	clear_machine(try_acquire, release);
	try_acquire_failed = false;
	add(100, 900)->begin = 1000;
	add(100, 900)->begin = 1500;
	run(10 * MILLISECOND);
	EXPECT(!try_acquire_failed, "trylock failed on a free lock");
}

static void (*const tests[])(enum wait wait) = {
	long_and_short_holds, weights, alone, slices, newcomer, forgotten,
	forgotten_account,    trylock};

static void all(void)
{
	for (int test = 0; test < COUNT(tests); test++)
		for (enum wait wait = WAIT_YIELD; wait <= WAIT_PARK; wait++)
			tests[test](wait);
}

int main(void)
{
	RUN(all);
	return 0;
}
