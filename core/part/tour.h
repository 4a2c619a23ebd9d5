/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tour: who is next, where threads wait at places along a route and the lock goes round. Only the search is here;
 * how several threads wait at one place is the lock's (ron.h, ron_ticket.h, ron_plock.h).
 *
 * From: Lo, Lin, Hsieh, Lin, Fang, Lin, Huang, Lam, Chang, "RON: one-way circular shortest routing to achieve efficient
 * and bounded-waiting spinlocks", OSDI'23, algorithms 1 to 3, which share this part.
 * Changed, and why:
 *  - One word has the lock's InUse (HELD) and a bit for each group of places: somebody may wait there. So a search reads
 *    only the lines of such groups, and a lock becomes free by one compare-exchange that fails if anybody has come; this is
 *    the last access to its memory. The algorithms scan and then clear InUse: they miss who comes in between, which only those
 *    notice that spin on InUse; and a scan repeated after the clearing would touch a lock that its next owner may have freed.
 *  - The word is written only when a bit changes: while many wait, all have a copy of it, and a hand-over is what it is in
 *    algorithm 1: a place is read, then written.
 *  - A thread says that it waits after it has entered its place, so that a search never waits for a thread which has announced
 *    itself but is not there yet (algorithm 2's nWait and ticket).
 *  - Who finds the lock free when saying so hands it over, its own place being the first on the tour: others may be there.
 *  - A thread waits at the place it came to, for as long as it waits, wherever it runs meanwhile. A search begins behind
 *    the place that the lock was taken at, not where the holder runs now: holders that move could else keep the tour
 *    going over the same places.
 *
 * Promises: a waiter's place is passed by each other place once before it is served. Bytes: 128 and the places.
 *
 *   word   HELD | a bit for each group of places: somebody may wait there. A group has 8 places, or more where there are
 *          more than 504
 *
 *   0                  free, legal to take by anybody
 *   HELD               held, nobody waits
 *   HELD | groups      held, and each thread that waits, and has said so, is in one of the groups
 *
 *   0 ──newcomer, or who comes to wait──▶ HELD ──who comes──▶ HELD | groups ──holder, who finds a group empty──▶ HELD ──▶ 0
 *
 * Anybody may set groups; only the holder clears them, and looks again afterwards: who came before the clearing is seen
 * then, who comes later sees that the bit is gone, and sets it. A bit without a waiter costs a look; a waiter without a bit is
 * about to set it.
 */
#ifndef POUNDLOCK_TOUR_H
#define POUNDLOCK_TOUR_H

#include "part/generation.h"
#include "part/wait.h"

#define TOUR_GROUP_SHIFT 3u /* of the least groups: 8 places, about a line */
#define TOUR_GROUPS 63u
#define TOUR_HELD (1ull << 63)
#define TOUR_MOST (TOUR_GROUPS << 6) /* places; CPUs beyond share theirs */
#define TOUR_NOBODY UINT32_MAX

struct tour {
	/* Read by all who come, and written only when a group's bit is set or taken away, or the lock taken or freed. */
	W_ATOMIC(uint64_t) word;
	W_ATOMIC(uint32_t) generation;
	uint16_t places;
	uint16_t shift; /* a group is so many places, as a power of two */
	char line[48];
	uint32_t at; /* where the tour is: the place that the lock was taken at. The holder's, who writes it soon */
};

/* What a lock says of its places. */
struct tour_kind {
	size_t bytes; /* of each */
	/* As the holder: whether somebody waits there. */
	bool (*waits)(void *place);
	/*
	 * As the holder: gives the lock to a thread that waits there. False if they have gone since. If true, this was the
	 * last access to the lock's memory.
	 */
	bool (*grant)(void *place, enum wait wait);
	/* Makes it a place where nobody waits. */
	void (*clear)(void *place);
};

/* Where the places begin: on a line of their own. */
static inline size_t tour_offset(void)
{
	return (sizeof(struct tour) + 63) / 64 * 64;
}

static inline void *tour_place(struct tour *tour, const struct tour_kind *kind, uint32_t place)
{
	return (char *)tour + tour_offset() + place * kind->bytes;
}

static inline uint32_t tour_places(void)
{
	return w_cpu_count() < TOUR_MOST ? w_cpu_count() : TOUR_MOST;
}

static inline size_t tour_size(const struct tour_kind *kind)
{
	return tour_offset() + tour_places() * kind->bytes;
}

/* Makes @tour of zeroed bytes, as many as tour_size() says. */
static inline void tour_init(struct tour *tour)
{
	tour->places = (uint16_t)tour_places();
	tour->shift = TOUR_GROUP_SHIFT;
	while ((uint32_t)tour->places > TOUR_GROUPS << tour->shift)
		tour->shift++;
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
	/* relaxed: [GENERATION-3] publishes it, and nobody waits until then */
	(void)w_fetch_and_relaxed(&tour->word, TOUR_HELD);
	generation_settle(&tour->generation);
}

/* ---- Waiters ---- */

/* Takes @tour's lock if it is free. */
static inline bool tour_try_acquire(struct tour *tour)
{
	uint64_t seen = 0;

	/* relaxed: spares the line that all who wait look at. [TOUR-1] acquire: pairs with
	 * [TOUR-7], [TOUR-6]; the last holder's critical section */
	if (w_load_relaxed(&tour->word) || !w_compare_exchange_acquire(&tour->word, &seen, TOUR_HELD))
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
		/* [TOUR-2] acquire: pairs with nothing; tour_try_acquire reads again */
		(void)w_wait_acquire(&tour->word, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	w_event(abandon);
	return false;
}

/*
 * Says that somebody waits in the group of @place, where the caller is now. True if the lock was free: it is the caller's,
 * who has to hand it over, and the tour is right before @place.
 */
static inline bool tour_mark(struct tour *tour, uint32_t place)
{
	uint64_t group = 1ull << (place >> tour->shift);

	/* [TOUR-3] fence: with [TOUR-5]: either we see that the bit is taken away, or who takes it
	 * sees us */
	w_fence_seq_cst();
	/* relaxed: [TOUR-3]; a bit that is set says HELD, too */
	if (w_load_relaxed(&tour->word) & group)
		return false;
	/* [TOUR-4] acquire: pairs with [TOUR-7], [TOUR-6]; the last holder's critical section */
	if (w_fetch_or_acquire(&tour->word, TOUR_HELD | group) & TOUR_HELD)
		return false;
	tour->at = (place ? place : tour->places) - 1;
	return true;
}

/* ---- The holder ---- */

/* The first of the places from @from to the end of their group at which somebody waits, or TOUR_NOBODY. */
static inline uint32_t tour_scan(struct tour *tour, const struct tour_kind *kind, uint32_t from)
{
	uint32_t end = ((from >> tour->shift) + 1) << tour->shift;

	for (; from < end && from < tour->places; from++)
		if (kind->waits(tour_place(tour, kind, from)))
			return from;
	return TOUR_NOBODY;
}

/* As tour_scan, of the whole @group, whose bit is taken away if nobody waits there. */
static inline uint32_t tour_scan_group(struct tour *tour, const struct tour_kind *kind, uint32_t group)
{
	uint32_t found = tour_scan(tour, kind, group << tour->shift);

	if (found != TOUR_NOBODY)
		return found;
	/* relaxed: the fence orders it */
	(void)w_fetch_and_relaxed(&tour->word, ~(1ull << group));
	/* [TOUR-5] fence: with [TOUR-3], as there */
	w_fence_seq_cst();
	found = tour_scan(tour, kind, group << tour->shift);
	if (found != TOUR_NOBODY) {
		w_event(recheck);
		/* relaxed: only holders act on it, and each hand-over orders it */
		(void)w_fetch_or_relaxed(&tour->word, 1ull << group);
	}
	return found;
}

/* As tour_scan_group, of all @groups in turn. */
static inline uint32_t tour_scan_groups(struct tour *tour, const struct tour_kind *kind, uint64_t groups)
{
	uint32_t found = TOUR_NOBODY;

	for (; groups && found == TOUR_NOBODY; groups &= groups - 1)
		found = tour_scan_group(tour, kind, (uint32_t)__builtin_ctzll(groups));
	return found;
}

/* The first place behind @at, itself the last, at which somebody waits, or TOUR_NOBODY. */
static inline uint32_t tour_next(struct tour *tour, const struct tour_kind *kind, uint32_t at)
{
	/* relaxed: what it misses, the compare-exchange to 0 does not */
	uint64_t groups = w_load_relaxed(&tour->word) & ~TOUR_HELD;
	uint64_t own = 1ull << (at >> tour->shift), later = ~(own | (own - 1));
	uint32_t found = TOUR_NOBODY;

	if (groups & own && (at + 1) >> tour->shift == at >> tour->shift)
		found = tour_scan(tour, kind, at + 1);
	if (found == TOUR_NOBODY)
		found = tour_scan_groups(tour, kind, groups & later);
	if (found == TOUR_NOBODY)
		found = tour_scan_groups(tour, kind, groups & ~later);
	return found;
}

/* As the holder, gives the lock to the next waiter on the tour, or makes it free if there is none. */
static inline void tour_hand_over(struct tour *tour, const struct tour_kind *kind, enum wait wait)
{
	uint32_t next = tour->at;
	uint64_t seen;

	tour_drop_waiters(tour, kind);
	for (;;) {
		next = tour_next(tour, kind, next);
		if (next == TOUR_NOBODY) {
			next = tour->at;
			seen = TOUR_HELD;
			/* [TOUR-6] release: pairs with [TOUR-1], [TOUR-4]; our critical section */
			if (w_compare_exchange_release(&tour->word, &seen, 0))
				return;
		} else if (kind->grant(tour_place(tour, kind, next), wait)) {
			return;
		}
	}
}

/* Notes that the lock was handed to the caller at @place, and has ready what the next hand-over looks at first. */
static inline void tour_arrive(struct tour *tour, const struct tour_kind *kind, uint32_t place)
{
	tour->at = place;
	w_prefetch(tour_place(tour, kind, place + 1 < tour->places ? place + 1 : 0));
}

/* Makes the lock free if it is held and nobody waits. Else false, and *@held says whether it is held. */
static inline bool tour_leave(struct tour *tour, bool *held)
{
	/* relaxed: spares the line that all who wait look at */
	uint64_t seen = w_load_relaxed(&tour->word);

	/* [TOUR-7] release: pairs with [TOUR-1], [TOUR-4]; our critical section */
	if (w_likely(seen == TOUR_HELD && w_compare_exchange_release(&tour->word, &seen, 0)))
		return true;
	*held = seen & TOUR_HELD;
	return false;
}

#endif
