/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The queues of core/ around the word of the kernel's spin lock; included by qspinlock.c, which
 * describes the word, and by the model checker's client of it (tests/check/qspinlock.c). The
 * includer has world/kernel/pending.h.
 */
#ifndef POUNDLOCK_KERNEL_SPIN_QUEUES_H
#define POUNDLOCK_KERNEL_SPIN_QUEUES_H

#include "cfl/order.h"
#include "cna.h"
#include "ron_shared.h"
#include "part/shuffle.h"
#include "tuning.h"

#ifdef queued_spin_trylock
#error "queued_spin_trylock() must only take a lock whose word is 0"
#endif

/* ---- Nodes ---- */

/* A waiter's node, in a cache line of its own. */
struct place {
	union {
		struct shfl_node shfl;
		struct cna_node cna;
		struct cfl_node cfl;
	};
	u32 limit; /* cfl: the thefts so far and the previous head, for the next head */
	u16 name;  /* written by its waiter before it enters the queue */
} ____cacheline_aligned;

static DEFINE_PER_CPU_ALIGNED(struct place, places[MAX_NODES]);
static DEFINE_PER_CPU(int, waiting); /* the nodes in use */

static inline u16 w_name_of(const void *node)
{
	return node ? container_of(node, struct place, shfl)->name : 0;
}

static inline void *w_named(u16 name)
{
	u32 tail = (u32)name << _Q_TAIL_OFFSET;

	if (!name)
		return NULL;
	return per_cpu_ptr(&places[(tail & _Q_TAIL_IDX_MASK) >> _Q_TAIL_IDX_OFFSET],
			   (tail >> _Q_TAIL_CPU_OFFSET) - 1);
}

/* This CPU's node at @index. */
static inline u16 name_of_place(int index)
{
	return (u16)(encode_tail(smp_processor_id(), index) >> _Q_TAIL_OFFSET);
}

/* ---- The word ---- */

/*
 * Waits until @lock has neither a holder nor a pending waiter, and takes it. Called by the queue
 * head. Accesses to different parts of the word are ordered only by the queues: the acquire with
 * which a waiter enters an empty one orders the load of the word after the store of a newcomer or
 * pending waiter, and the release with which the last waiter leaves orders the store to `locked`
 * before its own to the tail. A waiter that sets PENDING while there is a queue takes it back.
 */
static __always_inline void take_as_head(struct qspinlock *lock)
{
	(void)smp_cond_load_acquire(&lock->val.counter, !(VAL & _Q_LOCKED_PENDING_MASK));
	WRITE_ONCE(lock->locked, _Q_LOCKED_VAL);
}

/* Takes @lock by @queued, with a node of this CPU. */
static __always_inline void take_queued(struct qspinlock *lock,
					void (*queued)(struct qspinlock *lock, struct place *place))
{
	int index = this_cpu_inc_return(waiting) - 1;
	struct place *place;

	lockevent_inc(lock_slowpath);
	trace_contention_begin(lock, LCB_F_SPIN);
	if (unlikely(index >= MAX_NODES)) {
		lockevent_inc(lock_no_node);
		while (!queued_spin_trylock(lock))
			cpu_relax();
	} else {
		/*
		 * The index is claimed before the node is written: an interrupt handler takes the
		 * next one.
		 */
		barrier();
		place = this_cpu_ptr(&places[index]);
		place->name = name_of_place(index);
		if (!queued_spin_trylock(lock))
			queued(lock, place);
	}
	trace_poundlock_handover(lock);
	trace_contention_end(lock, 0);
	this_cpu_dec(waiting);
}

/* The slow path: waits pending, or in the queue by @queued. @val: the word that the caller saw. */
static __always_inline void take_slowly(struct qspinlock *lock, u32 val,
					void (*queued)(struct qspinlock *lock, struct place *place))
{
	if (take_pending(lock, val))
		lockevent_inc(lock_pending);
	else
		take_queued(lock, queued);
}

/* Whether @lock has a holder or a pending waiter, so that the queue head has time left. */
static __always_inline bool is_busy(struct qspinlock *lock)
{
	return READ_ONCE(lock->locked_pending);
}

/*
 * ---- CNA: the queue is a lock of its own, which the queue head holds while it waits for the word,
 * and meanwhile chooses its successor ----
 */

static __always_inline void queue_by_cna(struct qspinlock *lock, struct place *place)
{
#define SET(lock, key, otherwise, ...) .key = (otherwise),
	const struct cna_policy policy = {.wait = WAIT_SPIN, cna_settings(SET)};
	struct cna *queue = (struct cna *)&lock->tail;

	struct cna_search search = {NULL, NULL};

	(void)cna_acquire(queue, &place->cna, policy, NULL);
	while (is_busy(lock) && !cna_look_ahead(&place->cna, &search, policy))
		cpu_relax();
	take_as_head(lock);
	cna_release_ahead(queue, &place->cna, search, policy);
}

static noinline void __lockfunc cna_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	take_slowly(lock, val, queue_by_cna);
}

/* ---- RON: as CNA ---- */

static_assert(W_CONTEXTS >= MAX_NODES, "who waits at a place of a CPU's has a slot there");

static __always_inline void queue_by_ron(struct qspinlock *lock, struct place *place)
{
	const struct ron_shared_policy policy = {.wait = WAIT_SPIN};
	struct ron_shared *queue = (struct ron_shared *)&lock->tail;
	struct ron_shared_choice choice = {RON_SHARED_NONE, false};

	(void)ron_shared_acquire(queue, policy, NULL);
	while (is_busy(lock) && !choice.ahead) {
		ron_shared_look_ahead(queue, &choice);
		cpu_relax();
	}
	take_as_head(lock);
	ron_shared_release_to(queue, choice);
}

static noinline void __lockfunc ron_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	take_slowly(lock, val, queue_by_ron);
}

/* ---- ShflLock: figure 4 of the paper, around this word ---- */

static __always_inline void queue_by_shfl(struct qspinlock *lock, struct place *place)
{
	const struct tuning by = tuning_of(TUNED_SPIN, lock);
	const struct shfl_order order = shfl_by(&by.policy, by.batch);
	const struct shfl_stop stop = {(u32 *)&lock->val.counter, _Q_LOCKED_PENDING_MASK, 0};
	const u32 note = policy_note(by.policy, lock);
	bool slept = false;

	if (!shfl_enter(&lock->tail, &place->shfl, note)) {
		if (by.policy == POLICY_NUMA && (note & POLICY_NUMA_URGENT))
			w_event(urgent);
		(void)shfl_wait_turn(&place->shfl, W_SPIN, WAIT_SPIN, NULL, &slept, order);
	}
	if (is_busy(lock) && shfl_head_shuffles(&place->shfl))
		shfl_shuffle(&place->shfl, stop, false, order);
	/* Before the lock is taken: the head is not bypassed, whatever the policy is. */
	tuning_end(by);
	take_as_head(lock);
	(void)shfl_leave(&lock->tail, &place->shfl, WAIT_SPIN);
}

static noinline void __lockfunc shfl_spin_lock_slowpath(struct qspinlock *lock, u32 val)
{
	take_slowly(lock, val, queue_by_shfl);
}

#endif
