/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ShflLock's mutex with a gate: RON's tour. While that is faster, those who have to wait do so at
 * the gate, in the order of the tour, and a holder hands the lock over instead of freeing it.
 *
 * From: Kashyap et al., ShflLock, SOSP'19 (shfl_mutex.h), and Lo et al., RON, OSDI'23, algorithm 2
 * (ron_ticket.h). The combination is ours.
 *
 * Order: as shfl_mutex, or the next on a tour of the CPUs; by trial.
 *
 * Promise: mutual exclusion. Each holder holds the mutex, whose bound on bypass applies. But while
 * the lock is handed over at the gate, the head of the mutex's queue is bypassed by as many holders
 * as there are places on the tour. At the gate, the order of ron_ticket.h. Waiters sleep under
 * wait=park. A box of 192 bytes and that of ron_ticket; a waiter's node as in
 * shfl_mutex, or none at the gate; none per holder. Atomic read-modify-writes: 2 uncontended; at
 * the gate 1 or 2 to wait, and none to hand over (1 under wait=park).
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
 * mutex comes with it, in the line that it writes anyway. Neither a waiter at the gate nor a
 * hand-over there needs the mutex's word: a thread remembers that it has to go to the gate, and
 * that it came through it (core/hint.h).
 *
 * A thread that never waits uses the lock as a shfl_mutex: its first access to the lock is the
 * compare-exchange. Trials count acquisitions when a thread waits: those since it last did.
 *
 * Timed waiters and those that share their CPU wait in the mutex's queue. While a trial waits for
 * that queue to end, and after a tour's worth of hand-overs, a release leaves the lock to its head.
 *
 * The gate is left before the mutex is free, since the next holder may free all of the memory.
 */
#ifndef POUNDLOCK_SHFL_RON_H
#define POUNDLOCK_SHFL_RON_H

#include "part/trial.h"
#include "ron_ticket.h"
#include "shfl_mutex.h"

#define SHFL_RON_GATE 16u /* in the mutex's state */

/* In a thread's hint: the lock's GATE, and a count of acquisitions. */
#define SHFL_RON_HINT_GATE 1u
#define SHFL_RON_HINT_ONE 2u

struct shfl_ron {
	_Alignas(64) struct shfl_mutex mutex;
	_Alignas(64) W_ATOMIC(uint32_t) mask; /* of `trial`. Written by the holder, rarely */
	_Alignas(64) struct trial trial;      /* the holder's */
	_Alignas(64) struct ron_ticket gate;
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
#define shfl_ron_bytes sizeof(void *), sizeof(struct shfl_node), 0

static inline struct shfl_mutex_policy shfl_ron_mutex_policy(struct shfl_ron_policy policy)
{
	return (struct shfl_mutex_policy){policy.wait, policy.patience, policy.policy, policy.batch,
					  policy.spins};
}

static inline size_t shfl_ron_size(void)
{
	return offsetof(struct shfl_ron, gate) + ron_ticket_size();
}

static inline void shfl_ron_init(struct shfl_ron *lock, size_t size)
{
	ron_ticket_init(&lock->gate, size - offsetof(struct shfl_ron, gate));
	trial_init(&lock->trial);
	/* relaxed: nobody else has the lock yet */
	w_store_relaxed(&lock->mask, TRIAL_FIRST_MASK);
}

/* In a forked child, discards the gate's waiters, and its holder if that does not hold @lock. */
static inline void shfl_ron_repair(struct shfl_ron *lock)
{
	struct tour *tour = &lock->gate.tour;

	if (w_unlikely(generation_claim(&tour->generation)))
		tour_repair(tour, &ron_ticket_kind, tour->own.holds ? TOUR_HELD : 0);
}

/* Takes @lock if it is free. */
static inline bool shfl_ron_try_acquire(struct shfl_ron *lock)
{
	return shfl_mutex_try_acquire(&lock->mutex);
}

/* ---- The choice between the ways ---- */

/*
 * As the holder with a sample of @count acquisitions: returns whether waiters are to go to the
 * gate, as they do now if @gate. The model checker's client defines it: any choice, at any time.
 */
#ifndef shfl_ron_prefers_gate
static inline bool shfl_ron_prefers_gate(struct shfl_ron *lock, bool gate, uint32_t count)
{
	const uint32_t now = wait_clock();

	if (!w_has_own_cpu()) {
		trial_cancel(&lock->trial, now);
		return false;
	}
	/* relaxed: a waiter that is about to come or go does not matter */
	return trial_step(&lock->trial, now, gate, !gate || !w_load_relaxed(&lock->mutex.tail),
			  count);
}
#endif

/* As the holder: from now on, waiters go to the gate if @gate. */
static W_SLOW void shfl_ron_turn(struct shfl_ron *lock, bool gate)
{
	lock->gate.tour.own.gate = gate;
	/* relaxed, both: any way is right at any time */
	if (gate)
		(void)w_fetch_or_relaxed(&lock->mutex.state, SHFL_RON_GATE);
	else if (!lock->gate.tour.own.holds)
		(void)w_fetch_and_relaxed(&lock->mutex.state, ~SHFL_RON_GATE);
}

/* As the holder, takes a sample of @count acquisitions. */
static W_SLOW void shfl_ron_sample(struct shfl_ron *lock, uint32_t count)
{
	const bool gate = lock->gate.tour.own.gate, next = shfl_ron_prefers_gate(lock, gate, count),
		   drains = lock->trial.phase == TRIAL_SETTLES;

	if (next != gate)
		shfl_ron_turn(lock, next);
	if (lock->gate.tour.own.drains != drains)
		lock->gate.tour.own.drains = drains;
	/* relaxed, both: only holders write it, and any share of samples is right */
	if (w_load_relaxed(&lock->mask) != lock->trial.mask)
		w_store_relaxed(&lock->mask, lock->trial.mask);
}

/* ---- The gate ---- */

/*
 * Takes @lock through the gate. If GATE is no longer set then, leaves the gate at once: a thread
 * that does not remember how it came finds by that flag that its release has to leave the gate.
 */
static W_SLOW void shfl_ron_enter(struct shfl_ron *lock, struct w_hint *hint,
				  struct shfl_mutex_policy policy)
{
	struct tour_own *own = &lock->gate.tour.own;

	shfl_ron_repair(lock);
	(void)ron_ticket_acquire(&lock->gate, (struct ron_ticket_policy){policy.wait}, NULL);
	if (!own->holds) {
		(void)shfl_mutex_acquire(&lock->mutex, policy, NULL);
		if (!own->gate) {
			hint->note = 0;
			(void)ron_ticket_release(&lock->gate,
						 (struct ron_ticket_policy){policy.wait});
			return;
		}
		own->holds = true;
		own->passes = 0;
	}
	w_set_gated(lock);
}

/* As the holder at the gate: returns whether @lock may be handed over there. */
static inline bool shfl_ron_may_pass(struct shfl_ron *lock)
{
	struct tour_own *own = &lock->gate.tour.own;

	if (!own->gate)
		return false;
	if (!own->drains && own->passes++ < lock->gate.tour.places)
		return true;
	own->passes = 0;
	/* relaxed, both: a waiter that comes now is served after the bound */
	return !(w_load_relaxed(&lock->mutex.state) & SHFL_MUTEX_CLOSED) &&
	       !w_load_relaxed(&lock->mutex.tail);
}

/* As the holder at the gate: leaves it. */
static inline void shfl_ron_leave(struct shfl_ron *lock, enum wait wait)
{
	struct tour_own *own = &lock->gate.tour.own;

	own->holds = false;
	if (!own->gate)
		/* relaxed: as in shfl_ron_turn() */
		(void)w_fetch_and_relaxed(&lock->mutex.state, ~SHFL_RON_GATE);
	(void)ron_ticket_release(&lock->gate, (struct ron_ticket_policy){wait});
}

/*
 * As the holder, if it came through the gate: hands @lock over there and returns true, or leaves
 * the gate.
 */
static inline bool shfl_ron_hand_over(struct shfl_ron *lock, enum wait wait)
{
	if (!lock->gate.tour.own.holds)
		return false;
	shfl_ron_repair(lock);
	if (shfl_ron_may_pass(lock) && tour_pass(&lock->gate.tour, &ron_ticket_kind, wait)) {
		w_event(handover_gate);
		return true;
	}
	shfl_ron_leave(lock, wait);
	return false;
}

/* ---- Both ---- */

/* Slow path: @lock was last seen as @seen, maybe long ago. */
static W_SLOW bool shfl_ron_acquire_slow(struct shfl_ron *lock, uint32_t seen,
					 struct shfl_mutex_policy policy,
					 const struct w_deadline *deadline)
{
	/* relaxed: any share of samples is right. Drawn now, while others hold the lock */
	const bool sample = !(w_random() & w_load_relaxed(&lock->mask)),
		   gate = seen & SHFL_RON_GATE;
	struct w_hint *hint = w_hint(lock);
	const uint32_t count = hint->lock == lock ? hint->note / SHFL_RON_HINT_ONE : 1;

	*hint = (struct w_hint){lock, gate ? SHFL_RON_HINT_GATE : 0};
	if (gate && !deadline && w_has_own_cpu())
		shfl_ron_enter(lock, hint, policy);
	else if (!shfl_mutex_try_acquire_slow(&lock->mutex, seen) &&
		 !shfl_mutex_acquire_slow(&lock->mutex, policy, deadline))
		return false;
	if (w_unlikely(sample))
		shfl_ron_sample(lock, count);
	return true;
}

/* Takes @lock, on which the thread has waited before. */
static W_SLOW bool shfl_ron_acquire_again(struct shfl_ron *lock, struct shfl_mutex_policy policy,
					  const struct w_deadline *deadline)
{
	struct w_hint *hint = w_hint(lock);
	uint32_t seen = SHFL_RON_GATE;

	hint->note += SHFL_RON_HINT_ONE;
	return (!(hint->note & SHFL_RON_HINT_GATE) && shfl_mutex_take_free(&lock->mutex, &seen)) ||
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

	if (!(seen & SHFL_MUTEX_LOCKED))
		return false;
	if (shfl_ron_hand_over(lock, policy.wait))
		return true;
	return seen & SHFL_RON_GATE ? shfl_mutex_release_fair(&lock->mutex, policy)
				    : shfl_mutex_release_slow(&lock->mutex);
}

/* Releases @lock, which this thread took through the gate, without a look at the mutex's word. */
static W_SLOW bool shfl_ron_release_gated(struct shfl_ron *lock, struct shfl_mutex_policy policy)
{
	w_set_gated(NULL);
	return shfl_ron_hand_over(lock, policy.wait) || shfl_ron_release_slow(lock, policy);
}

/*
 * Releases @lock. Returns false, and changes nothing, if it was not held. This is not noticed if
 * the thread took it through the gate and another thread has released it.
 */
static inline bool shfl_ron_release(struct shfl_ron *lock, struct shfl_ron_policy policy)
{
	if (w_unlikely(w_is_gated(lock)))
		return shfl_ron_release_gated(lock, shfl_ron_mutex_policy(policy));
	return w_likely(shfl_mutex_free(&lock->mutex)) ||
	       shfl_ron_release_slow(lock, shfl_ron_mutex_policy(policy));
}

#endif
