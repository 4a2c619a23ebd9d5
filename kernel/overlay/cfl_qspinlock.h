/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CFL around the kernel's word; included by qspinlock.c, and by the model checker's client of it
 * (tests/check/kernel_cfl.c). The queue and order are those of core/cfl/order.h. Groups are the
 * cgroups of the cpu controller, by cpu.weight; inside a group, tasks share by nice. Interrupt
 * handlers belong to no group.
 *
 * A release is a store that is inlined everywhere and charges nothing. So the next holder charges:
 * a thread that takes the word in the slow path marks it SIGNED and writes its identity to the
 * lock's `hold`. The queue head, which becomes head as the hold begins, charges the hold when it
 * sees the word become free. A hold that began in the fast path has no owner. A hold that had no
 * waiters at first is charged for the waited part only.
 *
 * With two tasks there is one waiter and no order to choose; with few tasks, one that is owed more
 * than every other turn returns behind a head that no shuffler moves. So there is stealing, as in
 * core/cfl_spin.h, but only when the head allows it:
 *
 *   bits  31 .. 16   15 .. 9   8      7 .. 0
 *          tail      unused    OPEN   0, LOCKED, or LOCKED|SIGNED
 *
 *   OPEN  set by the head while the lock is free; cleared by a thief or the head as it takes the
 *         lock
 *
 *   tail|LOCKED.. ──release──▶ tail ──head──▶ tail|LOCKED|SIGNED
 *                               │ head, having charged                          ▲            ▲
 *                               ╰──────────▶ tail|OPEN ──newcomer that is owed──╯            │
 *                                              ╰──head, after a wait for a thief─────────────╯
 *
 * The head opens the lock if the last holder is owed more after the charge, for no longer than that
 * hold took. A newcomer that finds the lock free with a queue waits for the head's decision, since
 * it is usually the last holder.
 *
 * Promises: as core/cfl_spin.h with default settings: at most `bypass` later waiters are moved
 * before a waiter, and at most as many thieves pass it, each with its head's permission. Two locks
 * that share a ledger may lose a charge when they write at once; they never add one.
 */
#ifndef POUNDLOCK_KERNEL_CFL_QSPINLOCK_H
#define POUNDLOCK_KERNEL_CFL_QSPINLOCK_H

struct cfl {
	struct qspinlock word;
};

#include "ledgers.h"

#define SIGNED (_Q_LOCKED_VAL << 1)
#define TAKEN (_Q_LOCKED_VAL | SIGNED)
#define OPEN _Q_PENDING_VAL

/* The owner of a hold that began in the slow path. Written by the holder, then by the head. */
struct hold {
	const struct cfl *lock; /* distinguishes locks that share a ledger */
	struct w_account *account;
	u32 weight; /* the task's account */
	struct cfl_payer payer;
} ____cacheline_aligned;

static DEFINE_PER_LEDGER(struct hold, holds);

/* Waiters by group, of all locks that share a ledger. */
struct waiting_groups {
	atomic_t waiters[CFL_GROUPS];
} ____cacheline_aligned;

static DEFINE_PER_LEDGER(struct waiting_groups, waiting_groups);

static inline struct hold *hold_of(const struct cfl *lock)
{
	return per_ledger(holds, lock);
}

/* ---- Charging ---- */

/* Begins the new holder's hold, in the name of the task. */
static inline void cfl_sign(struct cfl *lock, struct cfl_arrival arrival)
{
	struct hold *hold = hold_of(lock);

	cfl_begin_group(lock, arrival);
	WRITE_ONCE(hold->lock, lock);
	WRITE_ONCE(hold->account, w_account(lock));
	WRITE_ONCE(hold->weight, w_weight());
	WRITE_ONCE(hold->payer.group, w_group());
	WRITE_ONCE(hold->payer.weight, w_group_weight(w_group()));
	WRITE_ONCE(hold->payer.domain, w_domain());
	WRITE_ONCE(hold->payer.held, arrival.held);
}

/*
 * Finds the waiting group with the least time. A shuffler's note of it is stale after several
 * thefts in a row: the queue does not change meanwhile, and the thieves' group soon overtakes a
 * group that waits behind the head.
 */
static inline void cfl_note_least_group(struct cfl *lock)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	const atomic_t *waiters = per_ledger(waiting_groups, lock)->waiters;
	u32 group, least = CFL_GROUPS;

	/* relaxed, both: times may be stale; only the order depends on them */
	for (group = 0; group < CFL_GROUPS; group++)
		if (atomic_read(&waiters[group]) &&
		    (least == CFL_GROUPS ||
		     w_load_relaxed(&ledger->held[group]) < w_load_relaxed(&ledger->held[least])))
			least = group;
	if (least < CFL_GROUPS)
		/* relaxed: as above */
		w_store_relaxed(&ledger->least_group, least);
}

/*
 * Charges a signed hold that just ended, from @since on, by the head's own clock, which need not
 * agree with the holder's. Returns its length; 0 if its owner is unknown.
 */
static inline u64 cfl_bill(struct cfl *lock, u64 since)
{
	struct hold *hold = hold_of(lock);
	u64 now = w_now(), time = hold_time(since, now), cost;
	struct w_account *account = READ_ONCE(hold->account);
	struct cfl_payer payer;

	if (READ_ONCE(hold->lock) != lock)
		return 0;
	cost = hold_virtual(time, READ_ONCE(hold->weight));
	payer.group = READ_ONCE(hold->payer.group);
	payer.weight = READ_ONCE(hold->payer.weight);
	payer.domain = READ_ONCE(hold->payer.domain);
	payer.held = READ_ONCE(hold->payer.held) + cost;
	if (READ_ONCE(account->lock) == lock) {
		/* relaxed, both: the owner reads them at its next arrival */
		(void)w_fetch_add_relaxed(&account->billed, cost);
		w_store_relaxed(&account->billed_at, now);
	}
	cfl_note_least_group(lock);
	cfl_charge_to(lock, payer, time, now);
	return time;
}

/* Enters the newcomer's charges into its account, and arrives. */
static inline struct cfl_arrival cfl_arrive_billed(struct cfl *lock)
{
	struct w_account *account = w_account(lock);

	/* relaxed, both: sums that may arrive late */
	account->held += w_exchange_relaxed(&account->billed, 0);
	account->until = w_load_relaxed(&account->billed_at);
	return cfl_arrive(lock, w_now());
}

/* ---- Stealing ---- */

/*
 * Waits a bounded time for the decision of @lock's head. Called by a newcomer that finds the lock
 * free behind a queue.
 */
static inline void cfl_await_head(struct cfl *lock)
{
	/* acquire: pairs with the release of cfl_open(); the head's charge */
	(void)w_wait_acquire(&lock->word.val.counter,
			     !(VAL & _Q_TAIL_MASK) || VAL & _Q_LOCKED_PENDING_MASK, W_BRIEF, NULL);
}

/* Takes @lock if its head allows it and the task is owed time. */
static inline bool cfl_steal(struct cfl *lock, struct cfl_arrival arrival)
{
	u16 seen = OPEN;

	if (READ_ONCE(lock->word.locked_pending) != OPEN ||
	    !cfl_may_overtake(lock, arrival.group, arrival.domain, arrival.held))
		return false;
	/*
	 * acquire: pairs with the last holder's release of its byte, its critical section; and with
	 * the release of cfl_open()
	 */
	if (!try_cmpxchg_acquire(&lock->word.locked_pending, &seen, TAKEN))
		return false;
	/* relaxed: a count */
	(void)w_fetch_add_relaxed(&cfl_ledger(lock)->thefts, 1);
	w_event(steal);
	cfl_sign(lock, arrival);
	return true;
}

/*
 * Opens the free @lock to threads that are owed time, if the last holder may be one of them: for at
 * most @time, the hold that the head just charged, and at most @limit thefts in total. Returns
 * whether it opened the lock; a thief may have taken it since.
 */
static inline bool cfl_open(struct cfl *lock, u64 time, u32 limit)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	struct w_deadline deadline;

	/* relaxed, both: hints; but thefts counts every theft of this lock so far */
	if (!time || !w_load_relaxed(&ledger->may_return) ||
	    (s32)(w_load_relaxed(&ledger->thefts) - limit) >= 0 || cfl_skips_yield(ledger))
		return false;
	deadline = w_deadline_at(w_now() + time);
	/*
	 * release: pairs with the acquires of cfl_await_head() and cfl_steal(); the charge, which
	 * read the hold that a thief writes
	 */
	smp_store_release(&lock->word.pending, OPEN >> _Q_PENDING_OFFSET);
	cfl_record_yield(ledger, w_wait_acquire(&lock->word.locked_pending, VAL != OPEN, W_BRIEF,
						&deadline) != OPEN);
	return true;
}

/* ---- The queue ---- */

/* A node that no other CPU reads any more; NULL if there is none. */
static inline struct place *cfl_claim_place(void)
{
	unsigned int index;
	struct place *place;
	u32 seen;

	for (index = 0; index < MAX_NODES; index++) {
		place = this_cpu_ptr(&places[index]);
		seen = SHFL_FREE;
		/*
		 * acquire: pairs with the release of node_free(); its last user and its readers are
		 * done
		 */
		if (try_cmpxchg_acquire(&place->cfl.node.status, &seen, SHFL_WAITING)) {
			place->name = name_of_place(index);
			return place;
		}
	}
	return NULL;
}

/* A queue head that takes the lock. */
struct cfl_head {
	struct cfl *lock;
	u32 limit; /* of thefts */
};

/* Removes the head's node from the queue, as cfl_retire(), and hands its notes to the next head. */
static inline bool cfl_part_limited(void *context, struct shfl_node *next)
{
	const struct cfl_head *head = context;

	container_of(next, struct place, cfl.node)->limit = head->limit;
	return cfl_retire(head->lock, next);
}

/* Takes the word as the queue head. @is_signed: whether the previous hold was signed. */
static inline void cfl_take_as_head(struct cfl_head head, struct cfl_node *node, bool is_signed,
				    struct cfl_policy policy)
{
	struct qspinlock *word = &head.lock->word;
	const struct shfl_stop stop = {(u32 *)&word->val.counter, _Q_LOCKED_MASK, 0};
	u64 since;
	u16 seen;

	do {
		/* The hold to wait for has just begun, or this waiter found the queue empty. */
		since = w_now();
		if (READ_ONCE(word->locked) && shfl_head_shuffles(&node->node))
			cfl_shuffle(head.lock, node, stop, true, false, policy);
		/* acquire: pairs with the release; the last critical section */
		(void)smp_cond_load_acquire(&word->locked, !VAL);
		seen = is_signed && cfl_open(head.lock, cfl_bill(head.lock, since), head.limit)
			       ? OPEN
			       : 0;
		/* The next hold is the thief's. */
		is_signed = true;
		/*
		 * relaxed: the wait has acquired the last critical section. A thief can only take
		 * the lock while it is OPEN, and then this fails, even if the thief has left
		 */
	} while (!try_cmpxchg_relaxed(&word->locked_pending, &seen, TAKEN));
}

static noinline void cfl_queue(struct cfl *lock, struct place *place, struct cfl_arrival arrival)
{
#define SET(lock, key, otherwise, ...) .key = (otherwise),
	const struct cfl_policy policy = {.wait = WAIT_SPIN, CFL_SETTINGS(SET, cfl)};
#undef SET
	struct cfl_head head = {lock, arrival.thefts + policy.bypass};
	atomic_t *waiters = &per_ledger(waiting_groups, lock)->waiters[arrival.group];
	bool is_signed = true, slept = false;

	/* relaxed: the tail publishes it */
	w_store_relaxed(&place->cfl.before, NULL);
	atomic_inc(waiters);
	place->cfl.node.where = arrival.group * CFL_DOMAINS + arrival.domain;
	if (shfl_enter(&lock->word.tail, &place->cfl.node, cfl_units(arrival.held))) {
		is_signed = READ_ONCE(lock->word.locked) & SIGNED;
		cfl_announce_alone(lock, &place->cfl.node);
	} else {
		(void)cfl_wait_turn(lock, &place->cfl, policy, NULL, &slept);
	}
	/* A waiter that was moved forward admits no more moves past the waiters it passed. */
	if (place->cfl.node.where & CFL_MOVED)
		head.limit = place->limit;
	cfl_take_as_head(head, &place->cfl, is_signed, policy);
	atomic_dec(waiters);
	(void)shfl_leave_by(&lock->word.tail, &place->cfl.node, WAIT_SPIN, cfl_part_limited, &head);
	cfl_sign(lock, arrival);
}

static noinline void __lockfunc cfl_spin_lock_slowpath(struct qspinlock *word, u32 val)
{
	struct cfl *lock = (struct cfl *)word;
	struct cfl_arrival arrival;
	struct place *place;

	lockevent_inc(lock_slowpath);
	trace_contention_begin(lock, LCB_F_SPIN);
	cfl_await_head(lock);
	arrival = cfl_arrive_billed(lock);
	if (cfl_steal(lock, arrival))
		goto taken;
	place = cfl_claim_place();
	if (unlikely(!place))
		lockevent_inc(lock_no_node);
	while (!place) {
		if (queued_spin_trylock(word))
			goto taken;
		cpu_relax();
		place = cfl_claim_place();
	}
	cfl_queue(lock, place, arrival);
taken:
	trace_poundlock_handover(lock);
	trace_contention_end(lock, 0);
}

#endif
