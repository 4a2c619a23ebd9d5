/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CFL: a shuffled queue that schedules the time for which a lock is held as CFS schedules the CPU.
 * Shared by cfl_spin.h and cfl_mutex.h, which differ in whether the head of the queue sleeps.
 *
 * From: Park and Eom, "Locks as a resource: fairly scheduling lock occupation with CFL", PPoPP'24,
 * section 3. order.h contains everything but the word, and lists the departures from the paper.
 *
 *   state = LOCKED | PARKED | HEIR
 *     LOCKED  the lock is held. Set if state == 0: by a newcomer that finds no queue or may
 *             overtake it, or by the head. Cleared, with all other flags, by the holder
 *     PARKED  the head sleeps on state. Set by the head if LOCKED
 *     HEIR    the next head sleeps on its own status, at `heir`. Set by the holder
 *
 *   0 ──newcomer, head──▶ LOCKED ──release──▶ 0
 *   LOCKED ──head──▶ LOCKED|PARKED ──release, unpark──▶ 0
 *   LOCKED ──head that became the holder──▶ LOCKED|HEIR ──release, unpark──▶ 0
 */
#ifndef POUNDLOCK_CFL_H
#define POUNDLOCK_CFL_H

#include "cfl/order.h"
#include "part/generation.h"
#include "part/heir.h"

#define CFL_LOCKED 1u
#define CFL_PARKED 2u
#define CFL_HEIR 4u

#ifndef LOCK_LAYOUT /* locks.def: with the two functions */
struct cfl {
	shfl_tail tail;
	/* Written by the holder. An address to unpark, never dereferenced */
	W_ATOMIC(uint32_t) *heir;
	W_ATOMIC(uint32_t) state;
	W_ATOMIC(uint32_t) generation;
	W_ATOMIC(uint32_t) limit; /* on thefts; written by the head */
	uint64_t start;           /* start of the hold; written by the holder */
	struct cfl_ledger ledger;
};

static inline struct cfl_ledger *cfl_ledger(struct cfl *lock)
{
	return &lock->ledger;
}

static inline W_ATOMIC(uint32_t) *cfl_generation(struct cfl *lock)
{
	return &lock->generation;
}
#endif

/* ---- The hold ---- */

/* As the new holder, starts to measure the hold. */
static inline void cfl_begin(struct cfl *lock)
{
	lock->start = w_now();
}

/* As the new holder, after having waited or stolen the lock. */
static inline void cfl_begin_after(struct cfl *lock, struct cfl_arrival arrival)
{
	cfl_begin_group(lock, arrival);
	cfl_begin(lock);
}

static inline uint64_t cfl_charge(struct cfl *lock)
{
	return cfl_charge_since(lock, lock->start);
}

/* ---- The word ---- */

/* In a forked child, discards the parent's waiters. Returns true if it did. */
static inline bool cfl_drop_waiters(struct cfl *lock)
{
	if (w_likely(!generation_claim(cfl_generation(lock))))
		return false;
	/* relaxed, both: [GENERATION-3] publishes them; nobody queues before that */
	w_store_relaxed(&lock->tail, NULL);
	(void)w_fetch_and_relaxed(&lock->state, CFL_LOCKED);
	generation_settle(cfl_generation(lock));
	return true;
}

/* 0 -> LOCKED, even if threads wait. */
static inline bool cfl_take(struct cfl *lock)
{
	uint32_t seen = 0;

	/* [CFL-1] acquire: pairs with [CFL-2]; the previous critical section */
	return w_compare_exchange_acquire(&lock->state, &seen, CFL_LOCKED);
}

/* As the holder: * -> 0, then wakes the sleepers that the flags name. */
static inline void cfl_give(struct cfl *lock)
{
	W_ATOMIC(uint32_t) *heir = lock->heir, *state = &lock->state;
	/* [CFL-2] release: pairs with [CFL-1]; our critical section */
	uint32_t seen = w_exchange_release(state, 0);

	heir_wake(seen & CFL_HEIR ? heir : NULL, seen & CFL_PARKED ? state : NULL);
}

/*
 * 0 -> LOCKED past the queue, if the newcomer may overtake it and the limit on thefts permits.
 * Section 3.3.
 */
static inline bool cfl_steal(struct cfl *lock, struct cfl_arrival arrival)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint32_t thefts;

	if (!cfl_may_overtake(lock, arrival.group, arrival.domain, arrival.held) || !cfl_take(lock))
		return false;
	/* relaxed, all: a count. The limit may be stale: the head then waits for one more theft */
	thefts = w_load_relaxed(&ledger->thefts);
	if ((int32_t)(thefts - w_load_relaxed(&lock->limit)) >= 0) {
		cfl_give(lock);
		return false;
	}
	(void)w_fetch_add_relaxed(&ledger->thefts, 1);
	w_event(steal);
	cfl_begin_after(lock, arrival);
	return true;
}

/* 0 -> LOCKED if nobody waits. */
static inline bool cfl_take_free(struct cfl *lock)
{
	/*
	 * relaxed: a stale NULL lets us bypass one waiter once; [CFL-1] orders the critical
	 * sections
	 */
	if (w_load_relaxed(&lock->tail) || !cfl_take(lock))
		return false;
	cfl_begin(lock);
	return true;
}

/* Takes @lock if it is free and either nobody waits or this thread may overtake. */
static inline bool cfl_try_acquire_by(struct cfl *lock)
{
	struct cfl_arrival arrival;

	if (w_likely(cfl_take_free(lock)))
		return true;
	/* relaxed, both: hints; the functions below read them again */
	if (w_load_relaxed(&lock->state) & CFL_LOCKED || !w_load_relaxed(&lock->tail))
		return false;
	if (cfl_drop_waiters(lock))
		return cfl_take_free(lock);
	arrival = cfl_arrive(lock, w_now());
	return cfl_steal(lock, arrival);
}

/* As the head: LOCKED -> LOCKED|PARKED, then sleeps until a release. @seen: the state last read. */
static inline void cfl_park(struct cfl *lock, uint32_t seen, const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; it only tells the releaser to wake a sleeper */
	if (!(seen & CFL_PARKED) &&
	    !w_compare_exchange_relaxed(&lock->state, &seen, seen | CFL_PARKED))
		return;
	w_event(park);
	w_park(&lock->state, seen | CFL_PARKED, deadline);
}

/*
 * As the head, briefly yields to the last holder if that may still overtake; backs off if it does
 * not come back. Only the last holder knows whether it wants the lock; but a thread that is owed
 * more than one turn usually returns at once, and it takes longer to arrive than the head.
 */
static inline void cfl_yield_to_last_holder(struct cfl *lock)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);

	/* relaxed, all: hints; they may be wrong */
	if (w_load_relaxed(&lock->state) || !w_load_relaxed(&ledger->may_return) ||
	    (int32_t)(w_load_relaxed(&ledger->thefts) - w_load_relaxed(&lock->limit)) >= 0 ||
	    cfl_skips_yield(ledger))
		return;
	/* [CFL-3] acquire: pairs with nothing; [CFL-1] reads the word again */
	cfl_record_yield(ledger, w_wait_acquire(&lock->state, VAL & CFL_LOCKED, W_BRIEF, NULL) &
					 CFL_LOCKED);
}

/* As the head of the queue: 0 -> LOCKED. Returns false if @deadline passes first. */
static inline bool cfl_take_as_head(struct cfl *lock, struct cfl_node *node,
				    struct cfl_policy policy, uint32_t limit,
				    const struct w_deadline *deadline, bool *slept)
{
	enum w_how how = policy.sleeps ? W_POLITE : wait_soon(policy.wait);
	struct shfl_stop stop = {.word = &lock->state, .mask = CFL_LOCKED, .value = 0};
	uint32_t seen;

	/*
	 * A head that was moved forward must not let more threads overtake those that it overtook.
	 * relaxed: thieves may read it late, once each
	 */
	if (!(node->node.where & CFL_MOVED))
		w_store_relaxed(&lock->limit, limit);
	for (cfl_yield_to_last_holder(lock); !cfl_take(lock); cfl_yield_to_last_holder(lock)) {
		if (shfl_head_shuffles(&node->node))
			cfl_shuffle(lock, node, stop, true, policy.wait == WAIT_PARK && !*slept,
				    policy);
		/* [CFL-4] acquire: pairs with nothing; [CFL-1] reads the word again */
		seen = w_wait_acquire(&lock->state, !(VAL & CFL_LOCKED), how, deadline);
		if (!(seen & CFL_LOCKED))
			continue;
		if (w_expired(deadline)) {
			w_event(abandon);
			return false;
		}
		if (!policy.sleeps)
			continue;
		*slept = true;
		cfl_park(lock, seen, deadline);
	}
	return true;
}

/*
 * As the head that has slept and now holds the lock, shuffles if it is its turn to. If all waiters
 * sleep, nobody else does, and the queue would be served in order of arrival. This happens once per
 * batch, before the hold begins, and takes little time compared to the wake-up.
 */
static inline void cfl_shuffle_awakened(struct cfl *lock, struct cfl_node *node,
					struct cfl_policy policy)
{
	struct shfl_stop never = {.word = &lock->state, .mask = 0, .value = 1};

	if (shfl_head_shuffles(&node->node))
		cfl_shuffle(lock, node, never, true, false, policy);
}

static inline bool cfl_acquire_queued(struct cfl *lock, struct cfl_node *node,
				      struct cfl_policy policy, struct cfl_arrival arrival,
				      const struct w_deadline *deadline)
{
	W_ATOMIC(uint32_t) *sleeper;
	bool taken, slept = false;

	/* relaxed: [SHUFFLE-6] publishes it */
	w_store_relaxed(&node->before, NULL);
	node->node.where = arrival.group * CFL_DOMAINS + arrival.domain;
	if (shfl_enter(&lock->tail, &node->node, cfl_units(arrival.held)))
		cfl_announce_alone(lock, &node->node);
	else if (!cfl_wait_turn(lock, node, policy, deadline, &slept))
		return false;
	taken = cfl_take_as_head(lock, node, policy, arrival.thefts + policy.bypass, deadline,
				 &slept);
	if (taken && slept)
		cfl_shuffle_awakened(lock, node, policy);
	sleeper = shfl_leave_by(&lock->tail, &node->node, policy.wait, cfl_retire, lock);
	if (taken)
		cfl_begin_after(lock, arrival);
	if (sleeper && taken)
		heir_name(&lock->heir, sleeper, &lock->state, CFL_HEIR);
	else if (sleeper)
		w_unpark(sleeper);
	return taken;
}

/* Slow path: @lock was not free. Returns false if @deadline (NULL: none) passes first. */
static W_SLOW bool cfl_acquire_slow(struct cfl *lock, struct cfl_policy policy,
				    const struct w_deadline *deadline)
{
	struct cfl_arrival arrival;

	(void)cfl_drop_waiters(lock);
	arrival = cfl_arrive(lock, w_now());
	if (cfl_steal(lock, arrival))
		return true;
	/*
	 * A walker may read the node after we have left: it comes from the pool, not from the
	 * stack.
	 */
	return cfl_acquire_queued(lock, w_node_get(), policy, arrival, deadline);
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool cfl_acquire_by(struct cfl *lock, struct cfl_policy policy,
				  const struct w_deadline *deadline)
{
	if (w_unlikely(policy.strict_guarantee))
		cfl_idle(lock);
	return w_likely(cfl_take_free(lock)) || cfl_acquire_slow(lock, policy, deadline);
}

/* Releases @lock. Returns false, and changes nothing, if it was not held. */
static inline bool cfl_release_by(struct cfl *lock, struct cfl_policy policy)
{
	uint64_t cost;
	bool waited;

	/* relaxed: only the holder clears it, so it reads its own write */
	if (w_unlikely(!(w_load_relaxed(&lock->state) & CFL_LOCKED)))
		return false;
	/* relaxed: a waiter that arrives late loses no more than its wait */
	waited = w_load_relaxed(&lock->tail);
	if (w_unlikely(waited || policy.strict_guarantee)) {
		cost = cfl_charge(lock);
		if (!waited)
			cfl_track_average(lock, cost);
	}
	cfl_give(lock);
	return true;
}

/* ---- A lock ---- */

/*
 * Defines the lock @name, with the functions of locks.def. @head_sleeps: whether the head of its
 * queue sleeps under wait=park. Zeroed memory is an unlocked lock. Its
 * settings are those of struct cfl_policy.
 */
#define CFL_LOCK(name, head_sleeps)                                                           \
	struct name {                                                                         \
		struct cfl cfl;                                                               \
	};                                                                                    \
                                                                                              \
	struct name##_policy {                                                                \
		enum wait wait;                                                               \
		uint32_t bypass, grace_period, strict_guarantee;                              \
	};                                                                                    \
                                                                                              \
	static inline size_t name##_size(void)                                                \
	{                                                                                     \
		return sizeof(struct name);                                                   \
	}                                                                                     \
                                                                                              \
	static inline void name##_init(struct name *lock, size_t size)                        \
	{                                                                                     \
		(void)lock, (void)size;                                                       \
	}                                                                                     \
                                                                                              \
	static inline bool name##_try_acquire(struct name *lock)                              \
	{                                                                                     \
		return cfl_try_acquire_by(&lock->cfl);                                        \
	}                                                                                     \
                                                                                              \
	static inline bool name##_acquire(struct name *lock, struct name##_policy policy,     \
					  const struct w_deadline *deadline)                  \
	{                                                                                     \
		return cfl_acquire_by(&lock->cfl, CFL_POLICY(policy, head_sleeps), deadline); \
	}                                                                                     \
                                                                                              \
	static inline bool name##_release(struct name *lock, struct name##_policy policy)     \
	{                                                                                     \
		return cfl_release_by(&lock->cfl, CFL_POLICY(policy, head_sleeps));           \
	}

#endif
