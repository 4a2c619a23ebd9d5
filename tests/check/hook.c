/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clients of the slow path for unmodified kernels (kernel/hook/queue.h), whose waiters share queues
 * with those of stock's, of which stock_take() is a model. A thread may use either at each turn, as
 * when the module is loaded and unloaded at any moment.
 */
#include "kernel_spin.h"

#define hook_threshold (NOTES->due ? 0u : W_THRESHOLD)

#include "../../kernel/hook/queue.h"

#define MOST_NODES 7

#define SHARED_BYTES (KERNEL_PLACES + MOST_NODES * MAX_NODES * sizeof(struct hook_node))

static inline struct hook_node *hook_nodes_of(u32 cpu)
{
	return (struct hook_node *)(void *)(CHECK_MEMORY + KERNEL_PLACES) + cpu * MAX_NODES;
}

/* ---- Stock's slow path ---- */

/*
 * queued_spin_lock_slowpath() of Linux 6.1 and 6.12, of one context per CPU. smp_wmb() before the
 * exchange of the tail makes it and the link releases here. The address dependencies from the
 * exchange to the link and from `next` to the grant, orders in the kernel but not in C11, are
 * acquires.
 */
static void stock_take(struct qspinlock *lock, u32 val)
{
	struct hook_node *node = hook_nodes_of(smp_processor_id()), *next = NULL;
	u32 old, tail = encode_tail(smp_processor_id(), 0);

	if (val == _Q_PENDING_VAL) {
		cpu_relax();
		val = (u32)READ_ONCE(lock->val.counter);
	}
	if (val & ~_Q_LOCKED_MASK)
		goto queue;
	val = queued_fetch_set_pending_acquire(lock);
	if (val & ~_Q_LOCKED_MASK) {
		if (!(val & _Q_PENDING_MASK))
			WRITE_ONCE(lock->pending, 0);
		goto queue;
	}
	if (val & _Q_LOCKED_MASK)
		(void)smp_cond_load_acquire(&lock->val.counter, !(VAL & _Q_LOCKED_MASK));
	WRITE_ONCE(lock->locked_pending, _Q_LOCKED_VAL);
	return;
queue:
	node->count++;
	WRITE_ONCE(node->locked, 0);
	WRITE_ONCE(node->next, NULL);
	if (queued_spin_trylock(lock))
		goto release;
	old = (u32)xchg(&lock->tail, (u16)(tail >> _Q_TAIL_OFFSET)) << _Q_TAIL_OFFSET;
	w_event(overflow); /* stands for: a waiter of stock's is in the queue */
	if (old) {
		smp_store_release(&hook_nodes_of((old >> _Q_TAIL_CPU_OFFSET) - 1)->next, node);
		(void)smp_cond_load_acquire(&node->locked, VAL);
		next = smp_load_acquire(&node->next);
	}
	val = (u32)smp_cond_load_acquire(&lock->val.counter, !(VAL & _Q_LOCKED_PENDING_MASK));
	if ((val & ~_Q_LOCKED_PENDING_MASK) == tail &&
	    atomic_try_cmpxchg_relaxed(&lock->val, (int *)&val, (int)_Q_LOCKED_VAL))
		goto release;
	WRITE_ONCE(lock->locked, _Q_LOCKED_VAL);
	if (!next)
		next = smp_cond_load_acquire(&node->next, VAL);
	smp_store_release(&next->locked, 1);
release:
	node->count--;
}

/* ---- Threads ---- */

static void take(void (*slow_path)(struct qspinlock *lock, u32 seen))
{
	int seen = 0;

	check_acquires();
	if (!atomic_try_cmpxchg_acquire(&M->lock.val, &seen, (int)_Q_LOCKED_VAL))
		slow_path(&M->lock, (u32)seen);
	check_acquired(true);
	enter();
}

static void ours(uint32_t self)
{
	(void)self;
	take(hook_take);
}

static void ours_twice(uint32_t self)
{
	ours(self);
	ours(self);
}

/* Threads of odd numbers use stock's slow path. */
static void both(uint32_t self)
{
	take(self % 2 ? stock_take : hook_take);
}

/* The module may be loaded or unloaded before each turn. */
static void any(uint32_t self)
{
	(void)self;
	take(CHECK_DO("hooked", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) ? hook_take : stock_take);
}

static void any_twice(uint32_t self)
{
	any(self);
	any(self);
}

static void or_try(uint32_t self)
{
	if (self != 1)
		both(self);
	else if (queued_spin_trylock(&M->lock))
		enter();
}

/* As the holder that fill() made, then as its pending waiter, which waits as in take_pending(). */
static void leave_crowd(void)
{
	enter();
	(void)smp_cond_load_acquire(&M->lock.locked, !VAL);
	WRITE_ONCE(M->lock.locked_pending, _Q_LOCKED_VAL);
	enter();
}

static void crowd_ours(uint32_t self)
{
	if (self)
		ours(self);
	else
		leave_crowd();
}

/* The fast path has seen the crowd, so the thread does not try to become the pending waiter. */
static void queue_in(void (*slow_path)(struct qspinlock *lock, u32 seen))
{
	check_acquires();
	slow_path(&M->lock, _Q_LOCKED_VAL | _Q_PENDING_VAL);
	check_acquired(true);
	enter();
}

static void crowd_queue(uint32_t self)
{
	if (self)
		queue_in(hook_take);
	else
		leave_crowd();
}

/* The third thread uses stock's slow path. */
static void crowd_one_stock(uint32_t self)
{
	if (self == 2)
		queue_in(stock_take);
	else
		crowd_queue(self);
}

/* ---- One walk ---- */

#define QUEUE MOST_NODES

/*
 * A queue whose nodes are those of CPUs: the head, of domain 1, and its waiters, of which the 5th
 * is urgent. The walk brings those of domain 1 and the urgent one to the front, and keeps the order
 * of both groups and the place of the last.
 */
static void walk_once(uint32_t self)
{
	static const u32 domains[QUEUE] = {1, 2, 1, 2, 1, 2, 1};
	static const u32 ordered[QUEUE] = {0, 2, 4, 5, 1, 3, 6};
	struct hook_node *node = hook_nodes_of(0);
	struct hook_walk walk = {.front = node, .at = node, .domain = 1};
	u32 i;

	(void)self;
	for (i = 0; i < QUEUE; i++) {
		WRITE_ONCE(node[i].domain, domains[i]);
		WRITE_ONCE(node[i].urgent, i == 5);
		WRITE_ONCE(node[i].next, i + 1 < QUEUE ? &node[i + 1] : NULL);
	}
	while (hook_step(&walk) == HOOK_ON)
		;
	check_assert(walk.front == &node[5]);
	for (i = 0; i < QUEUE; i++, node = READ_ONCE(node->next))
		check_assert(node == &hook_nodes_of(0)[ordered[i]]);
	check_assert(!node);
}

/* ---- Begin and end ---- */

/* Waiters may be bypassed for as long as the walk takes. */
static void prepare_still(void)
{
	prepare();
	NOTES->still = true;
}

/* The third thread is urgent, and only its bypasses count. */
static void crowd_urgent(void)
{
	fill();
	check_queue(&M->lock.tail);
	NOTES->urgent = 1u << 2;
}

static void crowd_mixed(void)
{
	fill();
	check_queue(&M->lock.tail);
}

/* No waiter may be bypassed. */
static void crowd_due(void)
{
	fill();
	check_queue(&M->lock.tail);
	NOTES->still = true;
	NOTES->due = true;
}

#define ORDER(most) .flags = CHECK_CLIENT_ORDER, .bypass = most
#define WALKS .walks = 20000

const struct check_client check_clients[] = {
	ENTRY("walk", walk_once, 1, "shuffle_move", NULL, prepare_still, finish),
	ENTRY("ours/2x1", ours, 2, NULL, NULL, prepare, finish, PROMISES),
	ENTRY("ours/2x2", ours_twice, 2, NULL, NULL, prepare, finish, PROMISES),
	ENTRY("ours/3x1", ours, 3, "contended", NULL, prepare, finish, PROMISES),
	ENTRY("both/3x1", both, 3, "contended", NULL, prepare, finish, PROMISES),
	ENTRY("any/3x1", any, 3, "contended", NULL, prepare, finish),
	ENTRY("any/2x2", any_twice, 2, NULL, NULL, prepare, finish),
	ENTRY("trylock/3", or_try, 3, NULL, NULL, prepare, finish),
	ENTRY("crowd/ours/5", crowd_ours, 5, "shuffle_move batch", NULL, fill, finish, WALKS),
	ENTRY("crowd/one_stock/5", crowd_one_stock, 5, "shuffle_move", NULL, fill, finish, WALKS),
	ENTRY("crowd/stock_kept/5", crowd_one_stock, 5, "shuffle_move", NULL, crowd_mixed, finish,
	      ORDER(0), .since = 1 + W_EVENT_overflow, WALKS),
	ENTRY("crowd/urgent/5", crowd_queue, 5, "urgent shuffle_move", NULL, crowd_urgent, finish,
	      ORDER(0), .since = 1 + W_EVENT_urgent, WALKS),
	ENTRY("crowd/due/5", crowd_queue, 5, "batch", NULL, crowd_due, finish, ORDER(0), WALKS),
	{.name = NULL},
};
