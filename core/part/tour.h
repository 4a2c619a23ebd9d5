/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The tour: the order of a lock whose waiters wait at places along a route, and which travels round
 * it. This header finds the next waiter; the lock defines how threads wait at one place (ron.h,
 * ron_ticket.h, ron_plock.h).
 *
 * From: Lo, Lin, Hsieh, Lin, Fang, Lin, Huang, Lam, Chang, "RON: one-way circular shortest routing
 * to achieve efficient and bounded-waiting spinlocks", OSDI'23. Algorithms 1 to 3 share this part.
 *
 * Promise: each other place is served at most once before a waiter's place is served. 128 bytes,
 * and a cache line of 64 per place.
 *
 *   word = HELD | groups
 *     HELD    the lock is held
 *     groups  one bit per group of places: a thread may wait there. A group has 8 places, or more
 *             if there are more than 504
 *
 *   0                  free: any thread may take the lock
 *   HELD               held, no waiters
 *   HELD | groups      held; each announced waiter is in one of the groups
 *
 *   0 ──newcomer, or a waiter that announces itself──▶ HELD ──waiter──▶ HELD | groups
 *   HELD | groups ──holder that finds a group empty──▶ HELD ──▶ 0
 *
 * Any thread sets group bits. Only the holder clears them, and it looks again afterwards: a waiter
 * that came before the clearing is found then, and one that comes later sees the cleared bit and
 * sets it. A bit without a waiter costs one search; a waiter without a bit is about to set it.
 *
 * Departures from the paper:
 *  - One word holds the lock's InUse (HELD) and a bit per group of places. A search reads only the
 *    lines of groups whose bit is set, and the lock becomes free by one compare-exchange, which
 *    fails if a waiter has come; this is the last access to its memory. The algorithms scan and
 *    then clear InUse: they miss a waiter that comes in between, which only a waiter spinning on
 *    InUse survives. A second scan after the clearing would touch a lock that its next owner may
 *    have freed.
 *  - The word is written only when a bit changes. While many threads wait, all caches have a copy,
 *    and a hand-over costs as much as in algorithm 1: it reads one place and writes it.
 *  - A thread announces itself after it has entered its place. So a search never waits for a thread
 *    that has announced itself but has not arrived (algorithm 2's nWait and ticket).
 *  - A thread that finds the lock free while announcing itself hands it over, with its own place
 *    first on the tour: other waiters may be there.
 *  - A thread waits at the place where it arrived, wherever it runs meanwhile. A search begins
 *    behind the place where the lock was taken, not where the holder runs now. Otherwise holders
 *    that migrate could keep the tour going round the same places.
 *  - A place has a cache line of its own: a thread that arrives does not take the line of another
 *    waiter from a holder that is about to search or grant. If few threads wait, a search reads
 *    several lines. So it requests those of a group together.
 *  - A new holder prefetches the place that got the lock from there last time, where its search
 *    usually ends.
 */
#ifndef POUNDLOCK_TOUR_H
#define POUNDLOCK_TOUR_H

#include "part/generation.h"
#include "part/wait.h"

#define TOUR_GROUP_SHIFT 3u /* smallest group: 8 places */
#define TOUR_GROUPS 63u
#define TOUR_HELD (1ull << 63)
#define TOUR_MOST (TOUR_GROUPS << 6) /* places; further CPUs share them */
#define TOUR_NOBODY UINT32_MAX

/* Of part/stay.h. Both are read and written as a whole, so that a hand-over has few accesses. */
union tour_domain {
	struct {
		uint16_t first, end; /* its places, from `first` to before `end` */
	};
	uint32_t whole;
};
union tour_stay {
	struct {
		uint16_t lap;   /* the first place of the lap */
		uint16_t laps;  /* of the stay, before this one */
		uint32_t began; /* when the stay did, as wait_clock() */
	};
	uint64_t whole;
};

/* A place. Only holders access what is behind `waiters`. */
struct tour_place {
	W_OWN_LINE uintptr_t waiters[2]; /* what the lock keeps here, at first zero */
	uint32_t after;                  /* the place that got the lock from here last time */
	union tour_domain domain;        /* that the place is in */
	union tour_stay stay;            /* in which the lock came here last time */
};
#define TOUR_PLACE_BYTES sizeof(((struct tour_place *)NULL)->waiters)

struct tour {
	/*
	 * Read by all arriving threads; written only when a group's bit changes or the lock is
	 * taken or freed.
	 */
	W_ATOMIC(uint64_t) word;
	W_ATOMIC(uint32_t) generation;
	uint16_t places;
	uint16_t shift; /* log2 of the places per group */
	char line[48];
	/*
	 * the place where the lock was taken. Written only by the holder, soon after each
	 * hand-over; by that of shfl_ron.h only if the thread cannot remember the place
	 */
	uint32_t at;
	/* of shfl_ron.h: each hand-over reads it, and none writes it */
	struct tour_own {
		bool holds;  /* whether the gate's holder holds the mutex, too */
		bool gate;   /* whether waiters are to go to the gate */
		bool drains; /* whether a trial waits for the mutex's queue to end */
	} own;
};

/* The lock's operations on its places. */
struct tour_kind {
	/* As the holder: returns whether a thread waits at @place. */
	bool (*waits)(void *place);
	/*
	 * As the holder: gives the lock to a thread that waits at @place. Returns false if all have
	 * left. If it returns true, it was the last access to the lock's memory.
	 */
	bool (*grant)(void *place, enum wait wait);
	/* Makes @place empty. */
	void (*clear)(void *place);
};

/* Offset of the places, which start on a cache line of their own. */
static inline size_t tour_offset(void)
{
	return (sizeof(struct tour) + 63) / 64 * 64;
}

static inline struct tour_place *tour_line(struct tour *tour, uint32_t place)
{
	return (struct tour_place *)((char *)tour + tour_offset()) + place;
}

/* Returns the lock's part of @place. */
static inline void *tour_place(struct tour *tour, uint32_t place)
{
	return tour_line(tour, place)->waiters;
}

static inline uint32_t tour_places(void)
{
	return w_cpu_count() < TOUR_MOST ? w_cpu_count() : TOUR_MOST;
}

static inline size_t tour_size(void)
{
	return tour_offset() + tour_places() * sizeof(struct tour_place);
}

/* Initialises @tour in tour_size() zeroed bytes. */
static inline void tour_init(struct tour *tour)
{
	tour->places = (uint16_t)tour_places();
	tour->shift = TOUR_GROUP_SHIFT;
	while ((uint32_t)tour->places > TOUR_GROUPS << tour->shift)
		tour->shift++;
	generation_settle(&tour->generation);
}

/* The place of the current CPU. */
static inline uint32_t tour_here(struct tour *tour)
{
	uint32_t position = w_route_position();

	return position < tour->places ? position : position % tour->places;
}

/* Discards the parent's waiters, after generation_claim(). @kept: TOUR_HELD; 0: also the holder. */
static inline void tour_repair(struct tour *tour, const struct tour_kind *kind, uint64_t kept)
{
	for (uint32_t place = 0; place < tour->places; place++)
		kind->clear(tour_place(tour, place));
	/* relaxed: [GENERATION-3] publishes it; nobody waits before that */
	(void)w_fetch_and_relaxed(&tour->word, kept);
	generation_settle(&tour->generation);
}

/* In a forked child, discards the parent's waiters. */
static inline void tour_drop_waiters(struct tour *tour, const struct tour_kind *kind)
{
	if (w_unlikely(generation_claim(&tour->generation)))
		tour_repair(tour, kind, TOUR_HELD);
}

/* ---- Waiters ---- */

/* 0 -> HELD. */
static inline bool tour_try_acquire(struct tour *tour)
{
	uint64_t seen = 0;

	/*
	 * relaxed: avoids taking the line that all waiters read. [TOUR-1] acquire: pairs with
	 * [TOUR-7], [TOUR-6]; the previous critical section
	 */
	if (w_load_relaxed(&tour->word) ||
	    !w_compare_exchange_acquire(&tour->word, &seen, TOUR_HELD))
		return false;
	tour->at = tour_here(tour);
	return true;
}

/* Polls @tour's lock until the deadline. */
static W_SLOW bool tour_poll(struct tour *tour, const struct w_deadline *deadline)
{
	do {
		if (tour_try_acquire(tour))
			return true;
		/* [TOUR-2] acquire: pairs with nothing; tour_try_acquire() reads the word again */
		(void)w_wait_acquire(&tour->word, !VAL, W_YIELD, deadline);
	} while (!w_expired(deadline));
	w_event(abandon);
	return false;
}

/*
 * * -> HELD | group: announces a waiter at @place, where the caller has entered already. Returns
 * true if the lock was free: the caller then holds it and has to hand it over, starting at @place.
 */
static inline bool tour_mark(struct tour *tour, uint32_t place)
{
	uint64_t group = 1ull << (place >> tour->shift);

	/*
	 * [TOUR-3] fence: with [TOUR-5]: either we see the bit cleared, or the thread that cleared
	 * it sees us
	 */
	w_fence_seq_cst();
	/* relaxed: [TOUR-3] orders it; a set group bit implies HELD */
	if (w_load_relaxed(&tour->word) & group)
		return false;
	/* [TOUR-4] acquire: pairs with [TOUR-7], [TOUR-6]; the previous critical section */
	if (w_fetch_or_acquire(&tour->word, TOUR_HELD | group) & TOUR_HELD)
		return false;
	tour->at = (place ? place : tour->places) - 1;
	return true;
}

/* ---- The holder ---- */

/* Returns the end of the group of @place. */
static inline uint32_t tour_end(const struct tour *tour, uint32_t place)
{
	const uint32_t end = ((place >> tour->shift) + 1) << tour->shift;

	return end < tour->places ? end : tour->places;
}

/* Prefetches the places from @from to before @end. */
static inline void tour_request(struct tour *tour, uint32_t from, uint32_t end)
{
	for (; from < end; from++)
		w_prefetch(tour_line(tour, from));
}

/*
 * Returns the first place from @from to before @end, in one group, where a thread waits, or
 * TOUR_NOBODY. If nobody waits at @from, requests the lines of the other places together.
 */
static inline uint32_t tour_scan(struct tour *tour, const struct tour_kind *kind, uint32_t from,
				 uint32_t end)
{
	for (uint32_t place = from; place < end; place++) {
		if (kind->waits(tour_place(tour, place)))
			return place;
		if (place == from)
			tour_request(tour, from + 1, end);
	}
	return TOUR_NOBODY;
}

/* As tour_scan() of the whole @group; clears the group's bit if nobody waits there. */
static inline uint32_t tour_scan_group(struct tour *tour, const struct tour_kind *kind,
				       uint32_t group)
{
	const uint32_t from = group << tour->shift, end = tour_end(tour, from);
	uint32_t found = tour_scan(tour, kind, from, end);

	if (found != TOUR_NOBODY)
		return found;
	/* relaxed: the fence orders it */
	(void)w_fetch_and_relaxed(&tour->word, ~(1ull << group));
	/* [TOUR-5] fence: with [TOUR-3], as there */
	w_fence_seq_cst();
	found = tour_scan(tour, kind, from, end);
	if (found != TOUR_NOBODY) {
		w_event(recheck);
		/* relaxed: only holders act on it, and each hand-over orders it */
		(void)w_fetch_or_relaxed(&tour->word, 1ull << group);
	}
	return found;
}

/* As tour_scan_group() of each of @groups in turn. */
static inline uint32_t tour_scan_groups(struct tour *tour, const struct tour_kind *kind,
					uint64_t groups)
{
	uint32_t found = TOUR_NOBODY;

	for (; groups && found == TOUR_NOBODY; groups &= groups - 1)
		found = tour_scan_group(tour, kind, (uint32_t)__builtin_ctzll(groups));
	return found;
}

/*
 * Returns the first place behind @at, which itself comes last, where a thread waits, or
 * TOUR_NOBODY.
 */
static inline uint32_t tour_next(struct tour *tour, const struct tour_kind *kind, uint32_t at)
{
	/* relaxed: the compare-exchange to 0 notices what this misses */
	uint64_t groups = w_load_relaxed(&tour->word) & ~TOUR_HELD;
	uint64_t own = 1ull << (at >> tour->shift), later = ~(own | (own - 1));
	uint32_t found = TOUR_NOBODY;

	if (groups & own && (at + 1) >> tour->shift == at >> tour->shift)
		found = tour_scan(tour, kind, at + 1, tour_end(tour, at));
	if (found == TOUR_NOBODY)
		found = tour_scan_groups(tour, kind, groups & later);
	if (found == TOUR_NOBODY)
		found = tour_scan_groups(tour, kind, groups & ~later);
	return found;
}

/*
 * As the holder, before the lock goes from @place to @next: remembers that for tour_look_ahead(). A
 * world without prefetches defines it.
 */
#ifndef tour_remember
static inline void tour_remember(struct tour *tour, uint32_t place, uint32_t next)
{
	if (tour_line(tour, place)->after != next)
		tour_line(tour, place)->after = next;
}
#endif

/* As the holder: gives the lock to the next waiter on the tour. Returns false if there is none. */
static inline bool tour_pass(struct tour *tour, const struct tour_kind *kind, enum wait wait)
{
	uint32_t next = tour->at;

	while ((next = tour_next(tour, kind, next)) != TOUR_NOBODY) {
		tour_remember(tour, tour->at, next);
		if (kind->grant(tour_place(tour, next), wait))
			return true;
	}
	return false;
}

/* As the holder: gives the lock to the next waiter on the tour, or HELD -> 0 if there is none. */
static inline void tour_hand_over(struct tour *tour, const struct tour_kind *kind, enum wait wait)
{
	uint64_t seen;

	tour_drop_waiters(tour, kind);
	while (!tour_pass(tour, kind, wait)) {
		seen = TOUR_HELD;
		/* [TOUR-6] release: pairs with [TOUR-1], [TOUR-4]; our critical section */
		if (w_compare_exchange_release(&tour->word, &seen, 0))
			return;
	}
}

/*
 * As the holder that got the lock at @place: prefetches the place where it will probably go next.
 */
static inline void tour_look_ahead(struct tour *tour, uint32_t place)
{
	w_prefetch(tour_line(tour, tour_line(tour, place)->after));
}

/* Records that the lock was handed to the caller at @place, and looks ahead. */
static inline void tour_arrive(struct tour *tour, uint32_t place)
{
	tour->at = place;
	tour_look_ahead(tour, place);
}

/* HELD -> 0 if there are no waiters. Otherwise returns false, and *@held is whether it is held. */
static inline bool tour_leave(struct tour *tour, bool *held)
{
	/* relaxed: avoids taking the line that all waiters read */
	uint64_t seen = w_load_relaxed(&tour->word);

	/* [TOUR-7] release: pairs with [TOUR-1], [TOUR-4]; our critical section */
	if (w_likely(seen == TOUR_HELD && w_compare_exchange_release(&tour->word, &seen, 0)))
		return true;
	*held = seen & TOUR_HELD;
	return false;
}

#endif
