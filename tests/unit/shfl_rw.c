/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shfl_rw.h: fair releases in every state of the word; waiters that give up at the same time; who
 * may open a closed lock; readers by fetch-and-add; what the settings change.
 */
#include "world.h"

/* The head's clock. */
static uint64_t now;
#define w_now() now

/* As in the kernel, whose rwsems name their writers. */
static bool writer_sleeps;
#define shfl_rw_writer_sleeps(lock) ((void)(lock), writer_sleeps)
#define SHFL_RW_TOGETHER true
#define SHFL_RW_HAND_OFF 4

#include "rw/shfl_rw.h"
#include "unit.h"

static const struct shfl_rw_policy parks = {
	.wait = WAIT_PARK, .patience = 100, .policy = POLICY_NUMA, .batch = 3, .spins = 1};
static struct shfl_rw lock;
static struct shfl_node head, second;

static void begin(uint32_t word)
{
	memset((void *)&lock, 0, sizeof(lock));
	atomic_store(&lock.generation, 2 * w_fork_generation());
	atomic_store(&lock.word, word);
	lock.heir = &second.status;
	script_clear();
}

static uint32_t word(void)
{
	return atomic_load(&lock.word);
}

static bool enter(bool writes, const struct w_deadline *deadline)
{
	return writes ? shfl_rw_write(&lock, parks, deadline)
		      : shfl_rw_read(&lock, false, parks, deadline);
}

/* The word of a lock that one writer, or one reader, holds. */
static uint32_t held(bool writes)
{
	return writes ? RW_WRITER : RW_READER;
}

static bool release_fairly(bool writes)
{
	return writes ? shfl_rw_release_write_fair(&lock, parks)
		      : shfl_rw_release_read_fair(&lock, parks);
}

/*
 * A fair release with a waiter leaves the lock closed, if nobody else is inside; without one it is
 * an ordinary release.
 */
static void fair_releases_by_state(void)
{
	for (uint32_t pattern = 0; pattern < 2 * 2 * 3 * 8; pattern++) {
		const bool waits = pattern & 1, writes = pattern & 2;
		const uint32_t inside = pattern / 4 % 3;
		const uint32_t flags =
			(pattern / 12 & 3) * RW_CLOSED | (writes && pattern / 48 ? RW_HEIR : 0);
		const uint32_t before = (writes ? inside % 2 : inside * RW_READER) | flags;
		const bool alone = before - flags == held(writes);
		uint32_t after = before;

		begin(before);
		if (waits)
			EXPECT(shfl_enter(&lock.tail, &head, 0));
		if (before != flags)
			after -= held(writes);
		if (before != flags && writes)
			after &= RW_CLOSED;
		if (alone && waits)
			after |= RW_CLOSED;
		EXPECT(release_fairly(writes) == (before != flags), "word %x", before);
		EXPECT(word() == after, "word %x became %x, not %x", before, word(), after);
		EXPECT(script_unparks(&lock.word) == (alone && flags & RW_PARKED), "word %x",
		       before);
		EXPECT(script_unparks(&second.status) == (alone && flags & RW_HEIR), "word %x",
		       before);
	}
}

struct release {
	bool by_writer, to_writer;
	uint32_t stolen;
};

/* Once the waiter is the head, a fair release is all that it needs: nobody steals the lock. */
static bool release_and_steal(void *context)
{
	struct release *release = context;

	if (!atomic_load(&lock.tail))
		return false;
	EXPECT(release_fairly(release->by_writer));
	release->stolen += shfl_rw_try_write(&lock);
	if (release->to_writer)
		release->stolen += shfl_rw_try_read(&lock, false);
	return true;
}

static void fair_release_prevents_stealing(void)
{
	static const struct release cases[] = {{true, true, 0}, {true, false, 0}, {false, true, 0}};

	for (int i = 0; i < COUNT(cases); i++) {
		for (long step = 1; step < 60; step++) {
			struct release release = cases[i];

			begin(held(release.by_writer));
			script_at(step, release_and_steal, &release);
			EXPECT(enter(release.to_writer, NULL));
			EXPECT(!release.stolen, "a newcomer took the lock at step %ld", step);
			EXPECT(word() == held(release.to_writer), "word %x", word());
		}
	}
}

static bool release_by(void *writes)
{
	EXPECT(release_fairly(*(bool *)writes));
	return true;
}

/* Between any two steps of a waiter that gives up: afterwards the lock is free and open. */
static void timed_head_against_fair_release(void)
{
	for (int modes = 1; modes < 4; modes++) {
		bool by_writer = modes & 1, to_writer = modes & 2;

		for (long step = 1; step < 60; step++) {
			for (long end = 1; end < 40; end++) {
				struct w_deadline deadline = script_deadline(end);

				begin(held(by_writer));
				script_at(step, release_by, &by_writer);
				if (enter(to_writer, &deadline))
					EXPECT(to_writer ? shfl_rw_release_write(&lock, parks)
							 : shfl_rw_release_read(&lock, parks));
				script_finish();
				EXPECT(!word(), "word %x is left behind", word());
				EXPECT(!atomic_load(&lock.tail));
			}
		}
	}
}

static bool second_enters(void *unused)
{
	(void)unused;
	if (!atomic_load(&lock.tail))
		return false;
	EXPECT(!shfl_enter(&lock.tail, &second, 0));
	return true;
}

/* A head that gives up leaves a closed lock to the waiter behind it. */
static void timed_head_leaves_the_lock_to_the_next(void)
{
	struct w_deadline deadline = script_deadline(30);

	begin(RW_READER);
	script_at(1, second_enters, NULL);
	EXPECT(!shfl_rw_write(&lock, parks, &deadline));
	EXPECT(atomic_load(&second.status) == SHFL_READY);
	EXPECT(word() == (RW_READER | RW_CLOSED), "word %x", word());
}

/* A lock is opened if nobody queues, but not under a head that sleeps. */
static void reopens_by_state(void)
{
	for (uint32_t flags = 0; flags <= (RW_CLOSED | RW_PARKED); flags += RW_CLOSED) {
		bool stays = flags & RW_PARKED;

		begin(RW_READER | flags);
		shfl_rw_reopen(&lock);
		EXPECT(word() == (RW_READER | (stays ? flags : 0)), "flags %x", flags);
		begin(RW_READER | flags);
		EXPECT(shfl_enter(&lock.tail, &head, 0));
		shfl_rw_reopen(&lock);
		EXPECT(word() == (RW_READER | flags), "flags %x", flags);
	}
}

/* ---- Readers by fetch-and-add ---- */

static void readers_enter_and_leave_by_one_operation_each(void)
{
	begin(0);
	EXPECT(shfl_rw_add_reader(&lock));
	EXPECT(script_time == 1 && word() == RW_READER, "%ld operations, word %x", script_time,
	       word());
	EXPECT(shfl_rw_subtract_reader(&lock));
	EXPECT(script_time == 2 && !word(), "%ld operations, word %x", script_time, word());
}

/*
 * A reader that may not enter leaves the word as it was. It wakes a sleeping head that may have
 * seen it, unless a writer is inside, whose release does so.
 */
static void readers_are_added_by_state(void)
{
	static const uint32_t readers[] = {0, RW_READER, RW_FULL};

	for (uint32_t pattern = 0; pattern < COUNT(readers) * RW_READER; pattern++) {
		const uint32_t flags = pattern % RW_READER, inside = readers[pattern / RW_READER],
			       before = flags | inside;
		const bool enters = !(before & (RW_WRITER | RW_CLOSED | RW_FULL)),
			   wakes = !enters && !inside && (flags & RW_PARKED) &&
				   !(flags & RW_WRITER);

		begin(before);
		EXPECT(shfl_rw_add_reader(&lock) == enters, "word %x", before);
		EXPECT(word() == before + (enters ? RW_READER : 0), "word %x became %x", before,
		       word());
		EXPECT(script_unparks(&lock.word) == wakes, "word %x", before);
	}
}

static bool release_parked(void *unused)
{
	(void)unused;
	if (!(word() & RW_PARKED))
		return false;
	EXPECT(shfl_rw_release_write(&lock, parks));
	return true;
}

static bool subtract_reader(void *unused)
{
	(void)unused;
	if (!(word() & RW_PARKED))
		return false;
	EXPECT(shfl_rw_subtract_reader(&lock));
	return true;
}

/* While a writer is inside, readers that may not enter are no reason to close the lock. */
static bool release_parked_and_open(void *unused)
{
	EXPECT(!(word() & RW_CLOSED), "word %x", word());
	return release_parked(unused);
}

/* Added beside a writer, it keeps a head that the writer's release wakes out for a moment. */
static void a_reader_that_may_not_enter_wakes_the_head(void)
{
	begin(RW_WRITER | RW_READER);
	script_at(1, release_parked_and_open, NULL);
	script_at(2, subtract_reader, NULL);
	EXPECT(shfl_rw_write(&lock, parks, NULL));
	EXPECT(script_unparks(&lock.word) == 2, "%d wake-ups", script_unparks(&lock.word));
	EXPECT(word() == RW_WRITER, "word %x", word());
}

/* ---- Readers together ---- */

#define BEHIND 4

static struct shfl_node behind[BEHIND];

struct queue {
	uint32_t readers, awake;
};

/* BEHIND waiters, of which the first `readers` read and all but the `awake`-th sleep; unlocks. */
static bool queue_and_release(void *context)
{
	const struct queue *queue = context;

	if (!atomic_load(&lock.tail))
		return false;
	for (uint32_t i = 0; i < BEHIND; i++) {
		EXPECT(!shfl_enter(&lock.tail, &behind[i],
				   shfl_rw_note(&lock, i >= queue->readers, POLICY_NUMA)));
		atomic_store(&behind[i].status, i == queue->awake ? SHFL_AWAKE : SHFL_PARKED);
	}
	EXPECT(shfl_rw_release_write(&lock, parks));
	return true;
}

/* A reader that enters wakes those behind it, up to a writer, or to one that is awake already. */
static void readers_wake_readers(void)
{
	for (uint32_t readers = 0; readers <= BEHIND; readers++)
		for (uint32_t awake = 0; awake <= BEHIND; awake++) {
			struct queue queue = {readers, awake};
			const uint32_t most = parks.batch < readers ? parks.batch : readers,
				       woken = awake < most ? awake : most;

			begin(RW_WRITER);
			script_at(1, queue_and_release, &queue);
			EXPECT(enter(false, NULL));
			script_finish();
			for (uint32_t i = 0; i < BEHIND; i++)
				EXPECT(script_unparks(&behind[i].status) ==
					       (i < woken || (!i && awake)),
				       "waiter %u, %u readers, %u awake", i, readers, awake);
		}
}

/* ---- Settings ---- */

/* A newcomer takes the lock whenever that is allowed, until the head closes the lock. */
static bool release_and_take(void *taken)
{
	EXPECT(shfl_rw_release_write(&lock, parks));
	*(uint32_t *)taken += shfl_rw_try_write(&lock);
	return true;
}

/* With @patience, at most this many newcomers pass the head, each after one of its tries. */
static void closes_after_patience(void)
{
	for (uint32_t patience = 0; patience < 4; patience++) {
		struct shfl_rw_policy policy = parks;
		uint32_t taken = 0;

		policy.patience = patience;
		begin(RW_WRITER);
		for (uint32_t i = 0; i <= patience + 1; i++)
			script_at(100 * (i + 1), release_and_take, &taken);
		EXPECT(shfl_rw_write(&lock, policy, NULL));
		EXPECT(taken == patience, "%u passed instead of %u", taken, patience);
		EXPECT(word() == RW_WRITER, "word %x", word());
	}
}

/* As release_and_take(), and time passes for the head. */
static bool release_and_take_in_time(void *taken)
{
	now += 1024;
	return release_and_take(taken);
}

/* Whatever its patience, a head closes the lock once it has been the head for long enough. */
static void closes_after_a_time(void)
{
	uint32_t taken = 0;

	begin(RW_WRITER);
	for (uint32_t i = 1; i <= SHFL_RW_HAND_OFF + 1; i++)
		script_at(100 * i, release_and_take_in_time, &taken);
	EXPECT(shfl_rw_write(&lock, parks, NULL));
	EXPECT(taken == SHFL_RW_HAND_OFF, "%u passed", taken);
	EXPECT(word() == RW_WRITER, "word %x", word());
}

static bool note_parked(void *when)
{
	if (!(word() & RW_PARKED))
		return false;
	*(long *)when = script_time;
	return true;
}

/* The step at which a head with @spins sleeps. */
static long sleeps_at(bool writes, uint32_t spins)
{
	struct shfl_rw_policy policy = parks;
	long when = 0;

	policy.spins = spins;
	begin(RW_WRITER);
	script_at(1, note_parked, &when);
	script_at(1, release_parked, NULL);
	EXPECT(writes ? shfl_rw_write(&lock, policy, NULL)
		      : shfl_rw_read(&lock, false, policy, NULL));
	return when;
}

static void spins_come_before_sleep(void)
{
	for (int writes = 0; writes < 2; writes++) {
		long none = sleeps_at(writes, 0), one = sleeps_at(writes, 1),
		     four = sleeps_at(writes, 4);

		EXPECT(0 < none && none < one && one < four, "%ld, %ld, %ld", none, one, four);
	}
}

/* A head does not spin while the writer inside does not run. */
static void heads_sleep_while_the_writer_does(void)
{
	for (int writes = 0; writes < 2; writes++) {
		long none = sleeps_at(writes, 0), four;

		writer_sleeps = true;
		four = sleeps_at(writes, 4);
		writer_sleeps = false;
		EXPECT(four == none, "%ld, %ld", four, none);
	}
}

/* Whether @waiter is brought forward behind @shuffler. */
static bool follows(enum policy policy, uint32_t shuffler, uint32_t waiter)
{
	struct shfl_node before = {.note = shuffler}, behind = {.note = waiter};

	return shfl_rw_rank(&policy, &before, &behind) != POLICY_STAY;
}

/* Readers follow readers, and writers follow writers by the policy. In a FIFO nobody is moved. */
static void readers_and_writers_are_gathered_apart(void)
{
	static const enum policy policies[] = {POLICY_NUMA, POLICY_ROUTE, POLICY_GROUP};
	const uint32_t reader = shfl_rw_note(&lock, false, POLICY_NUMA);
	struct shfl_node one = {.note = reader}, other = {.note = 1};
	enum policy fifo = POLICY_FIFO;

	for (int i = 0; i < COUNT(policies); i++) {
		EXPECT(follows(policies[i], reader, reader));
		EXPECT(!follows(policies[i], reader, 1) && !follows(policies[i], 1, reader));
		EXPECT(follows(policies[i], 1, 1));
		EXPECT(follows(policies[i], 1, 2) == (policies[i] == POLICY_ROUTE));
	}
	EXPECT(!shfl_rw_rank(&fifo, &one, &other) && !shfl_rw_rank(&fifo, &other, &one));
}

int main(void)
{
	RUN(fair_releases_by_state);
	RUN(fair_release_prevents_stealing);
	RUN(timed_head_against_fair_release);
	RUN(timed_head_leaves_the_lock_to_the_next);
	RUN(reopens_by_state);
	RUN(readers_enter_and_leave_by_one_operation_each);
	RUN(readers_are_added_by_state);
	RUN(a_reader_that_may_not_enter_wakes_the_head);
	RUN(readers_wake_readers);
	RUN(closes_after_patience);
	RUN(closes_after_a_time);
	RUN(spins_come_before_sleep);
	RUN(heads_sleep_while_the_writer_does);
	RUN(readers_and_writers_are_gathered_apart);
	return 0;
}
