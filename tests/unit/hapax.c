/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hapax.h: arrivals, departures and sleeps that coincide in every way, also with a slot that
 * another lock shares; the state after a fork; numbers beyond the end of a block.
 */
#include "hapax.h"
#include "unit.h"

#define STEPS 40
#define NEVER 100000

static struct hapax lock, other;
static struct hapax_policy policy;

static bool releases(void *unused)
{
	(void)unused;
	EXPECT(hapax_release(&lock, policy));
	return true;
}

/* A departure from another lock whose number maps to the same slot. */
static bool bumps(void *slot)
{
	hapax_bump(slot);
	return true;
}

static void begin(void)
{
	memset((void *)&lock, 0, sizeof(lock));
	memset((void *)&other, 0, sizeof(other));
	atomic_store(&lock.generation, 2 * w_fork_generation());
	EXPECT(hapax_try_acquire(&lock));
	EXPECT(!hapax_try_acquire(&lock));
	script_clear();
}

static void against_release(void)
{
	for (policy.wait = WAIT_SPIN; policy.wait <= WAIT_PARK; policy.wait++)
		for (long bump = 1; bump < STEPS; bump++)
			for (long step = bump; step < STEPS; step++) {
				begin();
				script_at(bump, bumps, (void *)w_slot(lock.holder));
				script_at(step, releases, NULL);
				EXPECT(hapax_acquire(&lock, policy, NULL));
				script_finish();
				if (hapax_release(&lock, policy))
					EXPECT(!hapax_release(&lock, policy),
					       "a free lock was released");
				EXPECT(hapax_try_acquire(&lock));
			}
}

/* The lock becomes free at any moment of a timed wait, which does not miss it. */
static void polls(void)
{
	policy.wait = WAIT_PARK;
	for (long step = 1; step < STEPS; step++) {
		struct w_deadline late = script_deadline(NEVER), soon = script_deadline(step / 2);

		begin();
		EXPECT(!hapax_acquire(&lock, policy, &soon));
		script_clear();
		script_at(step, releases, NULL);
		EXPECT(hapax_acquire(&lock, policy, &late), "a free lock was missed");
		EXPECT(hapax_release(&lock, policy));
	}
}

/* In a child the waiters are gone: a held lock stays held, and its release frees it. */
static void forked(void)
{
	for (int waiters = 0; waiters < 3; waiters++) {
		begin();
		for (int i = 0; i < waiters; i++)
			(void)atomic_exchange(&lock.arrive, w_unique());
		fork_generation_set(w_fork_generation() + 1);
		EXPECT(!hapax_try_acquire(&lock));
		EXPECT(hapax_release(&lock, policy));
		EXPECT(hapax_try_acquire(&lock), "free, and not to be had");
		EXPECT(hapax_release(&lock, policy));
	}
}

/* Numbers rise and are never 0; a thread that has used up its block gets the next one. */
static void numbers(void)
{
	uint64_t last = w_unique(), next;
	int blocks = 0;

	EXPECT(last);
	for (uint64_t i = 0; i < 3 * W_UNIQUE_BLOCK; i++, last = next) {
		next = w_unique();
		EXPECT(next == last + 1 || next == last + 1 + W_UNIQUE_BLOCK);
		blocks += next != last + 1;
	}
	EXPECT(blocks == 3, "%d", blocks);
}

int main(void)
{
	RUN(against_release);
	RUN(polls);
	RUN(forked);
	RUN(numbers);
	return 0;
}
