/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tour.h, ron.h, ron_ticket.h, ron_plock.h: for all patterns of waiters and places, each is served
 * once in the order of the tour. Neither a waiter nor the lock is lost, whenever a release, an
 * arrival or a deadline interrupts an acquisition or a release. A child has none of its parent's
 * waiters. The interleavings that earlier implementations got wrong have tests of their own.
 */
#include "ron.h"
#include "ron_plock.h"
#include "ron_ticket.h"
#include "unit.h"

#define MOST_WAITERS 5
#define MOST_STEPS 60 /* more than any acquisition or release here has */

static _Alignas(64) char memory[1 << 19];
static struct ron_node nodes[MOST_WAITERS];
static uint32_t tickets[MOST_WAITERS], places[MOST_WAITERS];

/* A lock under test, whose waiters arrive and wait step by step. */
static const struct subject {
	const char *name;
	size_t (*size)(void);
	void (*init)(void);
	bool (*try)(void);
	bool (*acquire)(enum wait wait, const struct w_deadline *deadline);
	bool (*release)(enum wait wait);
	/* Thread @who arrives at @place and announces itself. */
	void (*come)(int who, uint32_t place, enum wait wait);
	/* The first half of that. */
	void (*arrive)(int who, void *place);
	/* Whether @who holds the lock now; it then stops waiting. */
	bool (*served)(int who);
} * subject;

#define SUBJECT(lock)                                                                       \
	static void lock##_make(void)                                                       \
	{                                                                                   \
		lock##_init((struct lock *)memory, lock##_size());                          \
	}                                                                                   \
	static bool lock##_try(void)                                                        \
	{                                                                                   \
		return lock##_try_acquire((struct lock *)memory);                           \
	}                                                                                   \
	static bool lock##_lock(enum wait wait, const struct w_deadline *deadline)          \
	{                                                                                   \
		return lock##_acquire((struct lock *)memory, (struct lock##_policy){wait},  \
				      deadline);                                            \
	}                                                                                   \
	static bool lock##_unlock(enum wait wait)                                           \
	{                                                                                   \
		return lock##_release((struct lock *)memory, (struct lock##_policy){wait}); \
	}                                                                                   \
	static void lock##_comes(int who, uint32_t place, enum wait wait)                   \
	{                                                                                   \
		struct tour *tour = (struct tour *)memory;                                  \
                                                                                            \
		places[who] = place;                                                        \
		lock##_arrive(who, tour_place(tour, place));                                \
		if (tour_mark(tour, place))                                                 \
			lock##_hand_over((struct lock *)memory, wait);                      \
	}

static void ron_arrive(int who, void *place)
{
	ron_come(place, &nodes[who]);
}

static bool ron_is_served(int who)
{
	return atomic_load(&nodes[who].status) == NODE_GRANTED &&
	       (atomic_store(&nodes[who].status, NODE_FREE), true);
}

static void ron_ticket_arrive(int who, void *place)
{
	struct tickets *here = place;

	tickets[who] = atomic_fetch_add(&here->next, TICKETS_STEP) + TICKETS_STEP;
}

static bool ron_ticket_is_served(int who)
{
	struct tickets *here = tour_place((struct tour *)memory, places[who]);

	return tickets[who] && (atomic_load(&here->serving) & ~TICKETS_SLEEPERS) == tickets[who] &&
	       (tickets[who] = 0, true);
}

static void ron_plock_arrive(int who, void *place)
{
	struct ron_plock_place *here = place;

	atomic_fetch_add(&here->word, 1);
	tickets[who] = 1;
}

static bool ron_plock_is_served(int who)
{
	return tickets[who] &&
	       ron_plock_leave(tour_place((struct tour *)memory, places[who]), true) &&
	       (tickets[who] = 0, true);
}

SUBJECT(ron)
SUBJECT(ron_ticket)
SUBJECT(ron_plock)

#define ENTRY(lock)                                                                      \
	{                                                                                \
#lock, lock##_size, lock##_make, lock##_try, lock##_lock, lock##_unlock, \
			lock##_comes, lock##_arrive, lock##_is_served                    \
	}

static const struct subject subjects[] = {ENTRY(ron), ENTRY(ron_ticket), ENTRY(ron_plock)};

static const enum wait ways[] = {WAIT_SPIN, WAIT_YIELD, WAIT_PARK};

/* A free lock with @places places. */
static void begin(uint32_t cpus)
{
	script_clear();
	script_cpus = cpus;
	script_position = 0;
	EXPECT(subject->size() <= sizeof(memory));
	memset(memory, 0, subject->size());
	memset((void *)nodes, 0, sizeof(nodes));
	memset(tickets, 0, sizeof(tickets));
	subject->init();
}

/* The same, held by a thread at @position. */
static void begin_held(uint32_t cpus, uint32_t position)
{
	begin(cpus);
	script_position = position;
	EXPECT(subject->try());
}

static void expect_free(void)
{
	EXPECT(subject->try(), "%s: the lock is lost", subject->name);
	EXPECT(!subject->try(), "%s: two hold the lock", subject->name);
	EXPECT(subject->release(WAIT_YIELD));
	EXPECT(!subject->release(WAIT_YIELD), "%s: a free lock was released", subject->name);
}

/* The waiter that received the lock and announces its place, or -1. */
static int served(void)
{
	int holder = -1;

	for (int who = 0; who < MOST_WAITERS; who++) {
		if (subject->served(who)) {
			EXPECT(holder < 0, "%s: two have the lock", subject->name);
			tour_arrive((struct tour *)memory, places[who]);
			holder = who;
		}
	}
	return holder;
}

/* ---- Order ---- */

/* The next of the waiters (@waiting, at places[]) after place @at: by tour, then by arrival. */
static int expected(unsigned waiting, uint32_t cpus, uint32_t at)
{
	for (uint32_t step = 1; step <= cpus; step++)
		for (int who = 0; who < MOST_WAITERS; who++)
			if (waiting & 1u << who && places[who] == (at + step) % cpus)
				return who;
	return -1;
}

static void expect_tour(int waiters, uint32_t cpus, uint32_t at, enum wait wait)
{
	unsigned waiting = (1u << waiters) - 1;
	int next;

	for (; waiting; waiting &= ~(1u << next)) {
		EXPECT(subject->release(wait));
		next = expected(waiting, cpus, at);
		EXPECT(served() == next, "%s: not the next on the tour", subject->name);
		at = places[next];
		EXPECT(!subject->try(), "%s: free although handed over", subject->name);
	}
	EXPECT(subject->release(wait));
	EXPECT(served() < 0);
	expect_free();
}

/* All patterns of waiters at few places, and across the borders of groups. */
static void all_patterns(void)
{
	static const uint32_t spread[] = {1, 21, 63, 64, 1344, 4032};
	uint32_t cpus, stride;

	for (int size = 0; size < COUNT(spread); size++)
		for (int at = 0; at < 3; at++)
			for (int pattern = 0; pattern < power(3, MOST_WAITERS); pattern++) {
				stride = (spread[size] + 2) / 3;
				cpus = spread[size] < 3 ? 3 : spread[size];
				begin_held(cpus, (uint32_t)at * stride);
				for (int who = 0; who < MOST_WAITERS; who++)
					subject->come(who,
						      (uint32_t)digit(pattern, 3, who) * stride,
						      WAIT_YIELD);
				expect_tour(MOST_WAITERS, cpus, (uint32_t)at * stride,
					    ways[pattern % 3]);
			}
}

/* Two waiters at one place: one release admits one. (RON's public code admitted both.) */
static void two_in_one_slot(void)
{
	for (int way = 0; way < COUNT(ways); way++) {
		begin_held(2, 0);
		subject->come(0, 1, ways[way]);
		subject->come(1, 1, ways[way]);
		EXPECT(subject->release(ways[way]));
		EXPECT(served() == 0 && served() == -1);
		EXPECT(!subject->try());
		EXPECT(subject->release(ways[way]));
		EXPECT(served() == 1);
		EXPECT(subject->release(ways[way]));
		expect_free();
	}
}

/* Waiters that return to the places around: each passes a waiter once. */
static void bounded_waiting(void)
{
	for (uint32_t patient = 0; patient < 4; patient++) {
		int passed = 0, who;

		begin_held(4, patient);
		for (int other = 0; other < 4; other++)
			subject->come(other, ((uint32_t)other + patient + 1) % 4, WAIT_YIELD);
		/*
		 * A waiter at the holder's place is last; the others return as soon as they
		 * release.
		 */
		for (;;) {
			EXPECT(subject->release(WAIT_YIELD));
			who = served();
			if (who == 3)
				break;
			EXPECT(++passed <= 3, "%s: passed more than once by a place",
			       subject->name);
			subject->come(who, places[who], WAIT_YIELD);
		}
		EXPECT(passed == 3);
	}
}

/*
 * A migrated holder: the tour continues from the place of its acquisition; otherwise the lock could
 * stay among the same places.
 */
static void migration(void)
{
	begin_held(4, 1);
	subject->come(0, 0, WAIT_YIELD);
	subject->come(1, 2, WAIT_YIELD);
	script_position = 3;
	EXPECT(subject->release(WAIT_YIELD));
	EXPECT(served() == 1);
	script_position = 1;
	EXPECT(subject->release(WAIT_YIELD));
	EXPECT(served() == 0);
	EXPECT(subject->release(WAIT_YIELD));
	expect_free();
}

/* More CPUs than places: some share one. Also positions beyond the lock's places. */
static void more_cpus_than_places(void)
{
	begin(TOUR_MOST + 100);
	EXPECT(((struct tour *)memory)->places == TOUR_MOST);
	script_position = TOUR_MOST + 99;
	EXPECT(tour_here((struct tour *)memory) < TOUR_MOST);
	EXPECT(subject->acquire(WAIT_YIELD, NULL));
	EXPECT(subject->release(WAIT_YIELD));
	begin_held(2, 70);
	EXPECT(tour_here((struct tour *)memory) < 2);
	subject->come(0, tour_here((struct tour *)memory), WAIT_YIELD);
	EXPECT(subject->release(WAIT_YIELD));
	EXPECT(served() == 0);
}

/* ---- Interleavings ---- */

static enum wait way;

static bool release_now(void *unused)
{
	(void)unused;
	EXPECT(subject->release(way));
	return true;
}

static bool come_now(void *place)
{
	subject->come(0, *(uint32_t *)place, way);
	return true;
}

/*
 * A release at each step of an acquisition, which must complete. Between announcing and waiting are
 * the steps at which algorithm 2's unlock searches for a ticket that was not taken, and those at
 * which a waiter that falls asleep is missed.
 */
static void release_while_acquiring(void)
{
	for (int step = 1; step < MOST_STEPS; step++) {
		begin_held(2, 0);
		script_position = (uint32_t)step % 2;
		script_at(step, release_now, NULL);
		EXPECT(subject->acquire(way, NULL));
		script_finish();
		EXPECT(served() < 0);
		EXPECT(!subject->try());
		EXPECT(subject->release(way));
		expect_free();
	}
}

/*
 * The same with a deadline at each step: a leaving waiter takes neither the lock nor the token
 * along.
 */
static void release_and_deadline(void)
{
	struct w_deadline deadline;
	int left = 0, stayed = 0;

	for (int step = 1; step < MOST_STEPS; step++)
		for (int end = 1; end < MOST_STEPS; end++) {
			begin_held(2, 0);
			script_position = (uint32_t)step % 2;
			deadline = script_deadline(end);
			script_at(step, release_now, NULL);
			if (subject->acquire(way, &deadline)) {
				stayed++;
				script_finish();
				EXPECT(subject->release(way));
			} else {
				left++;
				script_finish();
			}
			expect_free();
		}
	EXPECT(left && stayed);
}

/* The arrived waiter releases once it is served. */
static bool pass_on(void *unused)
{
	(void)unused;
	if (served() != 0)
		return false;
	EXPECT(subject->release(way));
	return true;
}

/*
 * Another waiter arrives at the same or the previous place, at each step of an acquisition: both
 * are admitted, one after the other.
 */
static void come_while_acquiring(void)
{
	for (uint32_t place = 0; place < 2; place++)
		for (int come = 1; come < MOST_STEPS; come++)
			for (int release = come; release < MOST_STEPS; release++) {
				begin_held(2, 0);
				script_position = 1;
				script_at(come, come_now, &place);
				script_at(release, release_now, NULL);
				script_at(release, pass_on, NULL);
				EXPECT(subject->acquire(way, NULL));
				EXPECT(served() < 0, "%s: both were let in", subject->name);
				EXPECT(!subject->try());
				EXPECT(subject->release(way));
				script_finish();
				expect_free();
			}
}

/* Serves the waiters one by one until the lock is free; returns their number. */
static int drain(void)
{
	int turns = 0;

	for (; served() >= 0; turns++)
		EXPECT(subject->release(way));
	return turns;
}

/*
 * An arrival at each step of a release, with and without other waiters: it is served, or finds the
 * lock free and takes it.
 */
static void come_while_releasing(void)
{
	for (uint32_t place = 0; place < 2; place++)
		for (int others = 0; others < 3; others++)
			for (int before = 0; before <= others; before++)
				for (int step = 1; step < MOST_STEPS; step++) {
					begin_held(2, 0);
					for (int other = 0; other < others; other++)
						subject->come(other + 1, (uint32_t)other, way);
					for (int turn = 0; turn < before; turn++)
						EXPECT(subject->release(way) && served() > 0);
					script_time = 0;
					script_at(step, come_now, &place);
					EXPECT(subject->release(way));
					script_finish();
					EXPECT(drain() == others - before + 1,
					       "%s: a waiter was missed", subject->name);
					expect_free();
				}
}

/* Thread @who goes to @place, but does not announce itself yet. */
static void come_half(int who, uint32_t place)
{
	struct tour *tour = (struct tour *)memory;

	places[who] = place;
	subject->arrive(who, tour_place(tour, place));
}

/* A thread that stops before its announcement blocks nobody. */
static void half_come(void)
{
	begin_held(2, 0);
	come_half(0, 1);
	EXPECT(subject->release(way));
	EXPECT(served() < 0);
	expect_free();
	EXPECT(tour_mark((struct tour *)memory, 1));
	EXPECT(!subject->try(), "free, but its first waiter is at its place");
}

/* Served by another waiter's mark, and marked afterwards: a mark without a waiter blocks nobody. */
static void marked_too_late(void)
{
	begin_held(2, 0);
	subject->come(0, 1, way);
	come_half(1, 1);
	EXPECT(subject->release(way) && served() == 0);
	EXPECT(subject->release(way) && served() == 1);
	EXPECT(!tour_mark((struct tour *)memory, 1));
	EXPECT(subject->release(way) && served() < 0);
	expect_free();
}

/* ---- Fork ---- */

/* In a child no waiter of the parent is served, announced or not; new waiters are. */
static void child_is_served(void)
{
	fork_generation_set(0);
	begin_held(2, 0);
	subject->come(0, 0, way);
	subject->come(1, 1, way);
	come_half(2, 1);
	fork_generation_set(1);
	EXPECT(subject->release(way));
	EXPECT(served() < 0, "%s: a waiter of the parent has the lock", subject->name);
	memset(tickets, 0, sizeof(tickets));
	for (uint32_t place = 0; place < 2; place++) {
		EXPECT(subject->try());
		subject->come(3, place, way);
		EXPECT(subject->release(way));
		EXPECT(served() == 3, "%s: passed by for a waiter of the parent", subject->name);
		EXPECT(subject->release(way));
		expect_free();
	}
	fork_generation_set(0);
}

/* ---- Deadlines ---- */

/* ron_plock: the last waiter of a place leaves at each step of the token's arrival; so do two. */
static void stranded_token(void)
{
	struct ron_plock_place *place;

	subject = &subjects[2];
	begin_held(2, 0);
	subject->come(0, 1, WAIT_YIELD);
	place = tour_place((struct tour *)memory, 1);
	EXPECT(!ron_plock_leave(place, false), "left before the token came");
	EXPECT(subject->release(WAIT_YIELD));
	expect_free();

	begin_held(2, 0);
	subject->come(0, 1, WAIT_YIELD);
	subject->come(1, 1, WAIT_YIELD);
	EXPECT(subject->release(WAIT_YIELD));
	EXPECT(ron_plock_leave(place, false), "who leaves and finds the token takes it");
	EXPECT(!ron_plock_leave(place, false));
	EXPECT(!subject->try());
	EXPECT(subject->release(WAIT_YIELD));
	expect_free();
}

/* The only waiter of @place leaves; if it finds the token there, it holds the lock. */
static bool leave_now(void *place)
{
	tickets[0] = 0;
	if (ron_plock_leave(place, false)) {
		tour_arrive((struct tour *)memory, 1);
		EXPECT(subject->release(WAIT_YIELD));
	}
	return true;
}

/*
 * ron_plock: the only waiter of a place leaves at each step of a release that saw it: the token
 * does not stay there.
 */
static void leave_while_releasing(void)
{
	subject = &subjects[2];
	for (int step = 1; step < MOST_STEPS; step++) {
		begin_held(2, 0);
		subject->come(0, 1, WAIT_YIELD);
		script_time = 0;
		script_at(step, leave_now, tour_place((struct tour *)memory, 1));
		EXPECT(subject->release(WAIT_YIELD));
		script_finish();
		expect_free();
	}
}

/*
 * ron_plock: one of two sleepers is woken, and a newcomer takes the token first: the sleeper sleeps
 * again and is woken again.
 */
static void sleepers_stay_known(void)
{
	struct ron_plock_place *place;

	subject = &subjects[2];
	begin_held(2, 0);
	for (int who = 0; who < 3; who++)
		subject->come(who, 1, WAIT_PARK);
	place = tour_place((struct tour *)memory, 1);
	atomic_fetch_or(&place->word, RON_PLOCK_SLEEPERS);
	for (int turn = 1; turn <= 3; turn++) {
		EXPECT(subject->release(WAIT_PARK));
		EXPECT(script_unparks(&place->word) == turn, "sleepers were forgotten");
		EXPECT(served() >= 0);
	}
	EXPECT(atomic_load(&place->word) == 0);
	EXPECT(subject->release(WAIT_PARK));
	expect_free();
}

/* ron: waiters that left are skipped, wherever they are at a place. */
static void some_gone(void)
{
	subject = &subjects[0];
	for (int gone = 0; gone < power(2, MOST_WAITERS); gone++)
		for (int pattern = 0; pattern < power(2, MOST_WAITERS); pattern++) {
			int turns = 0;

			begin_held(2, 0);
			for (int who = 0; who < MOST_WAITERS; who++) {
				subject->come(who, (uint32_t)digit(pattern, 2, who), WAIT_YIELD);
				if (digit(gone, 2, who))
					atomic_store(&nodes[who].status, NODE_ABANDONED);
			}
			EXPECT(subject->release(WAIT_YIELD));
			for (; served() >= 0; turns++)
				EXPECT(subject->release(WAIT_YIELD));
			EXPECT(turns == MOST_WAITERS - __builtin_popcount((unsigned)gone));
			for (int who = 0; who < MOST_WAITERS; who++)
				EXPECT(atomic_load(&nodes[who].status) == NODE_FREE);
			expect_free();
		}
}

/* The place that the last prefetch since script_clear() was for, or TOUR_NOBODY. */
static uint32_t prefetched(void)
{
	struct tour *const tour = (struct tour *)memory;

	for (uint32_t place = 0; place < tour->places; place++)
		if (script_prefetched == tour_place(tour, place))
			return place;
	return TOUR_NOBODY;
}

/* @who gets the lock, and prefetches @place. */
static void expect_look_ahead(int who, uint32_t place)
{
	EXPECT(subject->release(WAIT_YIELD));
	EXPECT(served() == who);
	EXPECT(prefetched() == place, "%s: %u for %u", subject->name, prefetched(), place);
}

/* A holder prefetches the place that got the lock from its own place last time. */
static void looks_ahead(void)
{
	begin_held(64, 0);
	for (int round = 0; round < 2; round++) {
		subject->come(0, 9, WAIT_YIELD);
		subject->come(1, 40, WAIT_YIELD);
		expect_look_ahead(0, round ? 40 : 0);
		expect_look_ahead(1, round ? 9 : 0);
	}
	subject->come(0, 50, WAIT_YIELD);
	expect_look_ahead(0, 0);
	subject->come(0, 9, WAIT_YIELD);
	subject->come(1, 40, WAIT_YIELD);
	expect_look_ahead(0, 40);
	expect_look_ahead(1, 50);
	EXPECT(subject->release(WAIT_YIELD));
	expect_free();
}

/* A search of a group whose first place is empty requests the rest of the group. */
static void requests_a_group(void)
{
	begin_held(20, 0);
	script_prefetched = NULL;
	subject->come(0, 8, WAIT_YIELD);
	EXPECT(subject->release(WAIT_YIELD));
	EXPECT(prefetched() == TOUR_NOBODY, "the first place is not empty");
	EXPECT(served() == 0);
	subject->come(0, 12, WAIT_YIELD);
	EXPECT(subject->release(WAIT_YIELD));
	EXPECT(prefetched() == 15, "the end of the group");
	EXPECT(served() == 0);
	subject->come(0, 18, WAIT_YIELD);
	EXPECT(subject->release(WAIT_YIELD));
	EXPECT(prefetched() == 19, "the last place");
	EXPECT(served() == 0);
	EXPECT(subject->release(WAIT_YIELD));
	expect_free();
}

int main(void)
{
	for (int i = 0; i < COUNT(subjects); i++) {
		subject = &subjects[i];
		RUN(all_patterns);
		RUN(two_in_one_slot);
		RUN(bounded_waiting);
		RUN(migration);
		RUN(more_cpus_than_places);
		RUN(looks_ahead);
		RUN(requests_a_group);
		for (int each = 0; each < COUNT(ways); each++) {
			way = ways[each];
			RUN(child_is_served);
			RUN(release_while_acquiring);
			RUN(release_and_deadline);
			RUN(come_while_acquiring);
			RUN(come_while_releasing);
			RUN(half_come);
			RUN(marked_too_late);
		}
	}
	RUN(stranded_token);
	RUN(leave_while_releasing);
	RUN(sleepers_stay_known);
	RUN(some_gone);
	return 0;
}
