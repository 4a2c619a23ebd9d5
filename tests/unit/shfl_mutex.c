/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shfl_mutex.h: every value of the state word against newcomers, the head and the release;
 * patience; the thread that a release wakes; waiters whose deadline, wake-up and release coincide.
 */
#include <stdbool.h>

/* As in the kernel, whose mutexes name their holders. */
static bool holder_sleeps;
#define shfl_mutex_holder_sleeps(lock) ((void)(lock), holder_sleeps)

#include "shfl_mutex.h"
#include "unit.h"

#define FLAGS (SHFL_MUTEX_LOCKED | SHFL_MUTEX_PARKED | SHFL_MUTEX_HEIR | SHFL_MUTEX_CLOSED)

static const struct shfl_mutex_policy parks = {
	.wait = WAIT_PARK, .patience = 1, .policy = POLICY_NUMA, .batch = 2, .spins = 1};
static struct shfl_mutex lock;
static struct shfl_node head, second;

static void begin(uint32_t state)
{
	memset((void *)&lock, 0, sizeof(lock));
	atomic_store(&lock.generation, 2 * w_fork_generation());
	atomic_store(&lock.state, state);
	lock.heir = disguise(&second.status);
	script_clear();
}

static uint32_t state(void)
{
	return atomic_load(&lock.state);
}

static void newcomers_by_state(void)
{
	for (uint32_t before = 0; before <= FLAGS; before++) {
		begin(before);
		EXPECT(shfl_mutex_try_acquire(&lock) == (before == 0), "state %u", before);
		EXPECT(state() == (before ? before : SHFL_MUTEX_LOCKED), "state %u", before);
	}
}

static void head_by_state(void)
{
	uint32_t seen;

	for (uint32_t before = 0; before <= FLAGS; before++) {
		begin(before);
		EXPECT(shfl_mutex_take(&lock, &seen) == !(before & SHFL_MUTEX_LOCKED), "state %u",
		       before);
		EXPECT(state() == (before & SHFL_MUTEX_LOCKED ? before : SHFL_MUTEX_LOCKED),
		       "state %u", before);
	}
}

static void releases_by_state(void)
{
	for (uint32_t before = 0; before <= FLAGS; before++) {
		bool held = before & SHFL_MUTEX_LOCKED;

		begin(before);
		EXPECT(shfl_mutex_release(&lock, parks) == held, "state %u", before);
		EXPECT(state() == (held ? before & SHFL_MUTEX_CLOSED : before), "state %u", before);
		EXPECT(script_unparks(&lock.state) == (held && before & SHFL_MUTEX_PARKED),
		       "state %u", before);
		EXPECT(script_unparks(&second.status) == (held && before & SHFL_MUTEX_HEIR),
		       "state %u", before);
	}
}

/* A fair release with a waiter leaves the lock closed; without one it is an ordinary release. */
static void fair_releases_by_state(void)
{
	for (uint32_t waits = 0; waits < 2; waits++) {
		for (uint32_t before = 0; before <= FLAGS; before++) {
			bool held = before & SHFL_MUTEX_LOCKED;
			uint32_t closed = waits ? SHFL_MUTEX_CLOSED : before & SHFL_MUTEX_CLOSED;

			begin(before);
			if (waits)
				EXPECT(shfl_enter(&lock.tail, &head, 0));
			EXPECT(shfl_mutex_release_fair(&lock, parks) == held, "state %u", before);
			EXPECT(state() == (held ? closed : before), "state %u", before);
			EXPECT(script_unparks(&lock.state) == (held && before & SHFL_MUTEX_PARKED),
			       "state %u", before);
			EXPECT(script_unparks(&second.status) == (held && before & SHFL_MUTEX_HEIR),
			       "state %u", before);
		}
	}
}

static bool release(void *unused)
{
	(void)unused;
	EXPECT(shfl_mutex_release(&lock, parks));
	return true;
}

/* A newcomer takes the lock whenever that is allowed, until the head closes the lock. */
static bool release_and_steal(void *stolen)
{
	EXPECT(shfl_mutex_release(&lock, parks));
	if (shfl_mutex_try_acquire(&lock))
		++*(uint32_t *)stolen;
	return true;
}

/* With @patience, at most this many newcomers pass the head, each after one of its tries. */
static void closes_after_patience(void)
{
	for (uint32_t patience = 0; patience < 4; patience++) {
		struct shfl_mutex_policy policy = {.wait = WAIT_PARK,
						   .patience = patience,
						   .policy = POLICY_NUMA,
						   .batch = 2,
						   .spins = 1};
		uint32_t stolen = 0;

		begin(SHFL_MUTEX_LOCKED);
		for (uint32_t i = 0; i <= patience + 1; i++)
			script_at(100 * (i + 1), release_and_steal, &stolen);
		EXPECT(shfl_mutex_acquire(&lock, policy, NULL));
		EXPECT(stolen == patience, "%u passed instead of %u", stolen, patience);
		EXPECT(state() == SHFL_MUTEX_LOCKED);
	}
}

static bool steal(void *stolen)
{
	*(uint32_t *)stolen += shfl_mutex_try_acquire(&lock);
	return true;
}

/*
 * A newcomer spins while the lock is released at @step and then @thefts times more, 3 steps apart.
 * After each release but the last, another thread takes it at once. Returns how often it could.
 */
static uint32_t race_at(long step, uint32_t thefts, bool *taken)
{
	uint32_t stolen = 0;

	begin(SHFL_MUTEX_LOCKED);
	for (uint32_t i = 0; i <= thefts; i++) {
		script_at(step + 3 * i, release, NULL);
		if (i < thefts)
			script_at(step + 3 * i + 1, steal, &stolen);
	}
	*taken = shfl_mutex_spin(&lock, parks, NULL);
	return stolen;
}

/* A newcomer that comes too late to a free lock spins again, SHFL_MUTEX_RACES times in all. */
static void newcomer_races(void)
{
	uint32_t lost = 0, won = 0;
	bool taken;

	for (long step = 1; step < 6; step++) {
		won += race_at(step, SHFL_MUTEX_RACES - 1, &taken) == SHFL_MUTEX_RACES - 1 && taken;
		lost += race_at(step, SHFL_MUTEX_RACES, &taken) == SHFL_MUTEX_RACES && !taken;
	}
	EXPECT(won, "the newcomer never spins again");
	EXPECT(lost, "the newcomer never stops");
}

static bool note_parked(void *when)
{
	if (!(state() & SHFL_MUTEX_PARKED))
		return false;
	*(long *)when = script_time;
	return true;
}

/* The step at which a waiter with @spins sleeps. */
static long sleeps_at(uint32_t spins)
{
	struct shfl_mutex_policy policy = parks;
	long when = 0;

	policy.spins = spins;
	begin(SHFL_MUTEX_LOCKED);
	script_at(1, note_parked, &when);
	script_at(1, release, NULL);
	EXPECT(shfl_mutex_acquire(&lock, policy, NULL));
	return when;
}

static void sleeps_after_spins(void)
{
	long step = sleeps_at(2) - sleeps_at(1);

	EXPECT(step > 0 && sleeps_at(0) < sleeps_at(1));
	for (uint32_t spins = 2; spins < 31; spins++)
		EXPECT(sleeps_at(spins + 1) - sleeps_at(spins) == step, "%u spins", spins);
}

/* A waiter does not spin while the holder does not run, whatever its spins. */
static void sleeps_while_the_holder_does(void)
{
	long spun = sleeps_at(1), one, four;

	holder_sleeps = true;
	one = sleeps_at(1);
	four = sleeps_at(4);
	holder_sleeps = false;
	EXPECT(four == one && one < spun, "%ld, %ld, %ld", four, one, spun);
}

/* Once the waiter is the head, a fair release is all that it needs: nobody steals the lock. */
static bool release_fairly_and_steal(void *stolen)
{
	if (!atomic_load(&lock.tail))
		return false;
	EXPECT(shfl_mutex_release_fair(&lock, parks));
	*(uint32_t *)stolen += shfl_mutex_try_acquire(&lock);
	return true;
}

static void fair_release_prevents_stealing(void)
{
	for (enum wait wait = WAIT_SPIN; wait <= WAIT_PARK; wait++) {
		for (long step = 1; step < 60; step++) {
			struct shfl_mutex_policy policy = {.wait = wait,
							   .patience = 100,
							   .policy = POLICY_NUMA,
							   .batch = 2,
							   .spins = 1};
			uint32_t stolen = 0;

			begin(SHFL_MUTEX_LOCKED);
			script_at(step, release_fairly_and_steal, &stolen);
			EXPECT(shfl_mutex_acquire(&lock, policy, NULL));
			EXPECT(!stolen, "a newcomer took the lock at step %ld", step);
			EXPECT(state() == SHFL_MUTEX_LOCKED, "state %u", state());
		}
	}
}

static void expect_settled(bool taken)
{
	script_finish();
	if (taken)
		EXPECT(shfl_mutex_release(&lock, parks));
	EXPECT(!atomic_load(&lock.tail));
	EXPECT(!(state() & ~SHFL_MUTEX_PARKED), "state %u is left behind", state());
}

static void head_against_release(void)
{
	for (enum wait wait = WAIT_SPIN; wait <= WAIT_PARK; wait++) {
		for (uint32_t patience = 0; patience < 3; patience++) {
			for (long step = 1; step < 40; step++) {
				struct shfl_mutex_policy policy = {.wait = wait,
								   .patience = patience,
								   .policy = POLICY_NUMA,
								   .batch = 2,
								   .spins = 1};

				begin(SHFL_MUTEX_LOCKED);
				script_at(step, release, NULL);
				EXPECT(shfl_mutex_acquire(&lock, policy, NULL));
				expect_settled(true);
			}
		}
	}
}

static bool release_fairly(void *unused)
{
	(void)unused;
	EXPECT(shfl_mutex_release_fair(&lock, parks));
	return true;
}

/*
 * @releases between any two of the first @steps steps of a waiter that may give up: afterwards the
 * lock is free and open.
 */
static void timed_head_against(bool (*releases)(void *unused), long steps)
{
	for (uint32_t patience = 0; patience < 3; patience++) {
		for (long step = 1; step < steps; step++) {
			for (long end = 1; end < 40; end++) {
				struct shfl_mutex_policy policy = {.wait = WAIT_PARK,
								   .patience = patience,
								   .policy = POLICY_NUMA,
								   .batch = 2,
								   .spins = 1};
				struct w_deadline deadline = script_deadline(end);

				begin(SHFL_MUTEX_LOCKED);
				script_at(step, releases, NULL);
				expect_settled(shfl_mutex_acquire(&lock, policy, &deadline));
				EXPECT(!state(), "state %u is left behind", state());
			}
		}
	}
}

static void timed_head_against_release(void)
{
	timed_head_against(release, 40);
}

static void timed_head_against_fair_release(void)
{
	timed_head_against(release_fairly, 60);
}

/*
 * The head before us becomes the holder, and its release wakes us; not between entering and
 * linking.
 */
static bool head_takes_and_leaves(void *unused)
{
	W_ATOMIC(uint32_t) *sleeper;
	uint32_t seen;

	(void)unused;
	if (atomic_load(&lock.tail) != &head && !atomic_load(&head.next))
		return false;
	EXPECT(shfl_mutex_take(&lock, &seen));
	sleeper = shfl_leave(&lock.tail, &head, WAIT_PARK);
	if (!sleeper)
		return true;
	lock.heir = disguise(sleeper);
	atomic_fetch_or(&lock.state, SHFL_MUTEX_HEIR);
	return true;
}

static void timed_waiter_against_head(void)
{
	for (long taken = 1; taken < 40; taken += 3) {
		for (long released = taken; released < 60; released++) {
			for (long end = 1; end < 60; end += 2) {
				struct shfl_mutex_policy policy = {.wait = WAIT_PARK,
								   .patience = 1,
								   .policy = POLICY_NUMA,
								   .batch = 2,
								   .spins = 1};
				struct w_deadline deadline = script_deadline(end);

				begin(SHFL_MUTEX_CLOSED);
				EXPECT(shfl_enter(&lock.tail, &head, 0));
				script_clear();
				script_at(taken, head_takes_and_leaves, NULL);
				script_at(released, release, NULL);
				expect_settled(shfl_mutex_acquire(&lock, policy,
								  end > 50 ? NULL : &deadline));
			}
		}
	}
}

static bool second_enters_and_sleeps(void *unused)
{
	(void)unused;
	if (!atomic_load(&lock.tail))
		return false;
	EXPECT(!shfl_enter(&lock.tail, &second, 0));
	atomic_store(&second.status, SHFL_PARKED);
	return true;
}

/*
 * A sleeping successor is woken by a head that has time, or by the release, never under the lock.
 */
static void next_in_line_is_woken(void)
{
	int heirs = 0, early = 0;

	for (long entered = 1; entered < 20; entered++) {
		for (long step = entered; step < 60; step++) {
			struct shfl_mutex_policy policy = {.wait = WAIT_PARK,
							   .patience = 100,
							   .policy = POLICY_NUMA,
							   .batch = 2,
							   .spins = 1};
			bool heir;

			begin(SHFL_MUTEX_LOCKED);
			script_at(entered, second_enters_and_sleeps, NULL);
			script_at(step, release, NULL);
			EXPECT(shfl_mutex_acquire(&lock, policy, NULL));
			if (!atomic_load(&lock.tail))
				continue;
			heir = state() & SHFL_MUTEX_HEIR;
			heirs += heir;
			early += !heir;
			EXPECT(script_unparks(&second.status) == !heir);
			EXPECT(!heir || lock.heir == disguise(&second.status));
			EXPECT(shfl_mutex_release(&lock, parks));
			EXPECT(script_unparks(&second.status) == 1, "the next in line sleeps on");
			EXPECT(atomic_load(&second.status) == SHFL_READY);
		}
	}
	EXPECT(heirs && early, "only one of the two ways was taken");
}

static struct shfl_node waiters[4];

/* Once the lock's user has queued behind the head, other waiters queue behind it and sleep. */
static bool others_enter_and_sleep(void *unused)
{
	(void)unused;
	if (!atomic_load(&head.next))
		return false;
	for (int i = 0; i < COUNT(waiters); i++) {
		EXPECT(!shfl_enter(&lock.tail, &waiters[i], 0));
		atomic_store(&waiters[i].status, SHFL_PARKED);
	}
	return true;
}

static bool head_leaves(void *unused)
{
	W_ATOMIC(uint32_t) *sleeper = shfl_leave(&lock.tail, &head, WAIT_PARK);

	(void)unused;
	if (sleeper)
		w_unpark(sleeper);
	return true;
}

/*
 * Returns how many sleepers behind it the lock's user wakes before it has the lock, if the head
 * before it leaves at step @left and the state is @state_then.
 */
static int woken_ahead(uint32_t state_then, long left, bool own_cpu)
{
	int woken = 0;

	begin(state_then);
	EXPECT(shfl_enter(&lock.tail, &head, 0));
	script_clear();
	script_own_cpu = own_cpu;
	script_at(4, others_enter_and_sleep, NULL);
	script_at(left, head_leaves, NULL);
	if (state_then & SHFL_MUTEX_LOCKED)
		script_at(2000, release, NULL);
	EXPECT(shfl_mutex_acquire_slow(&lock, parks, NULL));
	for (int i = 0; i < COUNT(waiters); i++)
		woken += script_unparks(&waiters[i].status);
	return woken;
}

/*
 * A head that has slept, on its own CPU, wakes one sleeper before its first attempt, and others
 * only if that fails.
 */
static void head_that_has_slept_wakes_ahead(void)
{
	const long soon = 4, late = 1000;

	EXPECT(woken_ahead(SHFL_MUTEX_CLOSED, late, true) == 1);
	EXPECT(woken_ahead(SHFL_MUTEX_LOCKED, late, true) == SHFL_MUTEX_AHEAD);
	EXPECT(woken_ahead(SHFL_MUTEX_CLOSED, late, false) == 0);
	EXPECT(woken_ahead(SHFL_MUTEX_LOCKED, late, false) == 0);
	EXPECT(woken_ahead(SHFL_MUTEX_CLOSED, soon, true) == 0);
}

static bool second_enters(void *unused)
{
	(void)unused;
	if (!atomic_load(&lock.tail))
		return false;
	EXPECT(!shfl_enter(&lock.tail, &second, 0));
	return true;
}

/* A fair release while the head gives up leaves the lock to the waiter behind it. */
static void timed_head_leaves_the_lock_to_the_next(void)
{
	int left = 0;

	for (long step = 1; step < 60; step++) {
		for (long end = 1; end < 40; end++) {
			struct w_deadline deadline = script_deadline(end);

			begin(SHFL_MUTEX_LOCKED);
			script_at(1, second_enters, NULL);
			script_at(step, release_fairly, NULL);
			if (shfl_mutex_acquire(&lock, parks, &deadline) ||
			    !atomic_load(&lock.tail) || state() & SHFL_MUTEX_LOCKED)
				continue;
			left++;
			EXPECT(atomic_load(&second.status) == SHFL_READY);
			EXPECT(!shfl_mutex_try_acquire(&lock), "a newcomer took the lock");
		}
	}
	EXPECT(left, "the release was never between the deadline and the end of the wait");
}

/* A head that gives up makes the sleeper behind it the head at once. */
static void timed_head_wakes_the_next(void)
{
	int entered = 0;

	for (long step = 1; step < 40; step++) {
		for (long end = step; end < 60; end++) {
			struct shfl_mutex_policy policy = {.wait = WAIT_PARK,
							   .patience = 1,
							   .policy = POLICY_NUMA,
							   .batch = 2,
							   .spins = 1};
			struct w_deadline deadline = script_deadline(end);

			begin(SHFL_MUTEX_LOCKED);
			script_at(step, second_enters_and_sleeps, NULL);
			EXPECT(!shfl_mutex_acquire(&lock, policy, &deadline));
			if (!atomic_load(&lock.tail)) {
				EXPECT(!(state() & SHFL_MUTEX_CLOSED));
				continue;
			}
			entered++;
			EXPECT(script_unparks(&second.status) == 1, "the next in line sleeps on");
			EXPECT(atomic_load(&second.status) == SHFL_READY);
		}
	}
	EXPECT(entered);
}

int main(void)
{
	RUN(newcomers_by_state);
	RUN(head_by_state);
	RUN(releases_by_state);
	RUN(fair_releases_by_state);
	RUN(closes_after_patience);
	RUN(newcomer_races);
	RUN(sleeps_after_spins);
	RUN(sleeps_while_the_holder_does);
	RUN(fair_release_prevents_stealing);
	RUN(head_against_release);
	RUN(timed_head_against_release);
	RUN(timed_head_against_fair_release);
	RUN(timed_waiter_against_head);
	RUN(next_in_line_is_woken);
	RUN(head_that_has_slept_wakes_ahead);
	RUN(timed_head_leaves_the_lock_to_the_next);
	RUN(timed_head_wakes_the_next);
	return 0;
}
