/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mutexee.h: every value of the word against newcomers and releases; waiters whose deadline and
 * releases coincide lose no wake-up; the mode.
 */
#include "mutexee.h"
#include "unit.h"

#define STEPS 40

static const struct mutexee_policy parks = {.wait = WAIT_PARK, .window = 1000};
static struct mutexee lock;

static void begin(uint32_t word)
{
	memset((void *)&lock, 0, sizeof(lock));
	atomic_store(&lock.generation, 2 * w_fork_generation());
	atomic_store(&lock.word, word);
	script_clear();
}

static uint32_t word(void)
{
	return atomic_load(&lock.word);
}

static void by_word(void)
{
	for (uint32_t before = 0; before < 3 * MUTEXEE_SPINNER; before++) {
		bool held = before & MUTEXEE_LOCKED,
		     wakes = before == (MUTEXEE_LOCKED | MUTEXEE_SLEEPERS);

		begin(before);
		EXPECT(mutexee_try_acquire(&lock) == !held, "word %u", before);
		EXPECT(word() == (before | MUTEXEE_LOCKED), "word %u", before);
		begin(before);
		EXPECT(mutexee_release(&lock, parks) == held, "word %u", before);
		EXPECT(script_unparks(&lock.word) == wakes, "word %u", before);
		EXPECT(word() == (wakes ? 0 : before & ~MUTEXEE_LOCKED), "word %u", before);
	}
}

static bool releases(void *unused)
{
	(void)unused;
	EXPECT(mutexee_release(&lock, parks));
	return true;
}

/* Released, and taken again at once by a thread that does not wait. */
static bool steals(void *unused)
{
	(void)unused;
	EXPECT(mutexee_release(&lock, parks) && mutexee_try_acquire(&lock));
	return true;
}

/* Another thread sleeps on the word: whatever happens to us, it has or will get a wake-up. */
static void no_wake_up_is_lost(void)
{
	int taken = 0, gone = 0;

	for (uint32_t sleepy = 0; sleepy < 2; sleepy++)
		for (long stolen = 1; stolen < STEPS; stolen++)
			for (long step = stolen; step < STEPS; step++)
				for (long end = 1; end < STEPS; end += 2) {
					struct w_deadline deadline = script_deadline(end);

					begin(MUTEXEE_LOCKED | MUTEXEE_SLEEPERS);
					atomic_store(&lock.sleepy, sleepy);
					script_at(stolen, steals, NULL);
					script_at(step, releases, NULL);
					if (mutexee_acquire(&lock, parks, &deadline)) {
						taken++;
						script_finish();
						(void)mutexee_release(&lock, parks);
					} else {
						gone++;
						script_finish();
					}
					EXPECT(script_unparks(&lock.word),
					       "the other one sleeps on");
					EXPECT(!(word() & ~MUTEXEE_SLEEPERS),
					       "word %u is left behind", word());
				}
	EXPECT(taken && gone);
}

/* A contended acquisition that slept, or did not. */
static void contend(bool sleeps, struct mutexee_policy policy)
{
	begin(MUTEXEE_LOCKED);
	script_at(sleeps ? 100 : 2, releases, NULL);
	EXPECT(mutexee_acquire(&lock, policy, NULL));
	EXPECT(mutexee_release(&lock, policy));
}

static void mode(void)
{
	struct mutexee_policy policy = {.wait = WAIT_PARK, .window = 1};

	contend(false, policy);
	EXPECT(!atomic_load(&lock.sleepy), "became sleepy without a sleep");
	contend(true, policy);
	EXPECT(atomic_load(&lock.sleepy) == MUTEXEE_SLEEPY,
	       "nobody got the lock without a sleep, and it is not sleepy");
	for (int window = MUTEXEE_SLEEPY; window--;) {
		mutexee_note(&lock, true, 1);
		EXPECT(atomic_load(&lock.sleepy) == (uint32_t)window, "a lock is sleepy for ever");
	}
}

int main(void)
{
	RUN(by_word);
	RUN(no_wake_up_is_lost);
	RUN(mode);
	return 0;
}
