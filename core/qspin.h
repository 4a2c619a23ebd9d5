/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A queued spin lock in one word of four bytes, which encodes the tail of its queue.
 *
 * From: Linux's qspinlock (Long, Zijlstra, Linux 4.2): MCS in four bytes; Bueso, CACM'15.
 *
 * Order: barging until the head of the queue has failed for a while, then the head.
 *
 * Promise: mutual exclusion, also between processes. Newcomers may overtake waiters until the head
 * has failed `patience` attempts. After that only polling waiters (see below) and the waiters of
 * other processes overtake it. First come, first served within the queue; timed waiters poll. The
 * head never sleeps; the waiters behind it do under wait=park. 4 bytes per lock, of which 2 bits
 * are the embedder's; none per waiter or holder. Atomic read-modify-writes: 2 uncontended.
 *
 *   bits  31 30   29 .. 24   23 .. 2   1        0
 *        embedder   slot     process   CLOSED   LOCKED
 *                 ╰────── tail ─────╯
 *
 *   tail    0: the queue is empty. Otherwise the last waiter is in that slot of that process
 *   LOCKED  the lock is held. Set if clear: by a head, and by other threads unless the head of
 *           their process has set CLOSED. Cleared by the holder
 *   CLOSED  only the head may take the lock. Set by a head; cleared by the next acquisition
 *
 *   0 ──newcomer──▶ LOCKED ──release──▶ 0
 *   LOCKED ──waiter──▶ tail|LOCKED ──release──▶ tail ──head, if it is the last──▶ LOCKED
 *   tail|LOCKED ──head──▶ tail|CLOSED|LOCKED ──release──▶ tail|CLOSED
 *   tail|CLOSED ──head──▶ tail|LOCKED, or LOCKED
 *
 * Departures from Linux:
 *  - A node is one of a small array per process (w_queue_node), near the waiter's CPU. The kernel's
 *    nodes belong to a CPU, which requires that waiters are not preempted. A waiter that finds no
 *    free node polls the word.
 *  - The tail includes the process. In shared memory, a waiter that finds another process's queue
 *    polls the word; each process has its own queue, and their heads compete. A forked child
 *    therefore takes its parent's tail for another process's.
 *  - Newcomers may take a free lock although there is a queue: threads can be preempted, which
 *    makes strict order expensive. A head that has failed `patience` attempts closes the lock to
 *    newcomers.
 *  - There is no pending bit: the second thread queues.
 *  - No byte or half of the word is accessed separately. The release is an atomic instruction.
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

#define QSPIN_LOOKS 4 /* slots that a waiter tries */
#define QSPIN_NONE UINT32_MAX

struct qspin {
	W_ATOMIC(uint32_t) word;
};

struct qspin_node {
	W_ATOMIC(uint32_t) status;
	W_ATOMIC(uint32_t) next; /* slot of the successor + 1; 0: none yet */
};

_Static_assert(W_QUEUE_NODES - 1 <= QSPIN_SLOT >> QSPIN_SLOT_SHIFT, "a slot fits the word");

struct qspin_policy {
	enum wait wait;
	uint32_t patience; /* failed attempts of a head before it closes the lock to newcomers */
};

#define qspin_settings(S) S(qspin, patience, 16, 0, 1000000000)
#define qspin_bytes sizeof(struct qspin), 0, 0

static inline struct qspin_node *qspin_node(uint32_t slot)
{
	return (struct qspin_node *)w_queue_node(slot);
}

/* The tail that stands for the waiter in @slot. */
static inline uint32_t qspin_tail(uint32_t slot)
{
	return w_process() << QSPIN_PROCESS_SHIFT | slot << QSPIN_SLOT_SHIFT;
}

/* Returns whether the queue in @word is that of process @own. */
static inline bool qspin_is_of(uint32_t word, uint32_t own)
{
	return (word & QSPIN_PROCESS) == own << QSPIN_PROCESS_SHIFT;
}

/* Returns whether a thread of process @own that is not a head may take the lock. */
static inline bool qspin_is_open(uint32_t word, uint32_t own)
{
	return !(word & QSPIN_LOCKED) &&
	       (w_likely(!(word & QSPIN_CLOSED)) || !qspin_is_of(word, own));
}

/* !LOCKED -> LOCKED, unless the head of this process has closed the lock. */
static inline bool qspin_try_acquire(struct qspin *lock)
{
	/* relaxed: the compare-exchange decides */
	uint32_t seen = w_load_relaxed(&lock->word);

	while (qspin_is_open(seen, w_process())) {
		/* [QSPIN-1] acquire: pairs with [QSPIN-8]; the previous critical section */
		if (w_compare_exchange_acquire(&lock->word, &seen,
					       (seen & ~QSPIN_CLOSED) | QSPIN_LOCKED)) {
			if (seen & QSPIN_TAIL)
				w_event(steal);
			return true;
		}
	}
	return false;
}

/* Polls the word until @lock is taken. Returns false if @deadline (NULL: none) passes first. */
static inline bool qspin_poll(struct qspin *lock, enum wait wait, const struct w_deadline *deadline)
{
	uint32_t own = w_process();

	while (!qspin_try_acquire(lock)) {
		/* [QSPIN-2] acquire: pairs with nothing; [QSPIN-1] reads the word again */
		(void)w_wait_acquire(&lock->word, qspin_is_open(VAL, own), wait_soon(wait),
				     deadline);
		if (w_expired(deadline)) {
			w_event(abandon);
			return false;
		}
	}
	return true;
}

/* Claims a free slot for a waiter, or returns QSPIN_NONE. */
static inline uint32_t qspin_claim(void)
{
	uint32_t first = w_cpu(), slot, seen;

	for (uint32_t i = 0; i < QSPIN_LOOKS; i++) {
		slot = (first + i) % W_QUEUE_NODES;
		seen = NODE_FREE;
		/* [QSPIN-3] acquire: pairs with [WAIT-8]; the previous user's accesses */
		if (w_compare_exchange_acquire(&qspin_node(slot)->status, &seen, NODE_WAITING))
			return slot;
	}
	return QSPIN_NONE;
}

/*
 * * -> tail|*: enters the queue with @slot; *@before is the old word. Returns false if the queue is
 * another process's.
 */
static inline bool qspin_enter(struct qspin *lock, uint32_t slot, uint32_t *before)
{
	uint32_t own = w_process(), tail = qspin_tail(slot);

	/* relaxed, both: [QSPIN-4] publishes the store, and validates the load */
	w_store_relaxed(&qspin_node(slot)->next, 0);
	*before = w_load_relaxed(&lock->word);
	do {
		if ((*before & QSPIN_TAIL) && !qspin_is_of(*before, own))
			return false;
		/*
		 * [QSPIN-4] acq_rel: acquire and release pair with [QSPIN-4]; the predecessor's
		 * node, which we write. Release pairs with [QSPIN-6] as well: our node, for the
		 * head
		 */
	} while (!w_compare_exchange_acq_rel(&lock->word, before, (*before & ~QSPIN_TAIL) | tail));
	return true;
}

/*
 * As the head, in @slot: *|tail -> LOCKED. Returns true if @slot was the last, so that the queue
 * has ended.
 */
static inline bool qspin_take_as_head(struct qspin *lock, uint32_t slot, struct qspin_policy policy)
{
	uint32_t tail = qspin_tail(slot), attempts = 0, seen, taken;
	enum w_how how = policy.wait == WAIT_SPIN ? W_SPIN : W_BRIEF;

	for (;;) {
		/* [QSPIN-5] acquire: pairs with nothing; [QSPIN-6] reads the word again */
		seen = w_wait_acquire(&lock->word, !(VAL & QSPIN_LOCKED), how, NULL);
		while (!(seen & QSPIN_LOCKED)) {
			taken = (seen & ~QSPIN_CLOSED) | QSPIN_LOCKED;
			if ((seen & QSPIN_TAIL) == tail)
				taken &= ~QSPIN_TAIL;
			/*
			 * [QSPIN-6] acquire: pairs with [QSPIN-8], as [QSPIN-1]; and with
			 * [QSPIN-4]: the successor's node
			 */
			if (w_compare_exchange_acquire(&lock->word, &seen, taken))
				return (seen & QSPIN_TAIL) == tail;
		}
		if (attempts++ < policy.patience)
			continue;
		how = wait_soon(policy.wait);
		if (seen & QSPIN_CLOSED)
			continue;
		/* relaxed: closes the lock to newcomers; publishes nothing */
		(void)w_fetch_or_relaxed(&lock->word, QSPIN_CLOSED);
		w_event(close);
	}
}

/* Makes the waiter behind @node, which may still be linking itself, the head. */
static inline void qspin_pass_on(struct qspin_node *node, enum wait wait)
{
	/*
	 * [QSPIN-7] acquire: pairs with nothing; [QSPIN-6] and [QSPIN-4] have published the
	 * successor's node
	 */
	uint32_t next = w_wait_acquire(&node->next, VAL != 0, wait_soon(wait), NULL);

	(void)node_grant(&qspin_node(next - 1)->status, wait);
}

/* Takes @lock through the queue. Returns false if the thread cannot queue. */
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
		w_store_relaxed(&qspin_node((before & QSPIN_SLOT) >> QSPIN_SLOT_SHIFT)->next,
				slot + 1);
		(void)node_wait_in(&node->status, wait_race(policy.wait), policy.wait, NULL);
	}
	if (!qspin_take_as_head(lock, slot, policy))
		qspin_pass_on(node, policy.wait);
	node_free(&node->status);
	return true;
}

/* Slow path: @lock was not free. Returns false if @deadline (NULL: none) passes first. */
static W_SLOW bool qspin_acquire_slow(struct qspin *lock, struct qspin_policy policy,
				      const struct w_deadline *deadline)
{
	w_event(contended);
	if (!deadline && qspin_acquire_queued(lock, policy))
		return true;
	w_event(unqueued);
	return qspin_poll(lock, policy.wait, deadline);
}

/* Takes @lock. Returns false if @deadline (NULL: none) passes first. */
static inline bool qspin_acquire(struct qspin *lock, struct qspin_policy policy,
				 const struct w_deadline *deadline)
{
	return w_likely(qspin_try_acquire(lock)) || qspin_acquire_slow(lock, policy, deadline);
}

/* LOCKED -> !LOCKED. Returns false, and changes nothing, if @lock was not held. */
static inline bool qspin_release(struct qspin *lock, struct qspin_policy policy)
{
	(void)policy;
	/* relaxed: only the holder clears it, so it reads its own write */
	if (w_unlikely(!(w_load_relaxed(&lock->word) & QSPIN_LOCKED)))
		return false;
	/* [QSPIN-8] release: pairs with [QSPIN-1], [QSPIN-6]; our critical section */
	(void)w_fetch_and_release(&lock->word, ~QSPIN_LOCKED);
	return true;
}

#endif
