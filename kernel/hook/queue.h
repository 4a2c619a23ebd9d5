/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A slow path for the spin lock of an unmodified kernel: the word, pending bit, nodes and hand-over
 * are stock's (Linux's kernel/locking/qspinlock.c), so that waiters of both slow paths can be in
 * one queue. The queue head moves waiters of its domain forward.
 *
 * Included by hook.c, and by the model checker's client of it (tests/check/hook.c). The includer
 * has the kernel's spin lock, world/kernel/pending.h, w_domain(), w_urgent(), w_now() and w_event()
 * of a world, MAX_NODES, and hook_threshold, the time after which no waiter is bypassed, in units
 * of 1,024 ns; it defines hook_nodes_of().
 *
 * The word:
 *
 *   bits  31 .. 18    17 16     15 .. 8   7 .. 0
 *         CPU + 1     index     pending   locked
 *         ╰────── tail ─────╯
 *
 *   0 ──newcomer──▶ locked ──2nd──▶ pending|locked ──release──▶ pending ──2nd──▶ locked
 *   pending or locked ──others──▶ tail|... ──release──▶ tail ──head──▶ tail|locked
 *   tail ──head that is the last waiter──▶ locked
 *
 * What the head does while it waits for the byte, here of domain a:
 *
 *   head ─next─▶ b1 ─▶ a1 ─▶ b2 ─▶ a2 ─▶ b3 ─▶ last
 *   head ─next─▶ a1 ─▶ a2 ─▶ b1 ─▶ b2 ─▶ b3 ─▶ last
 *                ╰─batch─╯
 *
 * Why a waiter of the other slow path may be anywhere in the queue: a waiter writes to the node of
 * its predecessor only while `next` there is NULL, and reads its own `next` only once it is the
 * head. The head changes `next` only of nodes that have one, its own and those behind it, and
 * before it makes another waiter the head. The grant publishes the changes.
 *
 * Promise: mutual exclusion. No later waiter bypasses one that has waited for the threshold, that
 * is urgent, or that stock's slow path has queued. Newcomers do not overtake a queue. Waiters spin.
 * 4 bytes per lock, stock's; what the head reads of a waiter is in the padding of its node.
 */
#ifndef POUNDLOCK_KERNEL_HOOK_QUEUE_H
#define POUNDLOCK_KERNEL_HOOK_QUEUE_H

/* ---- Nodes ---- */

/*
 * struct qnode of a kernel with PARAVIRT_SPINLOCKS. The fields of the padding belong to the spin
 * locks of hypervisors, which are not in use.
 */
struct hook_node {
	struct hook_node *next;
	int locked; /* the waiter is the head */
	int count;  /* of a CPU's first node: its nodes in use */
	/* The padding. */
	u32 since;  /* when the waiter came */
	u32 domain; /* 1 + the domain; 0: stock's slow path has queued the waiter */
	u32 urgent; /* no later waiter bypasses it */
	u32 unused;
};

/* The MAX_NODES nodes of @cpu. */
static inline struct hook_node *hook_nodes_of(u32 cpu);

static inline struct hook_node *hook_node_of(u16 tail)
{
	u32 name = (u32)tail << _Q_TAIL_OFFSET;

	return hook_nodes_of((name >> _Q_TAIL_CPU_OFFSET) - 1) +
	       ((name & _Q_TAIL_IDX_MASK) >> _Q_TAIL_IDX_OFFSET);
}

/* The name of this CPU's node at @index. */
static inline u16 hook_tail(int index)
{
	return (u16)(((u32)(smp_processor_id() + 1) << _Q_TAIL_CPU_OFFSET |
		      (u32)index << _Q_TAIL_IDX_OFFSET) >>
		     _Q_TAIL_OFFSET);
}

static inline u32 hook_clock(void)
{
	return (u32)(w_now() >> 10);
}

static inline void hook_node_init(struct hook_node *node)
{
	/* ONCE, all: a head may read them in the wait before, and a predecessor's link is next. */
	WRITE_ONCE(node->since, hook_clock());
	WRITE_ONCE(node->domain, (u32)w_domain() + 1);
	WRITE_ONCE(node->urgent, w_urgent());
	WRITE_ONCE(node->locked, 0);
	WRITE_ONCE(node->next, NULL);
}

/* ---- Order ---- */

/* A head's walk along the queue. */
struct hook_walk {
	struct hook_node
		*front;       /* the last waiter of the batch; the head, as long as it is empty */
	struct hook_node *at; /* the last waiter that was examined, not before `front` */
	u32 domain;
};

enum hook_step {
	HOOK_ON,   /* a waiter was examined */
	HOOK_END,  /* the next waiter has no successor yet */
	HOOK_STOP, /* no later waiter may bypass the next one */
};

/* Whether the lock goes to other domains because @node has waited for long enough. */
static inline bool hook_is_due(const struct hook_node *node)
{
	return (s32)(hook_clock() - READ_ONCE(node->since)) >= (s32)hook_threshold;
}

/*
 * Whether @node belongs to the batch. An urgent waiter does, and then counts as one of the domain,
 * as in CNA's patch of Linux, so that the batch continues behind it.
 */
static inline bool hook_joins(struct hook_node *node, u32 domain)
{
	if (READ_ONCE(node->domain) == domain)
		return true;
	if (!READ_ONCE(node->domain) || !READ_ONCE(node->urgent))
		return false;
	WRITE_ONCE(node->domain, domain);
	return true;
}

/* Moves @node, whose successor is @after, to the end of the batch. */
static inline void hook_move(struct hook_walk *walk, struct hook_node *node,
			     struct hook_node *after)
{
	/* relaxed, all: no waiter reads them before a head's grant, [HOOK-4] */
	WRITE_ONCE(walk->at->next, after);
	WRITE_ONCE(node->next, READ_ONCE(walk->front->next));
	WRITE_ONCE(walk->front->next, node);
	walk->front = node;
	w_event(shuffle_move);
}

/* Examines the next waiter of @walk. */
static inline enum hook_step hook_step(struct hook_walk *walk)
{
	/* [HOOK-1] acquire, both: pairs with [HOOK-2]; the waiter's padding */
	struct hook_node *node = smp_load_acquire(&walk->at->next);
	struct hook_node *after = node ? smp_load_acquire(&node->next) : NULL;

	if (!after)
		return HOOK_END;
	if (!hook_joins(node, walk->domain)) {
		if (!READ_ONCE(node->domain))
			return HOOK_STOP;
		walk->at = node;
	} else if (walk->at == walk->front) {
		walk->front = walk->at = node;
	} else if (hook_is_due(READ_ONCE(walk->front->next))) {
		/* The first waiter behind the batch came before all that would bypass it. */
		w_event(batch);
		return HOOK_STOP;
	} else {
		hook_move(walk, node, after);
	}
	return HOOK_ON;
}

/* Whether the walk of @head has found a waiter of the domain, which is the next one now. */
static inline bool hook_has_batch(const struct hook_walk *walk, const struct hook_node *head)
{
	return walk->front != head;
}

/*
 * Waits, as the head, until no thread holds @lock or has its pending bit; returns the word. Orders
 * the queue meanwhile by @walk. If the next waiter is of the domain anyway, that one will.
 */
static inline u32 hook_wait_as_head(struct qspinlock *lock, const struct hook_node *head,
				    struct hook_walk *walk)
{
	enum hook_step step = HOOK_ON;

	while (READ_ONCE(lock->locked_pending) && step != HOOK_STOP) {
		step = hook_step(walk);
		/* The next waiter was in place, or the batch has all that have come. */
		if (hook_has_batch(walk, head) && (walk->front == walk->at || step == HOOK_END))
			break;
		if (step == HOOK_END)
			cpu_relax();
	}
	/* acquire: pairs with the release of the kernel's spin lock; the last critical section */
	return (u32)smp_cond_load_acquire(&lock->val.counter,
					  !(VAL & (_Q_LOCKED_MASK | _Q_PENDING_MASK)));
}

/* ---- The slow path ---- */

/* Makes the waiter behind @node the head. */
static inline void hook_grant(struct hook_node *node)
{
	/* [HOOK-5] acquire: pairs with [HOOK-2]; the waiter has cleared `locked` before */
	struct hook_node *next = smp_cond_load_acquire(&node->next, VAL);

	/* [HOOK-4] release: pairs with [HOOK-3]; the order of the queue, and the lock's word */
	smp_store_release(&next->locked, 1);
}

/* Takes @lock by a queue whose last node is @node, of the name @tail. */
static inline void hook_queue(struct qspinlock *lock, struct hook_node *node, u16 tail)
{
	/* xchg: our node is ready before its successor writes to it; and our predecessor's */
	const u16 before = xchg(&lock->tail, tail);
	struct hook_walk walk = {.front = node, .at = node};
	u32 seen;

	w_event(contended);
	if (READ_ONCE(node->urgent))
		w_event(urgent);
	if (before) {
		/* [HOOK-2] release: pairs with [HOOK-1], [HOOK-5]; our node */
		smp_store_release(&hook_node_of(before)->next, node);
		/* [HOOK-3] acquire: pairs with [HOOK-4]; the order of the queue */
		(void)smp_cond_load_acquire(&node->locked, VAL);
	}
	walk.domain = READ_ONCE(node->domain);
	seen = hook_wait_as_head(lock, node, &walk);
	/* tail,0,0 -> 0,0,1. Fails if a waiter came, or a newcomer briefly set the pending bit. */
	if (seen >> _Q_TAIL_OFFSET == tail &&
	    atomic_try_cmpxchg_relaxed(&lock->val, &seen, _Q_LOCKED_VAL))
		return;
	/* *,*,0 -> *,*,1 */
	WRITE_ONCE(lock->locked, _Q_LOCKED_VAL);
	if (hook_has_batch(&walk, node))
		w_event(handover_local);
	hook_grant(node);
}

/* Takes @lock, whose word was @seen. */
static inline void hook_take(struct qspinlock *lock, u32 seen)
{
	struct hook_node *first, *node;
	int index;

	if (take_pending(lock, seen))
		return;
	first = hook_nodes_of(smp_processor_id());
	index = first->count++;
	/* An interrupt handler that comes now uses the next node. */
	barrier();
	if (unlikely(index >= MAX_NODES)) {
		while (!queued_spin_trylock(lock))
			cpu_relax();
	} else {
		node = first + index;
		hook_node_init(node);
		if (!queued_spin_trylock(lock))
			hook_queue(lock, node, hook_tail(index));
	}
	barrier();
	first->count--;
}

#endif
