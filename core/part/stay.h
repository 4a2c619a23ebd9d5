/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Stays: a tour (part/tour.h) on which the lock keeps to a domain for several laps. What critical
 * sections write then stays in the caches of that domain.
 *
 * From: the tour is that of Lo et al., RON, OSDI'23. That a lock should keep to where it is comes
 * from Radovic and Hagersten, HBO, HPCA'03, lock cohorting (Dice, Marathe and Shavit, PPoPP'12) and
 * CNA (Dice and Kogan, EuroSys'19, section 3). The combination is ours.
 *
 * Promise: while somebody waits elsewhere, a stay has at most `bound` hand-overs, or one lap if
 * that has more. So a waiter is bypassed by at most that many holders of each other domain, and by
 * as many of its own domain as that has places. No bytes but those of the tour's places, and no
 * atomic operations.
 *
 *   lap    the places of a domain at which threads wait, once each, in the order of the tour
 *   stay   laps in one domain
 *
 *   lap ──the thread at its first place is back, and a further lap is allowed──▶ lap
 *   lap ──otherwise──▶ the next waiter on the tour: another stay
 *
 * The thread at the first place has been away for longest. If it is not back, few others are, and a
 * search for them would touch a line for each.
 *
 * A further lap is allowed within `bound` hand-overs and STAY_TIME. If the stays in all domains
 * together took longer than a waiter spins, waiters would sleep meanwhile, and each stay would
 * begin with a wake-up at each place.
 *
 * The CPUs of a domain are next to each other on the route. If a measured route (docs/route.md)
 * separates them, each part is a domain here.
 */
#ifndef POUNDLOCK_STAY_H
#define POUNDLOCK_STAY_H

#include "part/tour.h"

/*
 * The time within which a stay of several laps is to end, for each place of the domain, in units of
 * wait_clock(). A waiter of W_ORDERED spins for 10 us for each CPU (world/spin.h).
 */
#define STAY_TIME 8u

static inline union tour_domain stay_domain(struct tour *tour, uint32_t place)
{
	return (union tour_domain){.whole = tour_line(tour, place)->domain.whole};
}

static inline union tour_stay stay_at(struct tour *tour, uint32_t place)
{
	return (union tour_stay){.whole = tour_line(tour, place)->stay.whole};
}

/* Initialises the domains of @tour, after tour_init(). */
static inline void stay_init(struct tour *tour)
{
	uint32_t end;

	for (uint32_t first = 0; first < tour->places; first = end) {
		const int32_t domain = w_domain_at(first);

		for (end = first + 1; end < tour->places && w_domain_at(end) == domain;)
			end++;
		for (uint32_t place = first; place < end; place++) {
			tour_line(tour, place)->domain =
				(union tour_domain){{(uint16_t)first, (uint16_t)end}};
			tour_line(tour, place)->stay = (union tour_stay){{.lap = (uint16_t)place}};
		}
	}
}

/*
 * As the holder: returns the first place from @from to before @end where a thread waits, or
 * TOUR_NOBODY.
 */
static inline uint32_t stay_scan(struct tour *tour, const struct tour_kind *kind, uint32_t from,
				 uint32_t end)
{
	/* relaxed: a waiter that this misses is found in a later lap, or by tour_next() */
	const uint64_t groups = w_load_relaxed(&tour->word);
	uint32_t found = TOUR_NOBODY, border;

	for (; from < end && found == TOUR_NOBODY; from = border) {
		border = tour_end(tour, from) < end ? tour_end(tour, from) : end;
		if (groups & 1ull << (from >> tour->shift))
			found = tour_scan(tour, kind, from, border);
	}
	return found;
}

/*
 * As the holder, where a lap of @stay in @domain ends: whether there is a further one, which is
 * expected to take as long as the former ones. @bound: the most hand-overs of several laps.
 */
static inline bool stay_goes_on(struct tour *tour, const struct tour_kind *kind,
				union tour_domain domain, union tour_stay stay, uint32_t bound)
{
	const uint64_t places = domain.end - domain.first, laps = stay.laps + 1u;

	/* In the only domain, a lap is a tour. */
	if (places == tour->places || (laps + 1) * places > bound || laps > UINT16_MAX ||
	    !kind->waits(tour_place(tour, stay.lap)))
		return false;
	return (wait_clock() - stay.began) * (laps + 1) <= STAY_TIME * places * laps;
}

/*
 * As the holder that got the lock at place @at: returns the next place where a thread waits, or
 * TOUR_NOBODY. @bound: as in stay_goes_on().
 */
static inline uint32_t stay_next(struct tour *tour, const struct tour_kind *kind, uint32_t at,
				 uint32_t bound)
{
	const union tour_domain domain = stay_domain(tour, at);
	uint32_t found = stay_scan(tour, kind, at + 1, domain.end);
	union tour_stay stay;

	if (found == TOUR_NOBODY) {
		stay = stay_at(tour, at);
		if (stay_goes_on(tour, kind, domain, stay, bound))
			found = stay_scan(tour, kind, domain.first, stay.lap + 1u);
	}
	return found == TOUR_NOBODY ? tour_next(tour, kind, domain.end - 1u) : found;
}

/* As the holder, before the lock goes from place @at to @next: takes the stay along. */
static inline void stay_go(struct tour *tour, uint32_t at, uint32_t next)
{
	const union tour_domain domain = stay_domain(tour, at);
	union tour_stay stay = stay_at(tour, at);

	if (next < domain.first || next >= domain.end) {
		stay = (union tour_stay){{(uint16_t)next, 0, wait_clock()}};
	} else if (next <= at) {
		stay.lap = (uint16_t)next;
		stay.laps++;
	}
	tour_line(tour, next)->stay.whole = stay.whole;
}

#endif
