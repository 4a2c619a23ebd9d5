/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * adaptive.h: every value of the word against newcomers; sleepers that leave the list in every
 * order; sleepers whose deadline, wake-up, thief and release coincide; the hand-over to a sleeper
 * that lost the lock after its wake-up.
 */
#include "adaptive.h"
#include "unit.h"

#define STEPS 60
#define SLEEPERS 4

static const struct adaptive_policy parks = {.wait = WAIT_PARK};
static struct adaptive lock;

static void begin(uint32_t word)
{
	memset((void *)&lock, 0, sizeof(lock));
	atomic_store(&lock.generation, 2 * w_fork_generation());
	atomic_store(&lock.word, word);
	script_clear();
}

static uint32_t flags(void)
{
	return atomic_load(&lock.word) % ADAPTIVE_NUMBER;
}

static void newcomers_by_word(void)
{
	for (uint32_t before = 0; before < ADAPTIVE_NUMBER; before++) {
		bool barred = before & (ADAPTIVE_LOCKED | ADAPTIVE_HANDOFF);

		begin(before);
		EXPECT(adaptive_try_acquire(&lock) == !barred, "word %u", before);
		EXPECT(flags() == (barred ? before : before | ADAPTIVE_LOCKED), "word %u", before);
	}
}

/* Whichever waiters leave the list, in any order, the others keep theirs. */
static void list(void)
{
	struct adaptive_waiter waiters[SLEEPERS], *at;

	for (int order = 0; order < power(SLEEPERS, SLEEPERS); order++) {
		bool there[SLEEPERS] = {false};

		begin(0);
		for (int i = 0; i < SLEEPERS; i++) {
			adaptive_append(&lock, &waiters[i]);
			there[i] = true;
		}
		for (int i = 0; i < SLEEPERS; i++) {
			int leaves = digit(order, SLEEPERS, i);

			if (!there[leaves])
				continue;
			adaptive_remove(&lock, &waiters[leaves]);
			there[leaves] = false;
			at = lock.last;
			for (int j = 0; j < SLEEPERS; j++)
				if (there[j])
					EXPECT((at = at->next) == &waiters[j]);
			EXPECT(at == lock.last);
		}
	}
}

static bool releases(void *unused)
{
	(void)unused;
	/* While a sleeper changes the list, it is locked, and a release would have to wait. */
	if (atomic_load(&lock.list))
		return false;
	EXPECT(adaptive_release(&lock, parks));
	return true;
}

static bool steals(void *stolen)
{
	if (!releases(NULL))
		return false;
	*(int *)stolen += adaptive_try_acquire(&lock);
	return true;
}

/* A sleeper is passed once after it slept; then the lock is handed to it. */
static void handed_over(void)
{
	int stolen = 0;

	begin(ADAPTIVE_LOCKED);
	for (int i = 1; i <= 3; i++)
		script_at(100 * i, steals, &stolen);
	EXPECT(adaptive_acquire(&lock, parks, NULL));
	EXPECT(stolen == 1, "%d passed the sleeper", stolen);
	EXPECT(flags() == ADAPTIVE_LOCKED);
}

static void timed_against_thief_and_release(void)
{
	int taken = 0, gone = 0, stolen = 0;

	for (long steal = 1; steal < STEPS; steal += 2)
		for (long step = steal; step < STEPS; step += 2)
			for (long end = 1; end < STEPS; end++) {
				struct w_deadline deadline = script_deadline(end);

				begin(ADAPTIVE_LOCKED);
				script_at(steal, steals, &stolen);
				script_at(step, steals, &stolen);
				if (adaptive_acquire(&lock, parks, &deadline))
					taken++;
				else
					gone++;
				if (flags() & ADAPTIVE_LOCKED)
					EXPECT(adaptive_release(&lock, parks));
				EXPECT(!flags(), "flags %u are left behind", flags());
				EXPECT(!lock.last && !atomic_load(&lock.list) &&
				       !atomic_load(&lock.spinners.tail));
			}
	EXPECT(taken && gone && stolen);
}

int main(void)
{
	RUN(newcomers_by_word);
	RUN(list);
	RUN(handed_over);
	RUN(timed_against_thief_and_release);
	return 0;
}
