/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Lock cohorting: one lock per domain and one between the domains. A holder with a successor in its
 * domain leaves the global lock to that one, a bounded number of times.
 *
 * From: Dice, Marathe and Shavit, "Lock cohorting: a general technique for designing NUMA locks",
 * PPoPP'12 and TOPC'15. The mechanism is here; c_bo_mcs.h, c_tkt_tkt.h and c_ptl_tkt.h choose its
 * locks.
 *
 * The paper's two conditions on the locks (section 2): the global lock may be released by another
 * thread than took it; the local lock tells its holder whether it has a successor, and may only err
 * by missing a newcomer.
 *
 *   global ── one of BO, TKT, PTL
 *   places[0]   local lock, MCS or TKT   passed, owns   (slot of PTL)
 *   places[1]   ...                      one per domain, in cache lines of its own
 *
 *   local   owns    global   meaning, for a domain
 *   free    -       any      no thread of it is here
 *   held    false   other    its holder waits for the global lock
 *   held    false   its      its holder has the lock (or: trylock's holder, without a place)
 *   held    true    its      the lock was passed to its holder, which is about to notice
 *
 * passed and owns belong to the local lock's holder; `holder` to that of the lock.
 *
 * Departures from the paper:
 *  - A release that ends the cohort's turn releases the local lock before the global one. The
 *    global lock's release is then the last access to the lock, and the next holder may free all of
 *    it.
 *  - trylock takes the global lock alone, past the local ones: it neither waits nor leaves anything
 *    half taken.
 *  - Local waiters cannot leave (the paper's abortable form is another lock): a timed waiter polls.
 *  - All domains' places are allocated with the lock, in one box.
 */
#ifndef POUNDLOCK_COHORT_H
#define POUNDLOCK_COHORT_H

#include "part/backoff.h"
#include "part/generation.h"
#include "mcs.h"
#include "part/partitioned.h"
#include "ttas.h"

/*
 * First pause of a spinning waiter for a global BO, in pause instructions, as in Concurrency Kit
 * and LiTL.
 */
#define COHORT_FIRST_PAUSE 512

enum cohort_global { COHORT_BO, COHORT_TKT, COHORT_PTL };
enum cohort_local { COHORT_LOCAL_MCS, COHORT_LOCAL_TKT };

/* The composition of a cohort lock, known to the compiler, and its settings. */
struct cohort_policy {
	enum cohort_global global;
	enum cohort_local local;
	enum wait wait;
	uint32_t batch;   /* consecutive hand-overs within one domain */
	uint32_t backoff; /* wait=spin: longest pause of a waiter for a global BO; at least 1 */
};

struct cohort_place {
	union {
		_Alignas(64) struct mcs mcs;
		struct tickets tickets;
	};
	uint32_t passed; /* consecutive hand-overs since the domain took the lock */
	bool owns;       /* whether the next holder of the local lock gets the global one with it */
	_Alignas(64) W_ATOMIC(uint32_t) slot;
};

struct cohort {
	union {
		_Alignas(64) struct ttas bo;
		struct tickets tkt;
		struct partitioned ptl;
	};
	W_ATOMIC(uint32_t) generation;
	uint32_t domains;
	/* Place with which the lock was last taken; NULL: without one. */
	struct cohort_place *holder;
};

static inline struct cohort_place *cohort_places(struct cohort *lock)
{
	return (struct cohort_place *)(lock + 1);
}

static inline size_t cohort_size(void)
{
	return sizeof(struct cohort) + w_domain_count() * sizeof(struct cohort_place);
}

static inline void cohort_init(struct cohort *lock, size_t size)
{
	lock->domains = (uint32_t)((size - sizeof(struct cohort)) / sizeof(struct cohort_place));
}

/* ---- The global lock ---- */

static inline W_ATOMIC(uint32_t) *cohort_slot(struct cohort *lock, uint32_t number)
{
	return &cohort_places(lock)[partitioned_slot(number, lock->domains)].slot;
}

static inline bool cohort_global_try_acquire(struct cohort *lock, enum cohort_global global)
{
	uint32_t number;

	if (global == COHORT_BO)
		return ttas_try_acquire(&lock->bo);
	if (global == COHORT_TKT)
		return tickets_try_acquire(&lock->tkt);
	/* relaxed: the compare-exchange decides */
	number = w_load_relaxed(&lock->ptl.next);
	return partitioned_try_acquire(&lock->ptl, cohort_slot(lock, number), number);
}

/* Takes the global BO, which was held, with exponential back-off after each failed read. */
static W_SLOW void cohort_back_off(struct ttas *bo, uint32_t most)
{
	uint32_t pauses = COHORT_FIRST_PAUSE, spun = 0;

	w_event(contended);
	do {
		/* relaxed: only a hint; [TTAS-1] decides */
		while (w_load_relaxed(&bo->word) != TTAS_FREE) {
			pauses = backoff_pause(pauses, most);
			backoff_yield(WAIT_SPIN, &spun, pauses);
		}
	} while (!ttas_try_acquire(bo));
}

/* Spinning waiters back off. The others yield or sleep, which is enough. */
static inline void cohort_bo_acquire(struct ttas *bo, struct cohort_policy policy)
{
	if (policy.wait != WAIT_SPIN)
		(void)ttas_acquire(bo, (struct ttas_policy){policy.wait, 0}, NULL);
	else if (w_unlikely(!ttas_try_acquire(bo)))
		cohort_back_off(bo, policy.backoff);
}

static inline void cohort_global_acquire(struct cohort *lock, struct cohort_policy policy)
{
	uint32_t number;

	if (policy.global == COHORT_BO) {
		cohort_bo_acquire(&lock->bo, policy);
	} else if (policy.global == COHORT_TKT) {
		tickets_acquire(&lock->tkt, policy.wait, 0);
	} else {
		/* relaxed: the slots order the critical sections */
		number = w_fetch_add_relaxed(&lock->ptl.next, TICKETS_STEP);
		tickets_await(cohort_slot(lock, number), number, policy.wait, 0);
	}
}

static inline void cohort_global_release(struct cohort *lock, struct cohort_policy policy)
{
	uint32_t number;

	if (policy.global == COHORT_BO) {
		(void)ttas_release(&lock->bo, (struct ttas_policy){.wait = policy.wait});
	} else if (policy.global == COHORT_TKT) {
		tickets_release(&lock->tkt, policy.wait);
	} else {
		number = partitioned_move_on(&lock->ptl);
		tickets_serve(cohort_slot(lock, number), number, &lock->ptl.next, policy.wait);
	}
}

/* ---- The local lock ---- */

static inline void cohort_local_acquire(struct cohort_place *place, struct mcs_node *node,
					struct cohort_policy policy)
{
	if (policy.local == COHORT_LOCAL_MCS)
		(void)mcs_acquire(&place->mcs, node, (struct mcs_policy){policy.wait}, NULL);
	else
		tickets_acquire(&place->tickets, policy.wait, 0);
}

/* Returns whether the local lock's holder had no successor a moment ago. */
static inline bool cohort_local_alone(struct cohort_place *place, struct mcs_node *node,
				      enum cohort_local local)
{
	if (local == COHORT_LOCAL_MCS)
		/* relaxed: a hint, which may miss a newcomer */
		return !w_load_relaxed(&node->next);
	return tickets_count(&place->tickets) == 1;
}

static inline void cohort_local_release(struct cohort_place *place, struct mcs_node *node,
					struct cohort_policy policy)
{
	if (policy.local == COHORT_LOCAL_MCS)
		mcs_release(&place->mcs, node, (struct mcs_policy){policy.wait});
	else
		tickets_release(&place->tickets, policy.wait);
}

/* ---- Both ---- */

/* Records the current place. Writes only if it changes, so that a batch does not move the line. */
static inline void cohort_note_holder(struct cohort *lock, struct cohort_place *place)
{
	if (lock->holder != place)
		lock->holder = place;
}

/* Takes @lock if it is free. */
static inline bool cohort_try_acquire(struct cohort *lock, enum cohort_global global)
{
	if (!cohort_global_try_acquire(lock, global))
		return false;
	cohort_note_holder(lock, NULL);
	return true;
}

/* Polls @lock until the deadline. */
static W_SLOW bool cohort_poll(struct cohort *lock, enum cohort_global global,
			       const struct w_deadline *deadline)
{
	while (!cohort_try_acquire(lock, global)) {
		if (w_expired(deadline)) {
			w_event(abandon);
			return false;
		}
		w_yield();
	}
	return true;
}

/* Takes @lock. @node is for a local MCS. */
static inline void cohort_acquire(struct cohort *lock, struct mcs_node *node,
				  struct cohort_policy policy)
{
	struct cohort_place *place = &cohort_places(lock)[(uint32_t)w_domain() % lock->domains];

	cohort_local_acquire(place, node, policy);
	if (place->owns) {
		place->owns = false;
		return;
	}
	cohort_global_acquire(lock, policy);
	if (lock->holder && lock->holder != place)
		w_event(handover_remote);
	cohort_note_holder(lock, place);
}

/* Returns whether the holder at @place may leave the lock to a successor there. */
static inline bool cohort_may_pass(struct cohort_place *place, struct mcs_node *node,
				   struct cohort_policy policy)
{
	if (cohort_local_alone(place, node, policy.local))
		return false;
	if (place->passed < policy.batch)
		return true;
	w_event(batch);
	return false;
}

/* Releases @lock. */
static inline void cohort_release(struct cohort *lock, struct mcs_node *node,
				  struct cohort_policy policy)
{
	struct cohort_place *place = lock->holder;
	bool pass = place && cohort_may_pass(place, node, policy);

	if (place) {
		place->passed = pass ? place->passed + 1 : 0;
		place->owns = pass;
		if (pass)
			w_event(handover_local);
		cohort_local_release(place, node, policy);
	}
	if (!pass)
		cohort_global_release(lock, policy);
}

/*
 * In a forked child, discards all local waiters. If the lock is @held with a place, @node is its
 * holder's.
 */
static inline void cohort_drop_local_waiters(struct cohort *lock, struct mcs_node *node,
					     enum cohort_local local, bool held)
{
	for (uint32_t i = 0; i < lock->domains; i++) {
		struct cohort_place *place = &cohort_places(lock)[i];
		bool holds = held && place == lock->holder;

		place->owns = false;
		if (!holds)
			place->passed = 0;
		if (local == COHORT_LOCAL_TKT)
			tickets_drop_waiters(&place->tickets, holds);
		else if (holds)
			mcs_drop_waiters(&place->mcs, node);
		else
			/* relaxed: one thread repairs; [GENERATION-3] publishes the result */
			w_store_relaxed(&place->mcs.tail, NULL);
	}
}

/* In a forked child, discards all waiters of @lock, of local TKT, once. */
static inline void cohort_repair(struct cohort *lock, enum cohort_global global)
{
	uint32_t own;
	bool held;

	if (w_likely(!generation_claim(&lock->generation)))
		return;
	if (global == COHORT_TKT) {
		held = tickets_count(&lock->tkt);
		tickets_drop_waiters(&lock->tkt, held);
	} else {
		held = partitioned_count(&lock->ptl);
		own = partitioned_drop_waiters(&lock->ptl, held);
		/*
		 * relaxed: [GENERATION-3] publishes it. The parent's last holder may not have
		 * served it yet
		 */
		w_store_relaxed(cohort_slot(lock, own), own);
	}
	cohort_drop_local_waiters(lock, NULL, COHORT_LOCAL_TKT, held);
	generation_settle(&lock->generation);
}

/* ---- Cohort locks of tickets ---- */

/* Numbers of the global lock, TKT or PTL, that are not served yet, including the holder's. */
static inline uint32_t cohort_global_count(struct cohort *lock, enum cohort_global global)
{
	return global == COHORT_TKT ? tickets_count(&lock->tkt) : partitioned_count(&lock->ptl);
}

/*
 * Defines the cohort lock @name, with the functions of locks.def: local ticket locks, and
 * @global_lock (TKT or PTL) between the domains. `batch` as in struct cohort_policy.
 */
#define COHORT_OF_TICKETS(name, global_lock)                                                       \
	struct name {                                                                              \
		struct cohort cohort;                                                              \
	};                                                                                         \
                                                                                                   \
	struct name##_policy {                                                                     \
		enum wait wait;                                                                    \
		uint32_t batch;                                                                    \
	};                                                                                         \
                                                                                                   \
	static inline size_t name##_size(void)                                                     \
	{                                                                                          \
		return cohort_size();                                                              \
	}                                                                                          \
                                                                                                   \
	static inline void name##_init(struct name *lock, size_t size)                             \
	{                                                                                          \
		cohort_init(&lock->cohort, size);                                                  \
	}                                                                                          \
                                                                                                   \
	static inline struct cohort_policy name##_cohort(struct name##_policy policy)              \
	{                                                                                          \
		return (struct cohort_policy){COHORT_##global_lock, COHORT_LOCAL_TKT, policy.wait, \
					      policy.batch, 0};                                    \
	}                                                                                          \
                                                                                                   \
	static inline bool name##_try_acquire(struct name *lock)                                   \
	{                                                                                          \
		cohort_repair(&lock->cohort, COHORT_##global_lock);                                \
		return cohort_try_acquire(&lock->cohort, COHORT_##global_lock);                    \
	}                                                                                          \
                                                                                                   \
	static inline bool name##_acquire(struct name *lock, struct name##_policy policy,          \
					  const struct w_deadline *deadline)                       \
	{                                                                                          \
		cohort_repair(&lock->cohort, COHORT_##global_lock);                                \
		if (deadline)                                                                      \
			return cohort_poll(&lock->cohort, COHORT_##global_lock, deadline);         \
		cohort_acquire(&lock->cohort, NULL, name##_cohort(policy));                        \
		return true;                                                                       \
	}                                                                                          \
                                                                                                   \
	static inline bool name##_release(struct name *lock, struct name##_policy policy)          \
	{                                                                                          \
		cohort_repair(&lock->cohort, COHORT_##global_lock);                                \
		if (w_unlikely(!cohort_global_count(&lock->cohort, COHORT_##global_lock)))         \
			return false;                                                              \
		cohort_release(&lock->cohort, NULL, name##_cohort(policy));                        \
		return true;                                                                       \
	}

#endif
