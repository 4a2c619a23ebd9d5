/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A condition variable for any lock. Waiters wait in a list, each on its own node: they spin for a
 * bounded time, then sleep.
 *
 * Promise: a signal wakes the thread that has waited longest, and no thread that begins to wait
 * after it. A broadcast wakes all threads that wait, those with the same lock one after another. A
 * waiter that reaches its deadline consumes no signal. 16 bytes; one node per waiter. The memory
 * may be freed as soon as no thread waits and no call other than a wait is in progress: a waiter
 * that was woken does not access it any more.
 *
 *   last ──▶ [newest] ─next─▶ [eldest] ─next─▶ ... ─next─▶ [newest]      (also linked backwards)
 *
 * The status of a node; 0 (NODE_FREE): the node is free.
 *
 *   WAITING ──signal, broadcast──▶ CLAIMED ──the notifier, or the waiter before it──▶ WOKEN
 *   WAITING ──deadline──▶ LEAVING
 *   BARRIER ──the last waiter before it has left──▶ WOKEN
 *
 *   WAITING -> CLAIMED: with the list locked, which the node leaves. The deadline no longer counts
 *   WAITING -> LEAVING: by the waiter, without the list's lock. It then locks the list and removes
 *              its node
 *   -> WOKEN:  without the list's lock; the last access to the node by another thread, which wakes
 *              the waiter if it was ASLEEP
 *
 * ASLEEP is a flag beside WAITING, CLAIMED and BARRIER: the waiter sleeps, or is about to. It sets
 * the flag when its spin has failed. All changes but to WOKEN keep it.
 *
 * Broadcast. If all waiters were woken at once, all but one would find the lock taken and sleep
 * again. So the broadcast takes all of them out of the list and wakes the first of each run of
 * waiters with the same lock. Each waiter wakes the next of its run when it has the lock again.
 *
 * One lock. A wait that allows no other lock is refused, with the list locked, while a thread waits
 * with another one.
 *
 * Freeing. A waiter at its deadline cannot know whether a broadcast has just removed it and the
 * memory is gone: it must not lock the list to find out. So it first announces that it will
 * (LEAVING); a node that is CLAIMED already was signalled. A broadcast that finds announced waiters
 * returns only when those have left the list, and so does a signal that finds no others. It waits
 * in the list itself, as a BARRIER behind them.
 *
 * docs/decisions/condition-variables.md has the reasons.
 */
#ifndef POUNDLOCK_COND_H
#define POUNDLOCK_COND_H

#include "part/generation.h"
#include "part/list_lock.h"
#include "part/wait.h"

enum { COND_WAITING = NODE_FREE + 1, COND_CLAIMED, COND_LEAVING, COND_BARRIER, COND_WOKEN };

#define COND_ASLEEP 8u /* with WAITING, CLAIMED or BARRIER */

/* The list's lock protects the links. A run of claimed nodes ends with NULL. */
struct cond_waiter {
	W_ATOMIC(uint32_t) status;
	const void *lock; /* identifies the waiter's lock; never dereferenced */
	struct cond_waiter *next;
	struct cond_waiter *previous;
};

/* Zeroed memory has no waiters. */
struct cond {
	W_ATOMIC(struct cond_waiter *) last; /* changed with the list locked; NULL: empty */
	W_ATOMIC(uint32_t) list;             /* 1: `last` and the links are locked */
	W_ATOMIC(uint32_t) generation;
};

/* A waiter's lock, and how to unlock it and lock it again. */
struct cond_lock {
	void *lock;
	void (*release)(void *lock);
	void (*acquire)(void *lock);
	bool only; /* refuse to wait while a thread waits with another lock */
};

/* ---- The list ---- */

/* In a forked child, discards the parent's waiters. */
static inline void cond_drop_waiters(struct cond *cond)
{
	if (w_likely(!generation_claim(&cond->generation)))
		return;
	/* relaxed, both: [GENERATION-3] publishes them; nobody waits before that */
	w_store_relaxed(&cond->last, NULL);
	w_store_relaxed(&cond->list, 0);
	generation_settle(&cond->generation);
}

static inline void cond_lock_list(struct cond *cond)
{
	cond_drop_waiters(cond);
	list_lock(&cond->list);
}

static inline struct cond_waiter *cond_last(struct cond *cond)
{
	/* relaxed: the list is locked */
	return w_load_relaxed(&cond->last);
}

static inline void cond_set_last(struct cond *cond, struct cond_waiter *last)
{
	/*
	 * [COND-1] release: pairs with [COND-2]; a thread that finds the list empty without having
	 * locked it sees that a leaving waiter has it locked
	 */
	w_store_release(&cond->last, last);
}

/*
 * Returns whether there is nobody to wake, nor a leaving waiter that may access @cond again.
 */
static inline bool cond_idle(struct cond *cond)
{
	/* [COND-2] acquire: pairs with [COND-1]; the list's lock */
	if (w_load_acquire(&cond->last))
		return false;
	/* [COND-3] acquire: pairs with [LIST_LOCK-3]; the last access of a waiter that has left */
	return !w_load_acquire(&cond->list);
}

/* Takes @waiter, a free node, for a wait with the lock at the address @lock. */
static inline void cond_init_waiter(struct cond_waiter *waiter, uint32_t status, const void *lock)
{
	/* relaxed: published by the list's lock */
	w_store_relaxed(&waiter->status, status);
	waiter->lock = lock;
}

static inline void cond_append(struct cond *cond, struct cond_waiter *waiter)
{
	struct cond_waiter *last = cond_last(cond);

	waiter->next = last ? last->next : waiter;
	waiter->previous = last ? last : waiter;
	waiter->next->previous = waiter;
	waiter->previous->next = waiter;
	cond_set_last(cond, waiter);
}

static inline void cond_remove(struct cond *cond, struct cond_waiter *waiter)
{
	waiter->previous->next = waiter->next;
	waiter->next->previous = waiter->previous;
	if (cond_last(cond) == waiter)
		cond_set_last(cond, waiter->next == waiter ? NULL : waiter->previous);
}

/* With the list locked: returns whether @waiter is a barrier. */
static inline bool cond_is_barrier(struct cond_waiter *waiter)
{
	/* relaxed: barriers come and go with the list locked */
	return (w_load_relaxed(&waiter->status) & ~COND_ASLEEP) == COND_BARRIER;
}

/*
 * With the list locked: returns whether a thread waits with another lock than @lock. All threads
 * that wait were admitted by this function, so they have the same lock.
 */
static inline bool cond_has_other(struct cond *cond, const void *lock)
{
	struct cond_waiter *waiter = cond_last(cond);

	/* Ends: each barrier has a waiter before it. */
	while (waiter && cond_is_barrier(waiter))
		waiter = waiter->previous;
	return waiter && waiter->lock != lock;
}

/* WAITING -> @status. Keeps ASLEEP. Returns false if @waiter does not wait any more. */
static inline bool cond_leave_waiting(struct cond_waiter *waiter, uint32_t status)
{
	uint32_t seen = COND_WAITING;

	/* relaxed: publishes nothing; it only decides between a notification and the deadline */
	while (!w_compare_exchange_relaxed(&waiter->status, &seen, status | (seen & COND_ASLEEP)))
		if ((seen & ~COND_ASLEEP) != COND_WAITING)
			return false;
	return true;
}

/*
 * With the list locked: claims and removes the eldest waiter, or @all. Returns them in their order,
 * linked by `next`, up to NULL.
 */
static inline struct cond_waiter *cond_claim_waiters(struct cond *cond, bool all)
{
	struct cond_waiter *last = cond_last(cond), *waiter, *next = last ? last->next : NULL;
	struct cond_waiter *first = NULL, **end = &first;

	while (next && (all || !first)) {
		waiter = next;
		next = waiter == last ? NULL : waiter->next;
		if (cond_leave_waiting(waiter, COND_CLAIMED)) {
			cond_remove(cond, waiter);
			*end = waiter;
			end = &waiter->next;
		}
	}
	*end = NULL;
	return first;
}

/* With the list locked: removes the barriers at its front, which it returns as the above. */
static inline struct cond_waiter *cond_open_barriers(struct cond *cond)
{
	struct cond_waiter *first = NULL, **end = &first, *last, *waiter;

	while ((last = cond_last(cond))) {
		waiter = last->next;
		if (!cond_is_barrier(waiter))
			break;
		cond_remove(cond, waiter);
		*end = waiter;
		end = &waiter->next;
	}
	*end = NULL;
	return first;
}

/* ---- Waking ---- */

/* CLAIMED, BARRIER -> WOKEN. The last access to @waiter. */
static inline void cond_wake(struct cond_waiter *waiter)
{
	W_ATOMIC(uint32_t) *status = &waiter->status;

	/*
	 * [COND-4] release: pairs with [COND-5], [COND-6]; the links, and our last accesses to the
	 * node
	 */
	if (w_exchange_release(status, COND_WOKEN) & COND_ASLEEP)
		w_unpark(status); /* by address: the node may be gone */
}

/* Wakes the first of each run of waiters with the same lock. Returns the number of all waiters. */
static inline size_t cond_wake_runs(struct cond_waiter *first)
{
	size_t count = 0;

	while (first) {
		struct cond_waiter *last = first, *next;

		for (count++; last->next && last->next->lock == first->lock; count++)
			last = last->next;
		next = last->next;
		last->next = NULL;
		cond_wake(first);
		first = next;
	}
	return count;
}

/* After @waiter was woken and has its lock again: wakes the next of its run. */
static inline void cond_wake_next(struct cond_waiter *waiter)
{
	if (!waiter->next)
		return;
	w_event(relay);
	cond_wake(waiter->next);
}

/* ---- Waiting ---- */

/* Puts @waiter into the list. Returns false if it allows @only its lock, and another is in use. */
static inline bool cond_enter(struct cond *cond, struct cond_waiter *waiter, bool only)
{
	bool enters;

	cond_lock_list(cond);
	enters = !only || !cond_has_other(cond, waiter->lock);
	if (enters)
		cond_append(cond, waiter);
	list_unlock(&cond->list);
	return enters;
}

/*
 * WAITING -> LEAVING, and out of the list. Returns false if @waiter was claimed first. @generation:
 * the fork generation in which it began to wait.
 */
static inline bool cond_leave(struct cond *cond, struct cond_waiter *waiter, uint32_t generation)
{
	struct cond_waiter *barriers;

	if (!cond_leave_waiting(waiter, COND_LEAVING))
		return false;
	w_event(abandon);
	cond_lock_list(cond);
	/* In a child that a signal handler has forked, the list does not contain us. */
	if (w_fork_generation() == generation)
		cond_remove(cond, waiter);
	barriers = cond_open_barriers(cond);
	list_unlock(&cond->list);
	(void)cond_wake_runs(barriers);
	return true;
}

/* Adds ASLEEP to the status, last seen as @seen, and sleeps until it changes or @deadline. */
static inline void cond_park(struct cond_waiter *waiter, uint32_t seen,
			     const struct w_deadline *deadline)
{
	/* relaxed: publishes nothing; it only tells the waker to wake a sleeper */
	if (!(seen & COND_ASLEEP) &&
	    !w_compare_exchange_relaxed(&waiter->status, &seen, seen | COND_ASLEEP))
		return;
	w_event(park);
	w_park(&waiter->status, seen | COND_ASLEEP, deadline);
}

enum cond_result { COND_SIGNALLED, COND_FORKED, COND_TIMED_OUT, COND_REFUSED };

/*
 * Sleeps until @waiter is woken, or has left because @deadline (NULL: none) has passed, or a signal
 * handler has forked this process, where nobody would wake it.
 */
static inline enum cond_result cond_sleep(struct cond *cond, struct cond_waiter *waiter,
					  const struct w_deadline *deadline, uint32_t generation)
{
	uint32_t seen;
	bool waiting;

	/* [COND-5] acquire: pairs with [COND-4]; the next of the run */
	seen = w_wait_acquire(&waiter->status, VAL == COND_WOKEN, W_SIGNAL, deadline);
	/* [COND-6] acquire: pairs with [COND-4], as [COND-5] */
	for (; seen != COND_WOKEN; seen = w_load_acquire(&waiter->status)) {
		if (w_unlikely(w_fork_generation() != generation))
			return COND_FORKED;
		waiting = (seen & ~COND_ASLEEP) == COND_WAITING;
		if (!waiting || !w_expired(deadline))
			cond_park(waiter, seen, waiting ? deadline : NULL);
		else if (cond_leave(cond, waiter, generation))
			return COND_TIMED_OUT;
	}
	return COND_SIGNALLED;
}

/*
 * Unlocks @lock, waits for a signal or until @deadline (NULL: none), and locks @lock again. Returns
 * COND_FORKED, without a signal, in a child that a signal handler has forked. If it returns
 * COND_REFUSED, @lock has remained locked.
 */
static W_SLOW enum cond_result cond_wait(struct cond *cond, struct cond_lock lock,
					 const struct w_deadline *deadline)
{
	W_OWN_LINE struct cond_waiter on_stack;
	struct cond_waiter *waiter = w_waiter_node(&on_stack, false);
	uint32_t generation = w_fork_generation();
	enum cond_result result = COND_REFUSED;

	cond_init_waiter(waiter, COND_WAITING, lock.lock);
	if (cond_enter(cond, waiter, lock.only)) {
		lock.release(lock.lock);
		result = cond_sleep(cond, waiter, deadline, generation);
		lock.acquire(lock.lock);
		if (result == COND_SIGNALLED)
			cond_wake_next(waiter);
	}
	node_free(&waiter->status);
	return result;
}

/* ---- Notifying ---- */

static W_SLOW size_t cond_notify(struct cond *cond, bool all)
{
	W_OWN_LINE struct cond_waiter on_stack;
	struct cond_waiter *waiters, *barrier = NULL;
	uint32_t generation = w_fork_generation();
	size_t count;

	cond_lock_list(cond);
	waiters = cond_claim_waiters(cond, all);
	/* All that remain are leaving, or wait for those. */
	if ((all || !waiters) && cond_last(cond)) {
		w_event(barrier);
		barrier = w_waiter_node(&on_stack, false);
		cond_init_waiter(barrier, COND_BARRIER, barrier);
		cond_append(cond, barrier);
	}
	list_unlock(&cond->list);
	count = cond_wake_runs(waiters);
	if (barrier) {
		(void)cond_sleep(cond, barrier, NULL, generation);
		node_free(&barrier->status);
	}
	return count;
}

/* Wakes the thread that has waited longest. Returns whether there was one. */
static inline bool cond_signal(struct cond *cond)
{
	return !cond_idle(cond) && cond_notify(cond, false);
}

/* Wakes all threads that wait. Returns their number. */
static inline size_t cond_broadcast(struct cond *cond)
{
	return cond_idle(cond) ? 0 : cond_notify(cond, true);
}

#endif
