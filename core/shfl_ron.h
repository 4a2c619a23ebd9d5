/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ShflLock's mutex with a gate: RON's tour, with stays in each domain (part/stay.h). While that is
 * faster, those who have to wait do so at the gate, and a holder hands the lock over along the tour
 * instead of freeing it. While long turns are faster, threads take those at the mutex.
 *
 * From: Kashyap et al., ShflLock, SOSP'19 (shfl_mutex.h), and Lo et al., RON, OSDI'23, algorithm 2
 * (ron_ticket.h). The combination is ours.
 *
 * Order: as shfl_mutex, or the next on a tour of the CPUs, with several laps in each domain; by
 * trial.
 *
 * Promise: mutual exclusion. Each holder holds the mutex, whose bound on bypass applies. But while
 * the lock is handed over at the gate, the head of the mutex's queue is bypassed by at most as many
 * holders as there are places on the tour. At the gate, the order of arrival at each place, and the
 * bound of part/stay.h with `batch` between places. Waiters sleep under wait=park. 24 bytes per
 * lock, as shfl_mutex, and a gate from the process's table (part/gates.h) once threads contend; a
 * waiter's node as in shfl_mutex, or none at the gate; none per holder. Atomic read-modify-writes:
 * 2 uncontended; at the gate 1 or 2 to wait, 1 more the first time, and none to hand over (1 under
 * wait=park).
 *
 *   the mutex's state = GATE | flags of shfl_mutex
 *     GATE   waiters with a CPU of their own go to the gate. Set by a holder; cleared by a holder
 *            that does not have the gate, or leaves it
 *   holds    the gate's holder holds the mutex, too; GATE is set then
 *
 *   gate   holds   meaning
 *   free   false   as shfl_mutex
 *   held   false   the gate's holder is about to take the mutex, as any newcomer or waiter does, or
 *                  to leave the gate
 *   held   true    the gate's holder holds the mutex
 *
 *   false ──the gate's holder takes the mutex──▶ true ──release, hands both over──▶ true
 *   true ──release, leaves the gate──▶ false, and frees the mutex as shfl_mutex
 *
 * `holds` is written by threads that hold both. So a thread that gets the gate sees whether the
 * mutex comes with it. A hand-over does not touch the mutex's word, whose line is with newcomers:
 * a thread remembers that it came through the gate, and at which place (core/hint.h). So it writes
 * only the place of the next waiter. If the thread forgets, GATE in the word leads it to the gate,
 * where it has left its place (shfl_ron_remember()).
 *
 * Without contention, the lock is a shfl_mutex. A thread that has waited, and had its CPU to
 * itself, counts its acquisitions from then on. So a trial, whose samples are taken where threads
 * wait, knows how many acquisitions there were. Others do not count: where CPUs are shared there
 * are no trials.
 *
 * A thread that takes the mutex for half a millisecond without ever finding it held, while others
 * wait, leaves it to the head of the queue once (world/streak.h); where turns are long, after twice
 * that time. One that is usually away from locks for 5 us or more yields its CPU instead, after
 * every few releases: the head may need it.
 *
 * A newcomer that shares its CPU queues later than in a shfl_mutex, if it is usually away from
 * locks for more than a microsecond: it first races for as long as that, but no longer than it
 * takes to sleep and be woken. Nobody races for a lock that is closed for the head.
 *
 * A thread that is soon back usually waits for others like it. While it spins, it reads the mutex's
 * word rarely, so that they can take it many times in a row.
 *
 * While turns are long, newcomers queue at once, and the head of the queue looks at the mutex once
 * per spin. It takes it if it is free and stays so for a glance, and closes it to newcomers after
 * many times as many looks as its patience; the more wait, the sooner (SHFL_MUTEX_LONG_TURN).
 *
 * Timed waiters and those that share their CPU wait in the mutex's queue. While a trial waits for
 * that queue to end, and whenever a tour or a lap is complete, a release leaves the lock to its
 * head.
 *
 * The gate is left before the mutex is free, since the next holder may destroy the lock.
 *
 * If the memory of a lock is reused without destroying it, the new lock finds the gate of the old
 * one in its last state. If `holds` was set, the first release that finds GATE hands the gate over,
 * or leaves it.
 */
#ifndef POUNDLOCK_SHFL_RON_H
#define POUNDLOCK_SHFL_RON_H

#include "part/gates.h"
#include "shfl_mutex.h"

#define SHFL_RON_GATE 16u /* in the mutex's state */

/*
 * A thread's note.
 *   GATED + place * ONE   it holds the lock, which it got at this place of the tour
 *   count * ONE           how often it released the lock since it waited last
 */
#define SHFL_RON_NOTE_GATED 1u
#define SHFL_RON_NOTE_ONE 2u

struct shfl_ron {
	struct shfl_mutex mutex;
};

struct shfl_ron_policy {
	enum wait wait;
	uint32_t patience; /* all as those of shfl_mutex */
	enum policy policy;
	uint32_t batch;
	uint32_t spins;
};

#define shfl_ron_settings(S)                                                                \
	S(shfl_ron, patience, 4, 0, 1000000000)                                             \
	S(shfl_ron, policy, POLICY_NUMA, 0, POLICY_UNMEASURED - 1, POLICY_NAMES_UNMEASURED) \
	S(shfl_ron, batch, SHFL_MAX_BATCH, 1, 1000000)                                      \
	S(shfl_ron, spins, 1, 0, 31)
#define shfl_ron_bytes shfl_mutex_bytes

static inline struct shfl_mutex_policy shfl_ron_mutex_policy(struct shfl_ron_policy policy)
{
	return (struct shfl_mutex_policy){policy.wait, policy.patience, policy.policy, policy.batch,
					  policy.spins};
}

/* Gives back what @lock has beside its own bytes. Nobody uses it any more. */
static W_SLOW void shfl_ron_destroy(void *lock)
{
	gates_forget(lock);
}

/* Takes @lock if it is free. */
static inline bool shfl_ron_try_acquire(struct shfl_ron *lock)
{
	return shfl_mutex_try_acquire(&lock->mutex);
}

/* ---- The choice between the ways ---- */

static inline struct tour_own *gate_own(struct gate *gate)
{
	return &gate->lock.tour.own;
}

/* Whether threads take long turns at a lock with @gate, or NULL. */
static inline bool shfl_ron_turns_are_long(struct gate *gate)
{
	/* relaxed: any turns are right */
	return gate && w_load_relaxed(&gate->long_turns);
}

/* A waiter's part in the trials. */
struct shfl_ron_sample {
	uint32_t mask;  /* by which it was drawn */
	uint32_t count; /* of acquisitions for which it stands */
	bool used;      /* whether the lock was handed over to it at the gate */
	bool crowded;   /* whether turns were long, until it found too many waiters for that */
};

/* The ways to run the lock. Their order is that of the CPU time that waiters need. */
enum shfl_ron_way { SHFL_RON_SHORT_TURNS, SHFL_RON_LONG_TURNS, SHFL_RON_AT_GATE };

_Static_assert(SHFL_RON_AT_GATE + 1 == TRIAL_WAYS, "a trial tries all ways");

/*
 * As the holder, at @sample: returns the way to run in from now on. The model checker's client
 * defines it: any choice, at any time.
 */
#ifndef shfl_ron_choose
static inline enum shfl_ron_way shfl_ron_choose(struct shfl_ron *lock, struct gate *gate,
						const struct shfl_ron_sample *sample)
{
	const uint32_t now = wait_clock();
	const bool on = gate_own(gate)->gate;

	if (!w_has_own_cpu()) {
		trial_cancel(&gate->trial, now);
		return SHFL_RON_SHORT_TURNS;
	}
	if (sample->crowded && shfl_ron_turns_are_long(gate)) {
		trial_refuse(&gate->trial, now);
		return (enum shfl_ron_way)gate->trial.way;
	}
	/* relaxed: a waiter that is about to come or go does not matter */
	return (enum shfl_ron_way)trial_step(&gate->trial, now, !on || sample->used,
					     !on || !w_load_relaxed(&lock->mutex.tail),
					     sample->mask, sample->count);
}
#endif

/* As the holder: from now on, the lock runs in @way. */
static W_SLOW void shfl_ron_turn(struct shfl_ron *lock, struct gate *gate, enum shfl_ron_way way)
{
	const bool on = way == SHFL_RON_AT_GATE;

	/* relaxed: any turns are right */
	w_store_relaxed(&gate->long_turns, way == SHFL_RON_LONG_TURNS);
	if (on == gate_own(gate)->gate)
		return;
	gate_own(gate)->gate = on;
	/* relaxed, both: any way is right at any time */
	if (on)
		(void)w_fetch_or_relaxed(&lock->mutex.state, SHFL_RON_GATE);
	else if (!gate_own(gate)->holds)
		(void)w_fetch_and_relaxed(&lock->mutex.state, ~SHFL_RON_GATE);
}

/* As the holder: returns the way in which the lock with @gate runs. */
static inline enum shfl_ron_way shfl_ron_way(struct gate *gate)
{
	if (gate_own(gate)->gate)
		return SHFL_RON_AT_GATE;
	return shfl_ron_turns_are_long(gate) ? SHFL_RON_LONG_TURNS : SHFL_RON_SHORT_TURNS;
}

/* As the holder: returns a gate for @lock, which has none, or NULL if there is no room. */
static W_SLOW struct gate *shfl_ron_open(struct shfl_ron *lock)
{
	struct gate *gate = gates_claim(lock);

	if (gate) {
		trial_init(&gate->trial, wait_clock());
		/* relaxed, both: any share of samples is right, and any turns */
		w_store_relaxed(&gate->mask, gate->trial.mask);
		w_store_relaxed(&gate->long_turns, 0);
	}
	return gate;
}

/* As the holder, that waited: takes @sample. */
static W_SLOW void shfl_ron_take(struct shfl_ron *lock, struct gate *gate,
				 const struct shfl_ron_sample *sample)
{
	enum shfl_ron_way way;
	struct tour_own *own;
	bool drains;

	/* Another thread may have opened one while this thread waited. */
	if (!gate)
		gate = gates_find(lock);
	if (!gate && w_has_own_cpu())
		gate = shfl_ron_open(lock);
	if (!gate)
		return;
	own = gate_own(gate);
	way = shfl_ron_choose(lock, gate, sample);
	if (way != shfl_ron_way(gate))
		shfl_ron_turn(lock, gate, way);
	drains = gate->trial.phase == TRIAL_SETTLES;
	if (own->drains != drains)
		own->drains = drains;
	/* relaxed, both: only holders write it, and any share of samples is right */
	if (w_load_relaxed(&gate->mask) != gate->trial.mask)
		w_store_relaxed(&gate->mask, gate->trial.mask);
}

/* ---- The gate ---- */

/* In a forked child, discards the gate's waiters, and its holder if that does not hold the lock. */
static inline void shfl_ron_repair(struct gate *gate)
{
	struct tour *tour = &gate->lock.tour;

	if (w_unlikely(generation_claim(&tour->generation)))
		tour_repair(tour, &ron_ticket_kind, tour->own.holds ? TOUR_HELD : 0);
}

/* Waits until the caller has @gate. Returns the place of the tour where it got it. */
static inline uint32_t shfl_ron_take_gate(struct gate *gate, enum wait wait)
{
	struct tour *tour = &gate->lock.tour;
	uint32_t place;

	if (tour_try_acquire(tour))
		return tour->at;
	place = ron_ticket_wait(&gate->lock, wait);
	tour_look_ahead(tour, place);
	return place;
}

/* As the holder of @gate, which it got at place @at: gives it to the next waiter there. */
static inline void shfl_ron_give_gate(struct gate *gate, uint32_t at, enum wait wait)
{
	gate->lock.tour.at = at;
	(void)ron_ticket_release(&gate->lock, (struct ron_ticket_policy){wait});
}

/*
 * Takes @lock through @gate, and returns the place of the tour; *@handed is whether it was handed
 * over there. If GATE is no longer set once the thread has the gate, or the lock, leaves the gate
 * and returns TOUR_NOBODY: a thread that forgets how it came finds by that flag that its release
 * has to leave the gate. It does not keep the gate while it waits for the lock then: others there
 * would wait for a turn in the mutex's queue each.
 */
static W_SLOW uint32_t shfl_ron_enter(struct shfl_ron *lock, struct gate *gate,
				      struct shfl_mutex_policy policy, bool *handed)
{
	struct tour_own *own = gate_own(gate);
	uint32_t place;
	bool stays;

	shfl_ron_repair(gate);
	place = shfl_ron_take_gate(gate, policy.wait);
	*handed = own->holds;
	if (*handed)
		return place;
	/* relaxed: a hint; the holder changes the flag, and reads its own write below */
	stays = w_load_relaxed(&lock->mutex.state) & SHFL_RON_GATE;
	if (stays) {
		(void)shfl_mutex_acquire(&lock->mutex, policy, NULL);
		if (own->gate) {
			own->holds = true;
			return place;
		}
	}
	shfl_ron_give_gate(gate, place, policy.wait);
	if (!stays)
		(void)shfl_mutex_acquire(&lock->mutex, policy, NULL);
	return TOUR_NOBODY;
}

/* As the holder: returns whether threads wait in the mutex's queue. */
static inline bool shfl_ron_has_queue(struct shfl_ron *lock)
{
	/* relaxed, both: a waiter that comes now is served after the bound */
	return w_load_relaxed(&lock->mutex.state) & SHFL_MUTEX_CLOSED ||
	       w_load_relaxed(&lock->mutex.tail);
}

/*
 * As the holder at @gate, that got it at place @at: returns the place to which @lock may be handed
 * over, or TOUR_NOBODY. @bound: as in part/stay.h. A tour, or a lap, is complete at a place that is
 * not behind @at.
 */
static inline uint32_t shfl_ron_next(struct shfl_ron *lock, struct gate *gate, uint32_t at,
				     uint32_t bound)
{
	struct tour_own *own = gate_own(gate);
	const uint32_t next =
		own->gate ? stay_next(&gate->lock.tour, &ron_ticket_kind, at, bound) : TOUR_NOBODY;

	return (own->drains || next <= at) && shfl_ron_has_queue(lock) ? TOUR_NOBODY : next;
}

/* As the holder at @gate, that got it at place @at: leaves it. */
static inline void shfl_ron_leave(struct shfl_ron *lock, struct gate *gate, uint32_t at,
				  enum wait wait)
{
	struct tour_own *own = gate_own(gate);

	own->holds = false;
	if (!own->gate)
		/* relaxed: as in shfl_ron_turn() */
		(void)w_fetch_and_relaxed(&lock->mutex.state, ~SHFL_RON_GATE);
	shfl_ron_give_gate(gate, at, wait);
}

/*
 * As the holder, if it came through @gate, at place @at (TOUR_NOBODY: the place is left there):
 * hands @lock over there and returns true, or leaves the gate.
 */
static inline bool shfl_ron_hand_over(struct shfl_ron *lock, struct gate *gate, uint32_t at,
				      struct shfl_mutex_policy policy)
{
	struct tour *tour = &gate->lock.tour;
	uint32_t next;

	if (!gate_own(gate)->holds)
		return false;
	shfl_ron_repair(gate);
	if (at == TOUR_NOBODY)
		at = tour->at;
	next = shfl_ron_next(lock, gate, at, policy.batch);
	if (next == TOUR_NOBODY) {
		shfl_ron_leave(lock, gate, at, policy.wait);
		return false;
	}
	w_event(handover_gate);
	tour_remember(tour, at, next);
	stay_go(tour, at, next);
	(void)ron_ticket_grant(tour_place(tour, next), policy.wait);
	return true;
}

/* ---- Both ---- */

/* Returns the share of waiters that are samples, as a mask of their random numbers. */
static inline uint32_t gate_mask(struct gate *gate)
{
	/* relaxed: any share of samples is right */
	return gate ? w_load_relaxed(&gate->mask) : TRIAL_FIRST_MASK;
}

/*
 * Before the thread remembers @lock instead of another lock: if it holds that one through its gate,
 * leaves the place there.
 */
static W_SLOW void shfl_ron_replace(const void *lock)
{
	const void *other = w_hint_lock(lock);
	struct gate *gate = other && w_note(lock) & SHFL_RON_NOTE_GATED ? gates_find(other) : NULL;

	if (gate)
		gate->lock.tour.at = w_note(lock) / SHFL_RON_NOTE_ONE;
}

/*
 * As the holder of @lock, which waited for it, at @place of @gate's tour if not TOUR_NOBODY:
 * remembers that. What the thread cannot remember, or forgets of another lock that it holds, is
 * left at the gate.
 */
static inline void shfl_ron_remember(const void *lock, struct gate *gate, uint32_t place)
{
	const bool gated = place != TOUR_NOBODY;
	const uint32_t note = gated ? place * SHFL_RON_NOTE_ONE + SHFL_RON_NOTE_GATED : 0;

	if (w_likely(w_remembers(lock))) {
		w_note_set(lock, note);
		return;
	}
	shfl_ron_replace(lock);
	if (!w_remember(lock, note) && gated)
		gate->lock.tour.at = place;
}

/*
 * As a thread that has to wait: returns how many acquisitions of @lock its next one stands for, at
 * least 1: those since it waited last, if it counted them.
 */
static inline uint32_t shfl_ron_count(struct shfl_ron *lock)
{
	const uint32_t count = w_remembers(lock) ? w_note(lock) / SHFL_RON_NOTE_ONE : 0;

	return count ? count : 1;
}

/*
 * As a newcomer that shares its CPU, races for @lock for as long as it is usually away from locks
 * (world/streak.h). Returns true if it took it.
 */
static inline bool shfl_ron_race(struct shfl_ron *lock, struct shfl_mutex_policy policy,
				 const struct w_deadline *deadline)
{
	const uint64_t end = shfl_mutex_races(policy) ? w_race_end() : 0;
	bool late;

	if (!end)
		return false;
	do
		if (shfl_mutex_race(&lock->mutex, policy, deadline, &late))
			return true;
	while (late && w_now() < end);
	return false;
}

/* Slow path: @lock was last seen as @seen. */
static W_SLOW bool shfl_ron_acquire_slow(struct shfl_ron *lock, uint32_t seen,
					 struct shfl_mutex_policy policy,
					 const struct w_deadline *deadline)
{
	struct gate *gate = gates_find(lock);
	const bool has_own_cpu = w_has_own_cpu();
	const bool enters = gate && seen & SHFL_RON_GATE && !deadline && has_own_cpu;
	const bool long_turns = shfl_ron_turns_are_long(gate);
	struct shfl_ron_sample sample = {.mask = gate_mask(gate), .count = shfl_ron_count(lock)};
	const uint32_t drawn = w_random() & sample.mask;
	uint32_t place = TOUR_NOBODY;

	w_streak_end(long_turns);
	if (enters) {
		place = shfl_ron_enter(lock, gate, policy, &sample.used);
	} else if (!shfl_mutex_try_acquire_slow(&lock->mutex, seen) &&
		   (has_own_cpu || !shfl_ron_race(lock, policy, deadline)) &&
		   !shfl_mutex_acquire_slow(&lock->mutex, policy, deadline)) {
		w_turns_shorten();
		return false;
	}
	sample.crowded = long_turns && !w_turns_are_long();
	w_streak_begin();
	if (has_own_cpu)
		shfl_ron_remember(lock, gate, place);
	else
		w_forget(lock);
	if (w_unlikely(drawn < sample.count || sample.crowded))
		shfl_ron_take(lock, gate, &sample);
	return true;
}

/*
 * Takes @lock, for which the thread has waited before. If others hold it, only reads its word: so
 * arrivals share the line while the lock is handed over at the gate.
 */
static W_SLOW bool shfl_ron_acquire_again(struct shfl_ron *lock, struct shfl_mutex_policy policy,
					  const struct w_deadline *deadline)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(&lock->mutex.state);

	return (!seen && shfl_mutex_take_free(&lock->mutex, &seen)) ||
	       shfl_ron_acquire_slow(lock, seen, policy, deadline);
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool shfl_ron_acquire(struct shfl_ron *lock, struct shfl_ron_policy policy,
				    const struct w_deadline *deadline)
{
	uint32_t seen;

	if (w_unlikely(w_remembers(lock)))
		return shfl_ron_acquire_again(lock, shfl_ron_mutex_policy(policy), deadline);
	return w_likely(shfl_mutex_take_free(&lock->mutex, &seen)) ||
	       shfl_ron_acquire_slow(lock, seen, shfl_ron_mutex_policy(policy), deadline);
}

/* As shfl_ron_release(), if the lock is not simply LOCKED. */
static W_SLOW bool shfl_ron_release_slow(struct shfl_ron *lock, struct shfl_mutex_policy policy)
{
	/* relaxed: only holders clear LOCKED, and change GATE */
	const uint32_t seen = w_load_relaxed(&lock->mutex.state);
	struct gate *gate;

	if (!(seen & SHFL_MUTEX_LOCKED))
		return false;
	if (!(seen & SHFL_RON_GATE))
		return shfl_mutex_release_slow(&lock->mutex);
	gate = gates_find(lock);
	return (gate && shfl_ron_hand_over(lock, gate, TOUR_NOBODY, policy)) ||
	       shfl_mutex_release_fair(&lock->mutex, policy);
}

/*
 * As the holder: returns whether others wait for @lock, but not if waiters go to the gate, where
 * they take turns. If others wait and the thread's streak is over, closes it to newcomers.
 */
static inline bool shfl_ron_look(struct shfl_ron *lock)
{
	/* relaxed, both: only holders clear LOCKED, and change GATE; a wrong tail does no harm */
	const uint32_t seen = w_load_relaxed(&lock->mutex.state);
	const bool racing = (seen & (SHFL_MUTEX_LOCKED | SHFL_RON_GATE)) == SHFL_MUTEX_LOCKED;
	const bool others_wait = racing && w_load_relaxed(&lock->mutex.tail);
	const bool long_turns = others_wait && shfl_ron_turns_are_long(gates_find(lock));

	if (w_streak_is_over(others_wait, long_turns))
		shfl_mutex_close_for_head(&lock->mutex);
	return others_wait;
}

/* As shfl_ron_free(), with a look. @lock may be gone once it is free. */
static W_SLOW bool shfl_ron_free_looking(struct shfl_ron *lock, struct shfl_mutex_policy policy)
{
	const bool others_wait = shfl_ron_look(lock);
	const bool freed = shfl_mutex_free(&lock->mutex) || shfl_ron_release_slow(lock, policy);

	if (others_wait)
		w_streak_yield();
	return freed;
}

/* Frees @lock, which the thread did not get through the gate as far as it remembers. */
static inline bool shfl_ron_free(struct shfl_ron *lock, struct shfl_mutex_policy policy)
{
	if (w_unlikely(w_streak_counts()))
		return shfl_ron_free_looking(lock, policy);
	if (w_likely(shfl_mutex_free(&lock->mutex)))
		return true;
	return shfl_ron_release_slow(lock, policy);
}

/*
 * Releases @lock, on which the thread has waited. If it came through the gate, without a look at
 * the mutex's word.
 */
static W_SLOW bool shfl_ron_release_again(struct shfl_ron *lock, struct shfl_mutex_policy policy)
{
	const uint32_t note = w_note(lock);
	struct gate *gate;

	if (!(note & SHFL_RON_NOTE_GATED)) {
		w_note_set(lock, note + SHFL_RON_NOTE_ONE);
		return shfl_ron_free(lock, policy);
	}
	w_note_set(lock, SHFL_RON_NOTE_ONE);
	gate = gates_find(lock);
	return (gate && shfl_ron_hand_over(lock, gate, note / SHFL_RON_NOTE_ONE, policy)) ||
	       shfl_ron_release_slow(lock, policy);
}

/*
 * Releases @lock. Returns false, and changes nothing but the thread's hint, if it was not held.
 * This is not noticed if the thread took it through the gate and another thread has released it.
 */
static inline bool shfl_ron_release(struct shfl_ron *lock, struct shfl_ron_policy policy)
{
	if (w_unlikely(w_remembers(lock)))
		return shfl_ron_release_again(lock, shfl_ron_mutex_policy(policy));
	return shfl_ron_free(lock, shfl_ron_mutex_policy(policy));
}

#endif
