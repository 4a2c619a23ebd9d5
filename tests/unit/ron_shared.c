/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ron_shared.h: waiters of two locks in one array, in the order of the slots; all slots in use; a
 * release, a deadline and another lock's waiter at each step of an acquisition. With SHORT as in
 * the kernel's spin lock: two bytes, with as many slots as these can distinguish.
 */
#include "world.h"

#ifdef SHORT
#undef W_SHORT
#define W_SHORT uint16_t
#undef W_CONTEXTS
#define W_CONTEXTS 4u
#endif

#include "ron_shared.h"
#include "unit.h"

#ifdef SHORT
#define CPUS 4096u
#define SLOTS RON_SHARED_MOST
#else
#define CPUS 2u
#define SLOTS RON_SHARED_SLOTS
#endif
#define LAST (CPUS - 1) /* of the places */
#define MOST_STEPS 120  /* more than an acquisition that finds a slot has */

/* Side by side: as short locks, `other` is not at a multiple of 4. */
static _Alignas(4) struct ron_shared locks[2];
static struct ron_shared *const lock = &locks[0], *const other = &locks[1];
static enum wait way;

static struct ron_shared_slot *slot_at(uint32_t slot)
{
	return ron_shared_slot(ron_shared_array(), slot);
}

static void begin(void)
{
	script_clear();
	script_cpus = CPUS;
	script_position = 0;
	atomic_store(&lock->word, 0);
	atomic_store(&other->word, 0);
	EXPECT(ron_shared_slots() == SLOTS);
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		EXPECT(!atomic_load(&slot_at(slot)->lock), "slot %u was left taken", slot);
	EXPECT(!atomic_load(ron_shared_marks(ron_shared_array(), 0)), "a mark was left");
}

/* A thread at @position waits for @which; returns its slot. */
static uint32_t come(struct ron_shared *which, uint32_t position)
{
	uint32_t slot = ron_shared_claim(ron_shared_array(), which, position * ron_shared_each());

	EXPECT(slot != RON_SHARED_NONE);
	EXPECT(!ron_shared_announce(ron_shared_array(), which, slot, false), "the lock was free");
	return slot;
}

/* The waiter of @slot received @which and leaves its slot. */
static bool served(struct ron_shared *which, uint32_t slot)
{
	if (atomic_load(&slot_at(slot)->lock) != ron_shared_of(which, RON_SHARED_GRANTED))
		return false;
	ron_shared_leave(ron_shared_array(), slot, false);
	return true;
}

static void release(struct ron_shared *which)
{
	EXPECT(ron_shared_release(which, (struct ron_shared_policy){way}));
}

static void expect_free(struct ron_shared *which)
{
	EXPECT(ron_shared_try_acquire(which), "the lock is lost");
	EXPECT(!ron_shared_try_acquire(which), "two hold the lock");
	release(which);
	EXPECT(!ron_shared_release(which, (struct ron_shared_policy){way}),
	       "a free lock was released");
	EXPECT(!atomic_load(&which->word));
}

/*
 * Waiters of one lock among those of another: by the route after the holder's place, then before
 * it.
 */
static void order(void)
{
	uint32_t first, second, third, stranger;

	begin();
	script_position = LAST;
	EXPECT(ron_shared_try_acquire(lock) && ron_shared_try_acquire(other));
	stranger = come(other, 0);
	third = come(lock, LAST);
	first = come(lock, 0);
	second = come(lock, 0);
	release(lock);
	EXPECT(served(lock, first));
	script_position = 0;
	release(lock);
	EXPECT(served(lock, second));
	release(lock);
	EXPECT(served(lock, third));
	release(lock);
	expect_free(lock);
	EXPECT(!served(other, stranger), "the waiter of one lock was given another");
	release(other);
	EXPECT(served(other, stranger));
	release(other);
	expect_free(other);
}

/* A slot that another lock's waiter took meanwhile is not granted. */
static void taken_over(void)
{
	uint32_t slot;

	begin();
	EXPECT(ron_shared_try_acquire(lock) && ron_shared_try_acquire(other));
	slot = come(lock, 0);
	ron_shared_leave(ron_shared_array(), slot, false);
	EXPECT(come(other, 0) == slot);
	EXPECT(!ron_shared_grant(ron_shared_array(), lock, slot, false));
	release(lock);
	expect_free(lock);
	release(other);
	EXPECT(served(other, slot));
	release(other);
}

static bool release_now(void *which)
{
	release(which);
	return true;
}

static bool come_now(void *slot)
{
	*(uint32_t *)slot = come(other, script_position);
	return true;
}

/* A release at each step of an acquisition, preceded by another lock's waiter. */
static void release_while_acquiring(void)
{
	for (int step = 1; step < MOST_STEPS; step++) {
		uint32_t stranger;

		begin();
		EXPECT(ron_shared_try_acquire(lock) && ron_shared_try_acquire(other));
		script_at((step + 1) / 2, come_now, &stranger);
		script_at(step, release_now, lock);
		EXPECT(ron_shared_acquire(lock, (struct ron_shared_policy){way}, NULL));
		script_finish();
		EXPECT(!ron_shared_try_acquire(lock));
		release(lock);
		expect_free(lock);
		release(other);
		EXPECT(served(other, stranger));
		release(other);
	}
}

/* The same with a deadline at each step: a leaving waiter takes nothing along. */
static void release_and_deadline(void)
{
	struct w_deadline deadline;
	int left = 0, stayed = 0;

	for (int step = 1; step < MOST_STEPS; step++)
		for (int end = 1; end < MOST_STEPS; end++) {
			begin();
			EXPECT(ron_shared_try_acquire(lock));
			deadline = script_deadline(end);
			script_at(step, release_now, lock);
			if (ron_shared_acquire(lock, (struct ron_shared_policy){way}, &deadline)) {
				stayed++;
				script_finish();
				release(lock);
			} else {
				left++;
				script_finish();
			}
			expect_free(lock);
		}
	EXPECT(left && stayed);
}

/*
 * All slots belong to another lock's waiters: a waiter still gets this lock once it is free, or
 * leaves at its deadline.
 */
static void all_slots_taken(void)
{
	struct w_deadline deadline;

	for (int step = 1; step < 4 * (int)RON_SHARED_SLOTS; step += 7) {
		begin();
		EXPECT(ron_shared_try_acquire(lock) && ron_shared_try_acquire(other));
		for (uint32_t slot = 0; slot < SLOTS; slot++)
			(void)come(other, slot % CPUS);
		script_time = 0;
		deadline = script_deadline(step);
		EXPECT(!ron_shared_acquire(lock, (struct ron_shared_policy){way}, &deadline));
		script_time = 0;
		script_at(step, release_now, lock);
		EXPECT(ron_shared_acquire(lock, (struct ron_shared_policy){way}, NULL));
		EXPECT(script_time >= step);
		release(lock);
		expect_free(lock);
		for (uint32_t slot = 0; slot < SLOTS; slot++) {
			release(other);
			EXPECT(served(other, (slot + ron_shared_each()) % SLOTS),
			       "not the next slot");
		}
		release(other);
		expect_free(other);
	}
}

int main(void)
{
	static const enum wait ways[] = {WAIT_SPIN, WAIT_YIELD, WAIT_PARK};

	for (int each = 0; each < COUNT(ways); each++) {
		way = ways[each];
		RUN(order);
		RUN(taken_over);
		RUN(release_while_acquiring);
		RUN(release_and_deadline);
		RUN(all_slots_taken);
	}
	return 0;
}
