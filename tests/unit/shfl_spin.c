/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shfl_spin.h: which thread may take the word and when; waiters whose deadline, wake-up and release
 * coincide.
 */
#include "shfl_spin.h"
#include "unit.h"

static const struct shfl_spin_policy parks = {.wait = WAIT_PARK, .policy = POLICY_NUMA, .batch = 2};
static struct shfl_spin lock;
static struct shfl_node ahead;

static void begin(void)
{
	memset((void *)&lock, 0, sizeof(lock));
	atomic_store(&lock.generation, 2 * w_fork_generation());
	script_clear();
}

static void newcomer_waits_for_the_queue(void)
{
	begin();
	EXPECT(shfl_enter(&lock.tail, &ahead, 0));
	EXPECT(!atomic_load(&lock.locked));
	EXPECT(!shfl_spin_try_acquire(&lock),
	       "a newcomer stole the lock although a waiter is queued");
	EXPECT(shfl_spin_take_as_head(&lock, &ahead, parks, NULL));
	EXPECT(!shfl_leave(&lock.tail, &ahead, WAIT_YIELD));
	EXPECT(!shfl_spin_try_acquire(&lock));
	EXPECT(shfl_spin_release(&lock, parks));
	EXPECT(shfl_spin_try_acquire(&lock), "stealing stayed off after the queue was gone");
	EXPECT(shfl_spin_release(&lock, parks));
	EXPECT(!shfl_spin_release(&lock, parks), "a free lock was released");
}

static bool release(void *unused)
{
	(void)unused;
	EXPECT(shfl_spin_release(&lock, parks));
	return true;
}

/*
 * The head before us takes the lock, leaves the queue and releases; not between entering and
 * linking.
 */
static bool head_passes(void *unused)
{
	W_ATOMIC(uint32_t) *sleeper;

	(void)unused;
	if (atomic_load(&lock.tail) != &ahead && !atomic_load(&ahead.next))
		return false;
	EXPECT(shfl_spin_take(&lock));
	sleeper = shfl_leave(&lock.tail, &ahead, WAIT_PARK);
	if (sleeper)
		w_unpark(sleeper);
	EXPECT(shfl_spin_release(&lock, parks));
	return true;
}

static void expect_settled(bool taken)
{
	script_finish();
	if (taken)
		EXPECT(shfl_spin_release(&lock, parks));
	EXPECT(!atomic_load(&lock.tail) && !atomic_load(&lock.locked));
	EXPECT(shfl_spin_try_acquire(&lock));
}

static void head_against_release(void)
{
	for (enum wait wait = WAIT_SPIN; wait <= WAIT_PARK; wait++) {
		for (long step = 1; step < 20; step++) {
			begin();
			EXPECT(shfl_spin_try_acquire(&lock));
			script_clear();
			script_at(step, release, NULL);
			EXPECT(shfl_spin_acquire(&lock,
						 (struct shfl_spin_policy){.wait = wait,
									   .policy = POLICY_NUMA,
									   .batch = 2},
						 NULL));
			expect_settled(true);
		}
	}
}

static void timed_head_against_release(void)
{
	for (long step = 1; step < 30; step++) {
		for (long end = 1; end < 30; end++) {
			struct w_deadline deadline = script_deadline(end);

			begin();
			EXPECT(shfl_spin_try_acquire(&lock));
			script_clear();
			script_at(step, release, NULL);
			expect_settled(shfl_spin_acquire(&lock, parks, &deadline));
		}
	}
}

/* Behind another head that has already entered. */
static void timed_waiter_against_head(void)
{
	for (long step = 1; step < 40; step++) {
		for (long end = 1; end < 40; end++) {
			struct w_deadline deadline = script_deadline(end);

			begin();
			EXPECT(shfl_enter(&lock.tail, &ahead, 0));
			script_clear();
			script_at(step, head_passes, NULL);
			expect_settled(shfl_spin_acquire(&lock, parks, &deadline));
		}
	}
}

int main(void)
{
	RUN(newcomer_waits_for_the_queue);
	RUN(head_against_release);
	RUN(timed_head_against_release);
	RUN(timed_waiter_against_head);
	return 0;
}
