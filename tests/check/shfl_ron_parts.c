/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * shfl_ron with its two parts, the gate and the mutex, by their specifications, and with any order.
 * So four threads have few enough states. The parts have clients of their own: ron_ticket,
 * tickets.c, shfl_mutex_word.c and shfl_mutex (docs/verification.md).
 *
 * Any order: the explorer chooses whether a thread waits at the gate or for the mutex, which waiter
 * is next, whether waiters are to go to the gate from then on, and whether a thread remembers that
 * it came through the gate, until it releases the lock.
 */
#include "shfl_ron_gated.h"

/* As in adapter.h. */
#define SHFL_MAX_BATCH 3

#include "choice.h"

/* ---- The gate by its specification ---- */

#define tour_try_acquire tour_try_acquire_itself
#define stay_next stay_next_itself
#define stay_go stay_go_itself
#define ron_ticket_wait ron_ticket_wait_itself
#define ron_ticket_grant ron_ticket_grant_itself
#define ron_ticket_release ron_ticket_release_itself
#include "part/gates.h"
#undef tour_try_acquire
#undef stay_next
#undef stay_go
#undef ron_ticket_wait
#undef ron_ticket_grant
#undef ron_ticket_release

/*
 * A lock of one place. Its holder hands it over to any waiter, and may miss waiters that come.
 *
 *   word = HELD | GRANTED | waiters
 *     HELD     the gate is held
 *     GRANTED  it is handed over: the next waiter that sees it is the holder
 *
 *   0 ──newcomer──▶ HELD ──waiter──▶ HELD | 1 ──holder──▶ HELD | GRANTED | 1 ──waiter──▶ HELD
 */
#define GATE_HELD 1u
#define GATE_GRANTED 2u
#define GATE_WAITER 4u

/* 0 -> HELD, or if the caller @waits, HELD -> HELD | 1. Returns whether it was free. */
static bool enter_gate(struct tour *tour, bool waits)
{
	uint64_t seen = 0;

	do {
		if (!seen && w_compare_exchange_acquire(&tour->word, &seen, GATE_HELD))
			return true;
		if (seen && !waits)
			return false;
	} while (!seen || !w_compare_exchange_relaxed(&tour->word, &seen, seen + GATE_WAITER));
	return false;
}

static bool tour_try_acquire(struct tour *tour)
{
	return enter_gate(tour, false);
}

static uint32_t ron_ticket_wait(struct ron_ticket *lock, enum wait wait)
{
	W_ATOMIC(uint64_t) *word = &lock->tour.word;
	uint64_t seen;

	check_assert(wait == WAIT_PARK);
	if (enter_gate(&lock->tour, true))
		return 0;
	w_event(contended);
	do
		seen = w_wait_acquire(word, VAL & GATE_GRANTED, W_YIELD, NULL);
	while (!w_compare_exchange_acquire(word, &seen, seen - GATE_GRANTED - GATE_WAITER));
	return 0;
}

static bool gate_has_waiters(struct tour *tour)
{
	/* relaxed: as the holder's search */
	return w_load_relaxed(&tour->word) >= GATE_WAITER;
}

static uint32_t stay_next(struct tour *tour, const struct tour_kind *kind, uint32_t at,
			  uint32_t bound)
{
	(void)kind;
	check_assert(at == 0 && bound);
	return gate_has_waiters(tour) && any_choice() ? 0 : TOUR_NOBODY;
}

static void stay_go(struct tour *tour, uint32_t at, uint32_t next)
{
	(void)tour;
	check_assert(at == 0 && next == 0);
}

static bool ron_ticket_grant(void *place, enum wait wait)
{
	struct tour *tour = (struct tour *)((char *)place - tour_offset());

	check_assert(wait == WAIT_PARK && gate_has_waiters(tour));
	(void)w_fetch_or_release(&tour->word, GATE_GRANTED);
	return true;
}

static bool ron_ticket_release(struct ron_ticket *lock, struct ron_ticket_policy policy)
{
	uint64_t seen = GATE_HELD;

	check_assert(policy.wait == WAIT_PARK);
	while (!w_compare_exchange_release(&lock->tour.word, &seen,
					   seen == GATE_HELD ? 0 : seen | GATE_GRANTED))
		;
	return true;
}

/* ---- The mutex by its specification ---- */

#define shfl_mutex_acquire shfl_mutex_acquire_itself
#define shfl_mutex_acquire_slow shfl_mutex_acquire_slow_itself
#define shfl_mutex_release_fair shfl_mutex_release_fair_itself
#include "shfl_mutex.h"
#undef shfl_mutex_acquire
#undef shfl_mutex_acquire_slow
#undef shfl_mutex_release_fair

/* Any thread that waits while the word is not LOCKED takes it. Its other flags stay. */
static bool shfl_mutex_acquire_slow(struct shfl_mutex *lock, struct shfl_mutex_policy policy,
				    const struct w_deadline *deadline)
{
	uint32_t seen;

	check_assert(policy.wait == WAIT_PARK && !deadline);
	do
		seen = w_wait_acquire(&lock->state, !(VAL & SHFL_MUTEX_LOCKED), W_YIELD, NULL);
	while (!w_compare_exchange_acquire(&lock->state, &seen, seen | SHFL_MUTEX_LOCKED));
	/* The mutex's holder may write it. */
	lock->heir = NULL;
	return true;
}

static bool shfl_mutex_acquire(struct shfl_mutex *lock, struct shfl_mutex_policy policy,
			       const struct w_deadline *deadline)
{
	return shfl_mutex_acquire_slow(lock, policy, deadline);
}

static bool shfl_mutex_release_fair(struct shfl_mutex *lock, struct shfl_mutex_policy policy)
{
	/* The holder may read it. */
	check_assert(!lock->heir);
	return shfl_mutex_release(lock, policy);
}

/*
 * Fails: a thread that finds the mutex free is one that comes later, and takes it by
 * shfl_mutex_acquire_slow(). Whether it saw GATE is part of any_choice() in w_has_own_cpu().
 */
static bool fail_to_take(struct shfl_mutex *lock, uint32_t *seen)
{
	(void)lock;
	*seen = ~0u;
	return false;
}
#define shfl_mutex_take_free fail_to_take

/* ---- Any order ---- */

#undef w_has_own_cpu
#define w_has_own_cpu() any_choice()
/* Each waiter is a sample; no change of the way is the same as no sample. */
#undef w_random
#define w_random() 0u
#define shfl_ron_choose(lock, gate, sample)          \
	((void)(lock), (void)(gate), (void)(sample), \
	 any_choice() ? SHFL_RON_AT_GATE : SHFL_RON_SHORT_TURNS)

static void forget(const void *lock);
static bool remembers(const void *lock);

#undef w_remembers
#define w_remembers(lock) remembers(lock)
#undef w_remember
#define w_remember(lock, note) (w_note_set(lock, note), true)
#undef w_forget
#define w_forget(lock) forget(lock)

#include "shfl_ron.h"

/* Forgets that the thread holds @lock through the gate: leaves the place there. */
static void forget(const void *lock)
{
	if (*note_of_thread())
		gates_find(lock)->lock.tour.at = *note_of_thread() / SHFL_RON_NOTE_ONE;
	*note_of_thread() = 0;
}

/* Whether a thread that came through the gate remembers it. */
static bool remembers(const void *lock)
{
	if (*note_of_thread() && any_choice())
		return true;
	forget(lock);
	return false;
}

/* ---- The clients ---- */

static void prepare_parts(void);

#define CLIENTS                                                                                  \
	ENTRY("2x1/park", lock_1_park, 2, "contended handover_gate", "2", prepare_parts, finish, \
	      .flags = CHECK_CLIENT_PROMISES),                                                   \
		ENTRY("2x2/park", lock_2_park, 2, "contended handover_gate", "4", prepare_parts, \
		      finish),                                                                   \
		ENTRY("3x1/park", lock_1_park, 3, "contended handover_gate", "3", prepare_parts, \
		      finish),                                                                   \
		ENTRY("4x1/park", lock_1_park, 4, "contended handover_gate", "4", prepare_parts, \
		      finish, .flags = CHECK_CLIENT_COMPLETE),

#include "lock.c"

static void prepare_parts(void)
{
	prepare();
	check_hint(&gates_find(&M->lock)->mask);
}
