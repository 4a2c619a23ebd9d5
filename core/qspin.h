/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A queued spin lock in one word of four bytes, the tail of its queue encoded in it.
 *
 * From: Linux's qspinlock (Long, Zijlstra, Linux 4.2), MCS in four bytes, as in Bueso (CACM'15).
 * Changed, and why:
 *  - A node is one of the process's few (w_queue_node), by the waiter's CPU where that one is free. The kernel's are the
 *    CPU's own, which needs that a waiter is not preempted. Who finds none polls the word instead of queueing.
 *  - The tail names the process, too. In memory that several processes share, a waiter that finds the queue of another
 *    one polls the word; each process has its own queue, and their heads compete. So is what a fork leaves behind: the
 *    parent's tail is another process's to the child.
 *  - Newcomers may take a free lock although there is a queue, as threads can be preempted and order is dear then,
 *    until the head has tried `patience` times in vain and closes the lock to them.
 *  - No byte or half of the word is accessed apart.
 *
 * Promises: mutual exclusion, also between processes. Newcomers pass waiters until the head has tried `patience` times in
 * vain; then only those who poll (see above) pass it, and those of other processes. First come, first served in the
 * queue, but for timed waiters, who poll. The head never sleeps; those behind it do under wait=park. 4 bytes a lock, of
 * which 2 bits are the embedder's, none a waiter or holder. Atomic read-modify-writes: 2 uncontended.
 *
 *   bits  31 30   29 .. 24   23 .. 2   1        0
 *        embedder   slot     process   CLOSED   LOCKED
 *                 ╰────── tail ─────╯
 *
 *   tail    0: nobody is queued; else the last one is in that slot of that process
 *   LOCKED  held. Legal to set where it is not set: by a head, and by others unless the head of their process has CLOSED
 *   CLOSED  legal to set by a head; who takes the lock clears it
 *
 *   0 ──newcomer──▶ LOCKED ──release──▶ 0
 *   LOCKED ──waiter──▶ tail|LOCKED ──release──▶ tail ──the head, if it is the last──▶ LOCKED
 *   tail|LOCKED ──head──▶ tail|CLOSED|LOCKED ──release──▶ tail|CLOSED ──head──▶ tail|LOCKED, or LOCKED
 */
#ifndef POUNDLOCK_QSPIN_H
#define POUNDLOCK_QSPIN_H

#include "part/wait.h"

#define QSPIN_LOCKED 1u
#define QSPIN_CLOSED 2u
#define QSPIN_PROCESS_SHIFT 2
#define QSPIN_SLOT_SHIFT 24
#define QSPIN_PROCESS 0x00fffffcu
#define QSPIN_SLOT 0x3f000000u
#define QSPIN_TAIL (QSPIN_PROCESS | QSPIN_SLOT)
#define QSPIN_EMBEDDER 0xc0000000u

#define QSPIN_LOOKS 4 /* slots that a waiter looks at for a free one */
#define QSPIN_NONE UINT32_MAX

struct qspin {
	W_ATOMIC(uint32_t) word;
};

struct qspin_node {
	W_ATOMIC(uint32_t) status;
	W_ATOMIC(uint32_t) next; /* the slot behind + 1; 0: none yet */
};

_Static_assert(W_QUEUE_NODES - 1 <= QSPIN_SLOT >> QSPIN_SLOT_SHIFT, "a slot fits the word");

struct qspin_policy {
	enum wait wait;
	uint32_t patience; /* how often a head tries in vain before it closes the lock to newcomers */
};

#define qspin_settings(S) S(qspin, patience, 16, 0, 1000000000, 1)
#define qspin_bytes sizeof(struct qspin), 0, 0

static inline struct qspin_node *qspin_node(uint32_t slot)
{
	return (struct qspin_node *)w_queue_node(slot);
}

/* The tail that is the waiter in @slot. */
static inline uint32_t qspin_tail(uint32_t slot)
{
	return w_process() << QSPIN_PROCESS_SHIFT | slot << QSPIN_SLOT_SHIFT;
}

/* Whether the queue of which @word tells is of process @own. */
static inline bool qspin_is_of(uint32_t word, uint32_t own)
{
	return (word & QSPIN_PROCESS) == own << QSPIN_PROCESS_SHIFT;
}

/* Whether one of process @own who is not a head may take the lock of @word. */
static inline bool qspin_is_open(uint32_t word, uint32_t own)
{
	return !(word & QSPIN_LOCKED) && (w_likely(!(word & QSPIN_CLOSED)) || !qspin_is_of(word, own));
}

/* Takes @lock if it is free, and no head of this process has closed it. */
static inline bool qspin_try_acquire(struct qspin *lock)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(&lock->word);

	while (qspin_is_open(seen, w_process())) {
		/* [QSPIN-1] acquire: pairs with [QSPIN-8]; the last holder's critical section */
		if (w_compare_exchange_acquire(&lock->word, &seen, (seen & ~QSPIN_CLOSED) | QSPIN_LOCKED)) {
			if (seen & QSPIN_TAIL)
				w_event(steal);
			return true;
		}
	}
	return false;
}

/* Takes @lock by polling. False if @deadline (NULL: never) passed first. */
static inline bool qspin_poll(struct qspin *lock, enum wait wait, const struct w_deadline *deadline)
{
	uint32_t own = w_process();

	while (!qspin_try_acquire(lock)) {
		/* [QSPIN-2] acquire: pairs with nothing; [QSPIN-1] reads again */
		(void)w_wait_acquire(&lock->word, qspin_is_open(VAL, own), wait_soon(wait), deadline);
		if (w_expired(deadline)) {
			w_event(abandon);
			return false;
		}
	}
	return true;
}

/* Takes a slot for a waiter; QSPIN_NONE if those that it looks at are taken. */
static inline uint32_t qspin_claim(void)
{
	uint32_t first = w_cpu(), slot, seen;

	for (uint32_t i = 0; i < QSPIN_LOOKS; i++) {
		slot = (first + i) % W_QUEUE_NODES;
		seen = NODE_FREE;
		/* [QSPIN-3] acquire: pairs with [WAIT-8]; the last user's accesses */
		if (w_compare_exchange_acquire(&qspin_node(slot)->status, &seen, NODE_WAITING))
			return slot;
	}
	return QSPIN_NONE;
}

/* Enters the queue with @slot: true, and *@before is the word before. False if the queue is another process's. */
static inline bool qspin_enter(struct qspin *lock, uint32_t slot, uint32_t *before)
{
	uint32_t own = w_process(), tail = qspin_tail(slot);

	/* relaxed, both: [QSPIN-4] publishes the one, and decides on the other */
	w_store_relaxed(&qspin_node(slot)->next, 0);
	*before = w_load_relaxed(&lock->word);
	do {
		if ((*before & QSPIN_TAIL) && !qspin_is_of(*before, own))
			return false;
		/* [QSPIN-4] acq_rel: acquire and release pair with [QSPIN-4]; the predecessor's
		 * node, which we write. Release pairs with [QSPIN-6] too: our node, for the head */
	} while (!w_compare_exchange_acq_rel(&lock->word, before, (*before & ~QSPIN_TAIL) | tail));
	return true;
}

/* As the head, in @slot, takes the lock. True if nobody is behind it: the queue has ended then. */
static inline bool qspin_take_as_head(struct qspin *lock, uint32_t slot, struct qspin_policy policy)
{
	uint32_t tail = qspin_tail(slot), in_vain = 0, seen, taken;
	enum w_how how = policy.wait == WAIT_SPIN ? W_SPIN : W_BRIEF;

	for (;;) {
		/* [QSPIN-5] acquire: pairs with nothing; [QSPIN-6] reads again */
		seen = w_wait_acquire(&lock->word, !(VAL & QSPIN_LOCKED), how, NULL);
		while (!(seen & QSPIN_LOCKED)) {
			taken = (seen & ~QSPIN_CLOSED) | QSPIN_LOCKED;
			if ((seen & QSPIN_TAIL) == tail)
				taken &= ~QSPIN_TAIL;
			/* [QSPIN-6] acquire: pairs with [QSPIN-8], as [QSPIN-1]; and with
			 * [QSPIN-4]: the node behind ours */
			if (w_compare_exchange_acquire(&lock->word, &seen, taken))
				return (seen & QSPIN_TAIL) == tail;
		}
		if (in_vain++ < policy.patience)
			continue;
		how = wait_soon(policy.wait);
		if (seen & QSPIN_CLOSED)
			continue;
		/* relaxed: publishes nothing */
		(void)w_fetch_or_relaxed(&lock->word, QSPIN_CLOSED);
		w_event(close);
	}
}

/* Makes the waiter behind @node, who is about to come if it has not, the head. */
static inline void qspin_pass_on(struct qspin_node *node, enum wait wait)
{
	/* [QSPIN-7] acquire: pairs with nothing; the word that told us of the node behind, by
	 * [QSPIN-6] and [QSPIN-4], has published it */
	uint32_t next = w_wait_acquire(&node->next, VAL != 0, wait_soon(wait), NULL);

	(void)node_grant(&qspin_node(next - 1)->status, wait);
}

/* Takes @lock through the queue. False if there is no place in it. */
static inline bool qspin_acquire_queued(struct qspin *lock, struct qspin_policy policy)
{
	uint32_t slot = qspin_claim(), before;
	struct qspin_node *node;

	if (slot == QSPIN_NONE)
		return false;
	node = qspin_node(slot);
	if (!qspin_enter(lock, slot, &before)) {
		node_free(&node->status);
		return false;
	}
	if (before & QSPIN_TAIL) {
		/* relaxed: [QSPIN-4] publishes our node, to [QSPIN-6] */
		w_store_relaxed(&qspin_node((before & QSPIN_SLOT) >> QSPIN_SLOT_SHIFT)->next, slot + 1);
		(void)node_wait_in(&node->status, wait_race(policy.wait), policy.wait, NULL);
	}
	if (!qspin_take_as_head(lock, slot, policy))
		qspin_pass_on(node, policy.wait);
	node_free(&node->status);
	return true;
}

/* Takes @lock, which was not free a moment ago. */
static W_SLOW bool qspin_acquire_slow(struct qspin *lock, struct qspin_policy policy, const struct w_deadline *deadline)
{
	w_event(contended);
	if (!deadline && qspin_acquire_queued(lock, policy))
		return true;
	w_event(unqueued);
	return qspin_poll(lock, policy.wait, deadline);
}

/* Takes @lock. False if @deadline (NULL: never) passed first. */
static inline bool qspin_acquire(struct qspin *lock, struct qspin_policy policy, const struct w_deadline *deadline)
{
	return w_likely(qspin_try_acquire(lock)) || qspin_acquire_slow(lock, policy, deadline);
}

/* Releases @lock. False, and nothing is changed, if it was not held. */
static inline bool qspin_release(struct qspin *lock, struct qspin_policy policy)
{
	(void)policy;
	/* relaxed: only the holder can clear it, so the holder reads its own doing */
	if (w_unlikely(!(w_load_relaxed(&lock->word) & QSPIN_LOCKED)))
		return false;
	/* [QSPIN-8] release: pairs with [QSPIN-1], [QSPIN-6]; our critical section */
	(void)w_fetch_and_release(&lock->word, ~QSPIN_LOCKED);
	return true;
}

#endif
