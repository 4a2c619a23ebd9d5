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
 *   how   GATE     waiters with a CPU of their own go to the gate
 *         mask     by part/trial.h, above GATE
 *
 *   the mutex's state   the gate   meaning
 *   any                 free       as shfl_mutex
 *   any, !GATED         held       the gate's holder is about to take the mutex, as any newcomer or
 *                                  waiter does, or to leave the gate
 *   LOCKED|GATED        held       the gate's holder holds the mutex
 *
 *   LOCKED ──the gate's holder──▶ LOCKED|GATED ──release, hands both over──▶ LOCKED|GATED
 *   LOCKED|GATED ──release──▶ LOCKED, and leaves the gate ──release──▶ 0, as shfl_mutex
 *
 * GATED is set and cleared by the gate's holder while it holds the mutex. So a thread that gets the
 * gate sees whether the mutex comes with it. A hand-over writes neither state nor `how`: all
 * caches have copies of them.
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

#define SHFL_RON_GATE 1u

struct shfl_ron {
	_Alignas(64) struct shfl_mutex mutex;
	_Alignas(64) W_ATOMIC(uint32_t) how; /* written by the holder, rarely */
	_Alignas(64) struct trial trial;     /* the holder's, as `passes` */
	uint32_t passes; /* hand-overs at the gate since the mutex was taken, past its queue */
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
	w_store_relaxed(&lock->how, TRIAL_FIRST_MASK << 1);
}

/* In a forked child, discards the gate's waiters, and its holder if that does not hold @lock. */
static inline void shfl_ron_repair(struct shfl_ron *lock)
{
	bool held;

	if (w_likely(!generation_claim(&lock->gate.tour.generation)))
		return;
	/* relaxed: nobody is at the gate before the repair ends */
	held = w_load_relaxed(&lock->mutex.state) & SHFL_MUTEX_GATED;
	tour_repair(&lock->gate.tour, &ron_ticket_kind, held ? TOUR_HELD : 0);
}

/* Takes @lock if it is free. */
static inline bool shfl_ron_try_acquire(struct shfl_ron *lock)
{
	return shfl_mutex_try_acquire(&lock->mutex);
}

/* ---- The choice between the ways ---- */

/*
 * Returns whether waiters are to go to the gate, as they do now if @gate. The model checker's
 * client defines it: any choice, at any time.
 */
#ifndef shfl_ron_prefers_gate
static inline bool shfl_ron_prefers_gate(struct shfl_ron *lock, bool gate)
{
	/* relaxed: a waiter that is about to come or go does not matter */
	return trial_step(&lock->trial, wait_clock(), gate,
			  !gate || !w_load_relaxed(&lock->mutex.tail));
}
#endif

/* As the holder, takes a sample. */
static W_SLOW void shfl_ron_sample(struct shfl_ron *lock)
{
	/* relaxed, both: only holders write it, and whatever others read is right */
	uint32_t how = w_load_relaxed(&lock->how), now;

	now = shfl_ron_prefers_gate(lock, how & SHFL_RON_GATE) | lock->trial.mask << 1;
	if (now != how)
		w_store_relaxed(&lock->how, now);
}

/* ---- The gate ---- */

/* Takes @lock through the gate. */
static W_SLOW void shfl_ron_enter(struct shfl_ron *lock, struct shfl_mutex_policy policy)
{
	shfl_ron_repair(lock);
	(void)ron_ticket_acquire(&lock->gate, (struct ron_ticket_policy){policy.wait}, NULL);
	/* relaxed, both: only the gate's holders change the flag, and the gate orders them */
	if (w_load_relaxed(&lock->mutex.state) & SHFL_MUTEX_GATED)
		return;
	(void)shfl_mutex_acquire(&lock->mutex, policy, NULL);
	(void)w_fetch_or_relaxed(&lock->mutex.state, SHFL_MUTEX_GATED);
	lock->passes = 0;
}

/* As the holder at the gate: returns whether @lock may be handed over there. */
static inline bool shfl_ron_may_pass(struct shfl_ron *lock)
{
	/* relaxed, both: a waiter that comes now is served after the bound */
	if (w_load_relaxed(&lock->mutex.state) & SHFL_MUTEX_CLOSED)
		return false;
	if (!w_load_relaxed(&lock->mutex.tail))
		return true;
	return lock->trial.phase != TRIAL_SETTLES && lock->passes++ < lock->gate.tour.places;
}

/*
 * As the holder at the gate: hands @lock over there and returns true, or leaves the gate. @gate:
 * whether waiters are to go there.
 */
static W_SLOW bool shfl_ron_hand_over(struct shfl_ron *lock, enum wait wait, bool gate)
{
	shfl_ron_repair(lock);
	if (gate && shfl_ron_may_pass(lock) &&
	    tour_pass(&lock->gate.tour, &ron_ticket_kind, wait)) {
		w_event(handover_gate);
		return true;
	}
	/* relaxed: the gate's release publishes it to the next one there */
	(void)w_fetch_and_relaxed(&lock->mutex.state, ~SHFL_MUTEX_GATED);
	(void)ron_ticket_release(&lock->gate, (struct ron_ticket_policy){wait});
	return false;
}

/* ---- Both ---- */

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool shfl_ron_acquire(struct shfl_ron *lock, struct shfl_ron_policy policy,
				    const struct w_deadline *deadline)
{
	/* relaxed: any way is right at any time */
	const uint32_t how = w_load_relaxed(&lock->how);

	if (w_unlikely(how & SHFL_RON_GATE) && !deadline && w_has_own_cpu())
		shfl_ron_enter(lock, shfl_ron_mutex_policy(policy));
	else if (!shfl_mutex_acquire(&lock->mutex, shfl_ron_mutex_policy(policy), deadline))
		return false;
	if (w_unlikely(!(w_random() & how >> 1)))
		shfl_ron_sample(lock);
	return true;
}

/* As shfl_ron_release(), if the lock is not simply LOCKED or waiters are to go to the gate. */
static W_SLOW bool shfl_ron_release_slow(struct shfl_ron *lock, struct shfl_mutex_policy policy,
					 bool gate)
{
	/* relaxed: our own flag, or the one that came with the lock */
	if (w_load_relaxed(&lock->mutex.state) & SHFL_MUTEX_GATED &&
	    shfl_ron_hand_over(lock, policy.wait, gate))
		return true;
	return gate ? shfl_mutex_release_fair(&lock->mutex, policy)
		    : shfl_mutex_release_slow(&lock->mutex);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool shfl_ron_release(struct shfl_ron *lock, struct shfl_ron_policy policy)
{
	/* relaxed: as in shfl_ron_acquire() */
	const bool gate = w_load_relaxed(&lock->how) & SHFL_RON_GATE;

	return w_likely(!gate && shfl_mutex_free(&lock->mutex)) ||
	       shfl_ron_release_slow(lock, shfl_ron_mutex_policy(policy), gate);
}

#endif
