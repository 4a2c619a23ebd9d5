/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stays (core/part/stay.h): a lock that is nothing but a tour with stays, at places of ron_ticket.
 * No holder misses a waiter, and nobody is bypassed by more holders of another domain than a stay
 * has. shfl_ron.h has the same hand-over, but frees the lock for its mutex.
 *
 * The clock is any: a stay may end after each lap.
 */
#include <stdint.h>

/* Two times, further apart than any stay lasts. */
#define CHECK_NOW() \
	(CHECK_DO("now", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) ? UINT64_C(1) << 30 : UINT64_C(0))

#define LOCK ron_ticket

#include "part/stay.h"
#include "ron_ticket.h"

#include "check.h"
#include "clients.h"
#include "entry.h"

#define BOUND 2u

struct memory {
	uint32_t cell;
	_Alignas(64) struct ron_ticket lock; /* and its places */
};

struct notes {
	uint32_t count;
	uint32_t turns; /* of lock_in_turns() */
};

#define SHARED_BYTES (offsetof(struct memory, lock) + 1024)
#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

static void prepare(void)
{
	struct tour *tour = &M->lock.tour;

	check_assert(offsetof(struct memory, lock) + ron_ticket_size() <= SHARED_BYTES);
	ron_ticket_init(&M->lock, ron_ticket_size());
	stay_init(tour);
	for (uint32_t place = 0; place < tour->places; place++)
		check_queue(&((struct tickets *)tour_place(tour, place))->next);
}

/* Returns the place where the caller got the lock. */
static uint32_t take(enum wait wait)
{
	uint32_t at;

	check_acquires();
	at = tour_try_acquire(&M->lock.tour) ? M->lock.tour.at : ron_ticket_wait(&M->lock, wait);
	check_acquired(true);
	return at;
}

static void give(uint32_t at, enum wait wait)
{
	struct tour *tour = &M->lock.tour;
	const uint32_t next = stay_next(tour, &ron_ticket_kind, at, BOUND);

	if (next == TOUR_NOBODY) {
		tour->at = at;
		ron_ticket_release(&M->lock, (struct ron_ticket_policy){wait});
		return;
	}
	w_event(handover_gate);
	stay_go(tour, at, next);
	(void)ron_ticket_grant(tour_place(tour, next), wait);
}

static void lock_and_unlock(enum wait wait)
{
	const uint32_t at = take(wait);

	M->cell++;
	NOTES->count++;
	give(at, wait);
}

/*
 * Two threads of one domain lock three times each. Each of them keeps the lock until the other one
 * waits as well, except the last.
 */
static void lock_in_turns(enum wait wait)
{
	struct tickets *place = tour_place(&M->lock.tour, 0);
	uint32_t at, serving;

	for (uint32_t round = 0; round < 3; round++) {
		at = take(wait);
		M->cell++;
		serving = w_load_relaxed(&place->serving) & ~TICKETS_SLEEPERS;
		if (++NOTES->turns < 6) {
			(void)w_wait_acquire(&place->next, VAL != serving, W_YIELD, NULL);
			(void)w_wait_acquire(&M->lock.tour.word, VAL & ~TOUR_HELD, W_YIELD, NULL);
		}
		NOTES->count++;
		give(at, wait);
	}
}

WAYS(lock_1, lock_and_unlock(wait))
WAYS(lock_2, TWICE(lock_and_unlock(wait)))
WAYS(in_turns, if (self == 1) lock_and_unlock(wait); else lock_in_turns(wait))

static void finish(void)
{
	check_outcome(0, NOTES->count);
	check_assert(M->cell == NOTES->count);
	check_assert(!M->lock.tour.word);
}

const struct check_client check_clients[] = {
	/* Each thread is the only one of its domain. */
	ENTRIES("2x2", lock_2, 2, "handover_gate", "4", prepare, finish),
	/* Those with an even number share a place. */
	ENTRY("3x1/spin", lock_1_spin, 3, "handover_gate", "3", prepare, finish, .cpus = 2),
	ENTRY("3x1/park", lock_1_park, 3, "handover_gate", "3", prepare, finish, .cpus = 2),
	ENTRY("4x1/spin", lock_1_spin, 4, "handover_gate", "4", prepare, finish, .cpus = 2,
	      .flags = CHECK_CLIENT_COMPLETE),
	ENTRY("one_domain/3x1/spin", lock_1_spin, 3, "handover_gate", "3", prepare, finish,
	      .domains = 1),
	/* The first holder of a stay bypasses nobody. */
	ENTRY("order/3/spin", in_turns_spin, 3, "handover_gate", "7", prepare, finish, .cpus = 2,
	      ORDERED_SINCE(contended, BOUND - 1)),
	{.name = NULL},
};
