/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tour: who is next, where threads wait at places along a route and the lock goes round. Only the search is here;
 * how several threads wait at one place is the lock's (ron.h, ron_ticket.h, ron_plock.h).
 *
 * From: Lo, Lin, Hsieh, Lin, Fang, Lin, Huang, Lam, Chang, "RON: one-way circular shortest routing to achieve efficient
 * and bounded-waiting spinlocks", OSDI'23, algorithms 1 to 3, which share this part.
 * Changed, and why:
 *  - The flags of WaitArray are marks, 64 to a word, with one word above that says which of those have any: a search
 *    reads three words at most, however many CPUs there are. The algorithms read an element a CPU.
 *  - That upper word has the lock's InUse, too (HELD). So a lock becomes free by one compare-exchange that fails if
 *    anybody has come, and this is the last access to its memory. The algorithms scan and then clear InUse: they miss who
 *    comes in between, which only those notice that spin on InUse; and a scan repeated after the clearing would touch a
 *    lock that its next owner may have freed.
 *  - A thread marks its place after it has entered it, so that a search never waits for a thread which has announced
 *    itself but is not there yet (algorithm 2's nWait and ticket).
 *  - Who finds the lock free when marking hands it over, its own place being the first on the tour: others may be there.
 *  - A thread waits at the place it came to, for as long as it waits, wherever it runs meanwhile. A search begins behind
 *    the place that the lock was taken at, not where the holder runs now: holders that move could else keep the tour
 *    going over the same places.
 *
 * Promises: a waiter's place is passed by each other place once before it is served. Bytes: 24, and 8 for each 64 places, a
 * line's end, and the places.
 *
 *   word     HELD | a bit for each group of 64 places: somebody may have a mark there
 *   marks[]  a bit for each place: somebody may wait there
 *
 *   0                  free, legal to take by anybody
 *   HELD               held, nobody waits
 *   HELD | groups      held, and each thread that waits, and has said so, is behind a mark and its group's bit
 *
 *   0 ──newcomer, or who marks──▶ HELD ──who marks──▶ HELD | groups ──holder, who finds a group empty──▶ HELD ──▶ 0
 *
 * Anybody may set marks and groups; only the holder clears them, and looks again afterwards: who marked before the clearing
 * is seen then, who marks later sets the bit again. A bit without a waiter costs a look; a waiter without bits is about
 * to set them.
 */
#ifndef POUNDLOCK_TOUR_H
#define POUNDLOCK_TOUR_H

#include "generation.h"
#include "wait.h"

#define TOUR_GROUP 64u /* places */
#define TOUR_HELD (1ull << 63)
#define TOUR_MOST (63 * TOUR_GROUP) /* places; CPUs beyond share theirs */
#define TOUR_NOBODY UINT32_MAX

struct tour {
	W_ATOMIC(uint64_t) word;
	W_ATOMIC(uint32_t) generation;
	uint32_t places;
	uint32_t at; /* where the tour is: the place that the lock was taken at. The holder's */
};

/* What a lock says of its places. */
struct tour_kind {
	size_t bytes; /* of each */
	/* As the holder: whether one thread at most waits there. */
	bool (*few)(void *place);
	/*
	 * As the holder: gives the lock to a thread that waits there. False if there is none. If true, this was the last
	 * access to the lock's memory.
	 */
	bool (*grant)(void *place, enum wait wait);
	/* Makes it a place where nobody waits. */
	void (*clear)(void *place);
};

static inline uint32_t tour_groups(uint32_t places)
{
	return (places + TOUR_GROUP - 1) / TOUR_GROUP;
}

/* Where the places begin: behind the marks, on a line of their own. */
static inline size_t tour_offset(uint32_t places)
{
	return (sizeof(struct tour) + tour_groups(places) * sizeof(uint64_t) + 63) / 64 * 64;
}

static inline W_ATOMIC(uint64_t) *tour_marks(struct tour *tour, uint32_t group)
{
	return (W_ATOMIC(uint64_t) *)(tour + 1) + group;
}

static inline void *tour_place(struct tour *tour, const struct tour_kind *kind, uint32_t place)
{
	return (char *)tour + tour_offset(tour->places) + place * kind->bytes;
}

static inline uint32_t tour_places(void)
{
	return w_cpu_count() < TOUR_MOST ? w_cpu_count() : TOUR_MOST;
}

static inline size_t tour_size(const struct tour_kind *kind)
{
	return tour_offset(tour_places()) + tour_places() * kind->bytes;
}

/* Makes @tour of zeroed bytes, as many as tour_size() says. */
static inline void tour_init(struct tour *tour)
{
	tour->places = tour_places();
	generation_settle(&tour->generation);
}

/* The place of the CPU that the caller runs on. */
static inline uint32_t tour_here(struct tour *tour)
{
	uint32_t position = w_route_position();

	return position < tour->places ? position : position % tour->places;
}

/* In a forked child: drops the waiters that do not exist here. */
static inline void tour_drop_waiters(struct tour *tour, const struct tour_kind *kind)
{
	if (w_likely(!generation_claim(&tour->generation)))
		return;
	for (uint32_t place = 0; place < tour->places; place++)
		kind->clear(tour_place(tour, kind, place));
	/* relaxed, both: [G4] publishes them, and nobody marks until then */
	for (uint32_t group = 0; group < tour_groups(tour->places); group++)
		w_store_relaxed(tour_marks(tour, group), 0);
	(void)w_fetch_and_relaxed(&tour->word, TOUR_HELD);
	generation_settle(&tour->generation);
}

/* ---- Waiters ---- */

/* Takes @tour's lock if it is free. */
static inline bool tour_try_acquire(struct tour *tour)
{
	uint64_t seen = 0;

	/* [Y1] acquire: pairs with [Y2], [Y3]; the last holder's critical section */
	if (!w_compare_exchange_acquire(&tour->word, &seen, TOUR_HELD))
		return false;
	tour->at = tour_here(tour);
	return true;
}

/* Takes @tour's lock by polling until the deadline. */
static W_SLOW bool tour_poll(struct tour *tour, const struct w_deadline *deadline)
{
	do {
		if (tour_try_acquire(tour))
			return true;
		/* [Y4] acquire: pairs with nothing; tour_try_acquire reads again */
		(void)w_wait_acquire(&tour->word, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	w_event(abandon);
	return false;
}

/*
 * Marks @place, where the caller waits now. True if the lock was free: it is the caller's, who has to hand it over, and the
 * tour is right before @place.
 */
static inline bool tour_mark(struct tour *tour, uint32_t place)
{
	uint64_t group = 1ull << place / TOUR_GROUP;

	/* [Y5] release: pairs with [Y7]; our being at the place */
	(void)w_fetch_or_release(tour_marks(tour, place / TOUR_GROUP), 1ull << place % TOUR_GROUP);
	/* [Y6] acq_rel: acquire pairs with [Y2], [Y3]: the last holder's critical section. Release pairs with [Y8]: our mark */
	if (w_fetch_or_acq_rel(&tour->word, TOUR_HELD | group) & TOUR_HELD)
		return false;
	tour->at = (place ? place : tour->places) - 1;
	return true;
}

/* ---- The holder ---- */

/* Takes away the mark of @place, where one thread at most waits, unless more are found to have come. */
static inline void tour_unmark(struct tour *tour, const struct tour_kind *kind, uint32_t place)
{
	uint64_t mark = 1ull << place % TOUR_GROUP;

	/* [Y7] acquire: pairs with [Y5]; those that marked before are found at the place */
	(void)w_fetch_and_acquire(tour_marks(tour, place / TOUR_GROUP), ~mark);
	if (kind->few(tour_place(tour, kind, place)))
		return;
	w_event(recheck);
	/* relaxed: only holders act on it, and each hand-over orders it */
	(void)w_fetch_or_relaxed(tour_marks(tour, place / TOUR_GROUP), mark);
}

/* Takes away the bit of @group, where no mark was seen, unless there is one after all. */
static inline void tour_clear_group(struct tour *tour, uint32_t group)
{
	/* [Y8] acquire: pairs with [Y6]; the marks of those that set it before */
	(void)w_fetch_and_acquire(&tour->word, ~(1ull << group));
	/* relaxed, both: as in tour_unmark; [Y8] orders what matters */
	if (w_load_relaxed(tour_marks(tour, group))) {
		w_event(recheck);
		(void)w_fetch_or_relaxed(&tour->word, 1ull << group);
	}
}

/* The first marked place of those from @from on that belong to @groups, or TOUR_NOBODY. */
static inline uint32_t tour_find(struct tour *tour, uint64_t groups, uint32_t from)
{
	uint64_t marks;
	uint32_t group;

	for (groups &= ~0ull << from / TOUR_GROUP; groups; groups &= groups - 1) {
		group = (uint32_t)__builtin_ctzll(groups);
		/* relaxed: a mark says only where to look */
		marks = w_load_relaxed(tour_marks(tour, group));
		if (!marks)
			tour_clear_group(tour, group);
		if (group == from / TOUR_GROUP)
			marks &= ~0ull << from % TOUR_GROUP;
		if (marks)
			return group * TOUR_GROUP + (uint32_t)__builtin_ctzll(marks);
	}
	return TOUR_NOBODY;
}

/* The next marked place behind that which the tour is at, itself the last, or TOUR_NOBODY. */
static inline uint32_t tour_next(struct tour *tour)
{
	/* relaxed: what it misses, the compare-exchange to 0 does not */
	uint64_t groups = w_load_relaxed(&tour->word) & ~TOUR_HELD;
	uint32_t place = tour_find(tour, groups, tour->at + 1);

	return place == TOUR_NOBODY ? tour_find(tour, groups, 0) : place;
}

/* As the holder, gives the lock to the next waiter on the tour, or makes it free if there is none. */
static inline void tour_hand_over(struct tour *tour, const struct tour_kind *kind, enum wait wait)
{
	uint64_t seen;
	uint32_t next;
	void *place;

	tour_drop_waiters(tour, kind);
	for (;;) {
		next = tour_next(tour);
		if (next == TOUR_NOBODY) {
			seen = TOUR_HELD;
			/* [Y3] release: pairs with [Y1], [Y6]; our critical section */
			if (w_compare_exchange_release(&tour->word, &seen, 0))
				return;
			continue;
		}
		tour->at = next;
		place = tour_place(tour, kind, next);
		if (kind->few(place))
			tour_unmark(tour, kind, next);
		if (kind->grant(place, wait))
			return;
	}
}

/* Makes the lock free if it is held and nobody waits. Else false, and *@held says whether it is held. */
static inline bool tour_leave(struct tour *tour, bool *held)
{
	uint64_t seen = TOUR_HELD;

	/* [Y2] release: pairs with [Y1], [Y6]; our critical section */
	if (w_likely(w_compare_exchange_release(&tour->word, &seen, 0)))
		return true;
	*held = seen & TOUR_HELD;
	return false;
}

#endif
