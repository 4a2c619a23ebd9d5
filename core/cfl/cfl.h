/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CFL: a shuffled queue that schedules the time for which a lock is held as CFS schedules the CPU. What cfl_spin.h and
 * cfl_mutex.h share; they differ in whether the head of the queue sleeps.
 *
 * From: Park and Eom, "Locks as a resource: fairly scheduling lock occupation with CFL", PPoPP'24, section 3. What is
 * changed, and why: cfl_order.h, which has all but the word.
 *
 * The word:
 *   state = LOCKED | PARKED | HEIR
 *     LOCKED  legal to set if state == 0: by a newcomer that finds no queue, or is entitled to pass it; by the head. To
 *             clear, with all else, by the holder
 *     PARKED  the head sleeps on state. Legal to set by the head if LOCKED
 *     HEIR    the head sleeps on its own status, at `heir`. Legal to set by the holder
 *
 *   0 ──newcomer, head──▶ LOCKED ──release──▶ 0
 *   LOCKED ──head──▶ LOCKED|PARKED ──release, unpark──▶ 0
 *   LOCKED ──head that became the holder──▶ LOCKED|HEIR ──release, unpark──▶ 0
 */
#ifndef POUNDLOCK_CFL_H
#define POUNDLOCK_CFL_H

#include "cfl/cfl_order.h"
#include "part/generation.h"

#define CFL_LOCKED 1u
#define CFL_PARKED 2u
#define CFL_HEIR 4u

/* Who embeds it in a frame of another form declares that, and where the rest is. */
#ifndef CFL_FRAME
struct cfl {
	shfl_tail tail;
	W_ATOMIC(uint32_t) *heir; /* the holder's; an address to unpark, never to read */
	W_ATOMIC(uint32_t) state;
	W_ATOMIC(uint32_t) generation;
	W_ATOMIC(uint32_t) limit; /* of thefts; the head's */
	uint64_t start;           /* when the hold began; the holder's */
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

/* As the new holder, lets the time begin. */
static inline void cfl_begin(struct cfl *lock)
{
	lock->start = w_now();
}

/* As the new holder that had to wait or to steal. */
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

/* In a forked child: drops the waiters that do not exist here. Whether it did. */
static inline bool cfl_drop_waiters(struct cfl *lock)
{
	if (w_likely(!generation_claim(cfl_generation(lock))))
		return false;
	/* relaxed, both: [GENERATION-3] publishes them, and nobody queues until then */
	w_store_relaxed(&lock->tail, NULL);
	(void)w_fetch_and_relaxed(&lock->state, CFL_LOCKED);
	generation_settle(cfl_generation(lock));
	return true;
}

/* Takes the word, whoever waits. */
static inline bool cfl_take(struct cfl *lock)
{
	uint32_t seen = 0;

	/* [CFL-1] acquire: pairs with [CFL-2]; the last holder's critical section */
	return w_compare_exchange_acquire(&lock->state, &seen, CFL_LOCKED);
}

/* Releases the word, as its holder. */
static inline void cfl_give(struct cfl *lock)
{
	W_ATOMIC(uint32_t) *heir = lock->heir, *state = &lock->state;
	/* [CFL-2] release: pairs with [CFL-1]; our critical section */
	uint32_t seen = w_exchange_release(state, 0);

	if (seen & CFL_HEIR) {
		w_event(wake_late);
		w_unpark(heir);
	}
	if (seen & CFL_PARKED) {
		w_event(wake_late);
		w_unpark(state);
	}
}

/* Takes @lock, past those who wait, if the head has not been passed too often. Section 3.3. */
static inline bool cfl_steal(struct cfl *lock, struct cfl_arrival arrival)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint32_t thefts;

	if (!cfl_is_owed(lock, arrival.group, arrival.domain, arrival.held) || !cfl_take(lock))
		return false;
	/* relaxed, all: a count; the limit may be a little old, and the head then waits for one more */
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

/* Takes @lock if nobody waits and it is free. */
static inline bool cfl_take_free(struct cfl *lock)
{
	/* relaxed: a stale NULL lets us pass one waiter, once; [CFL-1] orders what matters */
	if (w_load_relaxed(&lock->tail) || !cfl_take(lock))
		return false;
	cfl_begin(lock);
	return true;
}

/* Takes @lock if it is free for this thread: nobody waits, or it is entitled to pass. */
static inline bool cfl_try_acquire_by(struct cfl *lock)
{
	struct cfl_arrival arrival;

	if (w_likely(cfl_take_free(lock)))
		return true;
	/* relaxed, both: hints; what follows looks again */
	if (w_load_relaxed(&lock->state) & CFL_LOCKED || !w_load_relaxed(&lock->tail))
		return false;
	if (cfl_drop_waiters(lock))
		return cfl_take_free(lock);
	arrival = cfl_arrive(lock, w_now());
	return cfl_steal(lock, arrival);
}

/* As the head, sleeps until a release. */
static inline void cfl_park(struct cfl *lock, uint32_t seen, const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; the releaser learns only that there is somebody to wake */
	if (!(seen & CFL_PARKED) && !w_compare_exchange_relaxed(&lock->state, &seen, seen | CFL_PARKED))
		return;
	w_event(park);
	w_park(&lock->state, seen | CFL_PARKED, deadline);
}

/*
 * As the head, lets the last holder take the lock once more, if that is owed it: for a moment, and more seldom each time
 * that it does not come. What it wants is its own to know; but a thread that is owed more than one turn usually comes at
 * once, and it has further to go than we.
 */
static inline void cfl_give_way(struct cfl *lock)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);

	/* relaxed, all: hints, which may be wrong */
	if (w_load_relaxed(&lock->state) || !w_load_relaxed(&ledger->back) ||
	    (int32_t)(w_load_relaxed(&ledger->thefts) - w_load_relaxed(&lock->limit)) >= 0 || cfl_skips(ledger))
		return;
	/* [CFL-3] acquire: pairs with nothing; [CFL-1] reads again */
	cfl_gave_way(ledger, w_wait_acquire(&lock->state, VAL & CFL_LOCKED, W_BRIEF, NULL) & CFL_LOCKED);
}

/* As the head of the queue, takes the word. False if the deadline passed first. */
static inline bool cfl_take_as_head(struct cfl *lock, struct cfl_node *node, struct cfl_policy policy, uint32_t limit,
				    const struct w_deadline *deadline, bool *slept)
{
	enum w_how how = policy.sleeps ? W_POLITE : wait_soon(policy.wait);
	struct shfl_stop stop = {.word = &lock->state, .mask = CFL_LOCKED, .value = 0};
	uint32_t seen;

	/* One that was brought forward lets no more pass those that it passed. relaxed: thieves may see it late, each once */
	if (!(node->node.where & CFL_BROUGHT))
		w_store_relaxed(&lock->limit, limit);
	for (cfl_give_way(lock); !cfl_take(lock); cfl_give_way(lock)) {
		if (shfl_head_shuffles(&node->node))
			cfl_shuffle(lock, node, stop, true, policy.wait == WAIT_PARK && !*slept, policy);
		/* [CFL-4] acquire: pairs with nothing; [CFL-1] reads again */
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
 * As the head that has taken the lock and had slept, shuffles if that is up to it: where all sleep nobody else does, and the
 * queue would be served as it came. It is once a batch, before the hold begins, and short beside the wake-up.
 */
static inline void cfl_shuffle_awakened(struct cfl *lock, struct cfl_node *node, struct cfl_policy policy)
{
	struct shfl_stop never = {.word = &lock->state, .mask = 0, .value = 1};

	if (shfl_head_shuffles(&node->node))
		cfl_shuffle(lock, node, never, true, false, policy);
}

static inline bool cfl_acquire_queued(struct cfl *lock, struct cfl_node *node, struct cfl_policy policy,
				      struct cfl_arrival arrival, const struct w_deadline *deadline)
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
	taken = cfl_take_as_head(lock, node, policy, arrival.thefts + policy.bypass, deadline, &slept);
	if (taken && slept)
		cfl_shuffle_awakened(lock, node, policy);
	sleeper = shfl_leave_by(&lock->tail, &node->node, policy.wait, cfl_part, lock);
	if (taken)
		cfl_begin_after(lock, arrival);
	if (!sleeper)
		return taken;
	if (!taken) {
		w_unpark(sleeper);
		return false;
	}
	lock->heir = sleeper;
	/* relaxed: only our own release, or that of a thread we synchronise with, acts on it */
	(void)w_fetch_or_relaxed(&lock->state, CFL_HEIR);
	return true;
}

/* Takes @lock, which was not free a moment ago. */
static W_SLOW bool cfl_acquire_slow(struct cfl *lock, struct cfl_policy policy, const struct w_deadline *deadline)
{
	struct cfl_arrival arrival;

	(void)cfl_drop_waiters(lock);
	arrival = cfl_arrive(lock, w_now());
	if (cfl_steal(lock, arrival))
		return true;
	/* A walker may look at the node when we have gone: it is of the pool, not of the stack. */
	return cfl_acquire_queued(lock, w_node_get(), policy, arrival, deadline);
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool cfl_acquire_by(struct cfl *lock, struct cfl_policy policy, const struct w_deadline *deadline)
{
	if (w_unlikely(policy.strict_guarantee))
		cfl_idle(lock);
	return w_likely(cfl_take_free(lock)) || cfl_acquire_slow(lock, policy, deadline);
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool cfl_release_by(struct cfl *lock, struct cfl_policy policy)
{
	uint64_t cost;
	bool waited;

	/* relaxed: only the holder can clear it, so the holder reads its own doing */
	if (w_unlikely(!(w_load_relaxed(&lock->state) & CFL_LOCKED)))
		return false;
	/* relaxed: who comes late is not hurt by more than it waits */
	waited = w_load_relaxed(&lock->tail);
	if (w_unlikely(waited || policy.strict_guarantee)) {
		cost = cfl_charge(lock);
		if (!waited)
			cfl_follow(lock, cost);
	}
	cfl_give(lock);
	return true;
}

#endif
