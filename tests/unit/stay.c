/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stay.h: where a lock whose waiters are on a tour goes next. It keeps to a domain while the thread
 * that was first there is back, up to a number of hand-overs and a time; nobody is passed over for
 * longer. In the only domain the order is the tour's, for all patterns of waiters.
 */
#include "world.h"

static uint64_t now;

#define w_now() now

#include "part/stay.h"
#include "ron_ticket.h"
#include "unit.h"

#define PLACES 8u
#define EACH 4u /* places of a domain */
#define BOUND 100u

static _Alignas(64) char memory[4096];
static struct tour *const tour = (struct tour *)memory;
static uint32_t at;
static bool waits[PLACES];

/* The lock is held at place 0; domains have @each places. */
static void begin(uint32_t each)
{
	script_clear();
	script_cpus = PLACES;
	script_position = 0;
	script_places = each;
	memset(memory, 0, sizeof(memory));
	memset(waits, 0, sizeof(waits));
	EXPECT(ron_ticket_size() <= sizeof(memory));
	ron_ticket_init((struct ron_ticket *)memory, ron_ticket_size());
	stay_init(tour);
	EXPECT(tour_try_acquire(tour));
	at = 0;
	now = 0;
}

/* A thread comes to @place, if none waits there. */
static void come(uint32_t place)
{
	struct tickets *tickets = tour_place(tour, place);

	if (waits[place])
		return;
	waits[place] = true;
	atomic_fetch_add(&tickets->next, TICKETS_STEP);
	EXPECT(!tour_mark(tour, place));
}

/* The holder hands the lock over. Returns the place where it goes, or TOUR_NOBODY. */
static uint32_t go(uint32_t bound)
{
	const uint32_t next = stay_next(tour, &ron_ticket_kind, at, bound);

	if (next == TOUR_NOBODY)
		return next;
	EXPECT(waits[next], "nobody waits at %u", next);
	waits[next] = false;
	stay_go(tour, at, next);
	EXPECT(ron_ticket_grant(tour_place(tour, next), WAIT_YIELD));
	return at = next;
}

/* The lock goes to @place. */
static void goes(uint32_t place)
{
	const uint32_t next = go(BOUND);

	EXPECT(next == place, "%u for %u", next, place);
}

/* Threads wait at all places but the holder's. */
static void all_come(void)
{
	for (uint32_t place = 0; place < PLACES; place++)
		if (place != at)
			come(place);
}

/*
 * Whoever was served is back at once: the lock stays in a domain for @laps, then goes to the next
 * one. Each hand-over takes @each.
 */
static void stays_for(uint32_t laps, uint32_t bound, uint64_t each)
{
	begin(EACH);
	come(EACH);
	goes(EACH);
	for (uint32_t turn = 1; turn < 3 * laps * EACH; turn++) {
		const uint32_t first = turn / (laps * EACH) % 2 ? 0 : EACH;

		all_come();
		now += each;
		EXPECT(go(bound) == first + turn % EACH, "turn %u: %u", turn, at);
	}
}

static void bound_ends_it(void)
{
	for (uint32_t bound = 0; bound < 6 * EACH; bound++)
		stays_for(bound < EACH ? 1 : bound / EACH, bound, 0);
}

/* Further laps end within STAY_TIME for each place, if they take as long as the former ones. */
static void time_ends_it(void)
{
	for (uint32_t each = 1; each <= STAY_TIME; each++)
		stays_for(STAY_TIME / each, 1000000, (uint64_t)each << 10);
	stays_for(1, 1000000, 2 * STAY_TIME << 10);
}

/* Waiters of W_ORDERED spin while all domains have their stays. */
static void waiters_spin(void)
{
	EXPECT(STAY_TIME * 1024 < (uint64_t)w_spin_rounds(W_ORDERED, w_spinners_limit(PLACES)) *
					  W_SPIN_NANOSECONDS / PLACES);
}

/* The first of the lap is not back: the others of its domain wait for the next tour. */
static void first_is_away(void)
{
	begin(EACH);
	for (uint32_t place = 1; place < PLACES; place++)
		come(place);
	for (uint32_t place = 1; place < EACH; place++)
		goes(place);
	come(1);
	come(2);
	goes(EACH);
	come(0);
	for (uint32_t place = EACH + 1; place < PLACES; place++)
		goes(place);
	goes(0);
}

/* Nobody waits elsewhere: the stay goes on. */
static void nobody_elsewhere(void)
{
	begin(EACH);
	for (int round = 0; round < 1000; round++) {
		come(2);
		EXPECT(go(0) == 2);
		come(1);
		EXPECT(go(0) == 1);
	}
	come(EACH);
	EXPECT(go(0) == EACH);
	EXPECT(go(0) == TOUR_NOBODY);
}

/* A lap begins at the first place where a thread waits, also if the former one began behind it. */
static void laps_begin_at_the_first(void)
{
	begin(EACH);
	come(EACH + 2);
	come(EACH + 3);
	goes(EACH + 2);
	goes(EACH + 3);
	come(EACH + 2);
	come(EACH + 1);
	come(0);
	goes(EACH + 1);
	goes(EACH + 2);
	come(EACH + 1);
	goes(EACH + 1);
	goes(0);
	EXPECT(go(BOUND) == TOUR_NOBODY);
}

/* One domain, and any pattern of those who come between hand-overs: the order is the tour's. */
static void only_domain(void)
{
	for (int pattern = 0; pattern < power(2, 2 * PLACES); pattern++) {
		begin(0);
		for (uint32_t round = 0; round < 2; round++) {
			for (uint32_t place = 0; place < PLACES; place++)
				if (place != at && digit(pattern, 2, (int)(round * PLACES + place)))
					come(place);
			for (uint32_t turn = 0; turn < PLACES / 2; turn++) {
				const uint32_t next = tour_next(tour, &ron_ticket_kind, at);

				EXPECT(go(BOUND) == next);
				if (next == TOUR_NOBODY)
					break;
			}
		}
	}
}

/*
 * Three domains, one of which has two places only. Whoever comes, in whichever order: each is
 * served, and bypassed by at most two stays and a lap of its own domain.
 */
static void nobody_is_passed_over(void)
{
	uint32_t bypassed[PLACES], served = 0;

	for (uint32_t bound = 0; bound < 20; bound++) {
		begin(3);
		memset(bypassed, 0, sizeof(bypassed));
		for (int turn = 0; turn < 20000; turn++) {
			const uint32_t who = w_random();

			for (uint32_t place = 0; place < PLACES; place++)
				if (place != at && who >> place & 1)
					come(place);
			now += w_random() % 2048;
			if (go(bound) == TOUR_NOBODY)
				continue;
			served++;
			bypassed[at] = 0;
			for (uint32_t place = 0; place < PLACES; place++) {
				bypassed[place] += waits[place];
				EXPECT(bypassed[place] <= 2 * (bound < 3 ? 3 : bound) + 3, "%u",
				       bypassed[place]);
			}
		}
	}
	EXPECT(served > 20000);
}

int main(void)
{
	RUN(bound_ends_it);
	RUN(time_ends_it);
	RUN(waiters_spin);
	RUN(first_is_away);
	RUN(nobody_elsewhere);
	RUN(laps_begin_at_the_first);
	RUN(only_domain);
	RUN(nobody_is_passed_over);
	return 0;
}
