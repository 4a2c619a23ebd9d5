/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's spin lock with the queues of core/ (kernel/overlay/spin_queues.h) in the
 * kernel's world (world/kernel/objects.h). CFL's queue is not among them.
 */
#include "kernel_spin.h"

struct cfl;
struct cfl_ledger;
static struct cfl_ledger *cfl_ledger(struct cfl *lock)
{
	return NULL;
}

#include "../../kernel/overlay/spin_queues.h"

#define MOST_THREADS 5
#define SHARED_BYTES (KERNEL_PLACES + MOST_THREADS * sizeof(places))

/* As the holder that fill() made, then as its pending waiter. */
static void enter_twice(void)
{
	enter();
	clear_pending_set_locked(&M->lock);
	enter();
}

#define CLIENTS(name)                                                                \
	static void name##_once(uint32_t self)                                       \
	{                                                                            \
		int seen = 0;                                                        \
                                                                                     \
		(void)self;                                                          \
		check_acquires();                                                    \
		if (!atomic_try_cmpxchg_acquire(&M->lock.val, &seen, _Q_LOCKED_VAL)) \
			name##_spin_lock_slowpath(&M->lock, seen);                   \
		check_acquired(true);                                                \
		enter();                                                             \
	}                                                                            \
	static void name##_full(uint32_t self)                                       \
	{                                                                            \
		if (self)                                                            \
			name##_once(self);                                           \
		else                                                                 \
			enter_twice();                                               \
	}                                                                            \
	static void name##_twice(uint32_t self)                                      \
	{                                                                            \
		name##_once(self);                                                   \
		name##_once(self);                                                   \
	}                                                                            \
	static void name##_or_try(uint32_t self)                                     \
	{                                                                            \
		if (self != 1)                                                       \
			name##_once(self);                                           \
		else if (queued_spin_trylock(&M->lock))                              \
			enter();                                                     \
	}

CLIENTS(cna)
CLIENTS(ron)
CLIENTS(shfl)

/* As fill(). The second thread is urgent, and the only one whose bypasses count. */
static void fill_urgent(void)
{
	fill();
	check_queue(&M->lock.val.counter);
	check_queue(&M->lock.tail);
	NOTES->urgent = 1u << 1;
}

static void prepare_changes(void)
{
	prepare();
	NOTES->changes = true;
}

static void fill_changes(void)
{
	fill();
	NOTES->changes = true;
}

/* @wanted: events that must occur with a head and another waiter behind it. */
#define ENTRIES(name, wanted)                                                                 \
	ENTRY(#name "/2x1", name##_once, 2, NULL, NULL, prepare, finish, PROMISES),           \
		ENTRY(#name "/2x2", name##_twice, 2, NULL, NULL, prepare, finish, PROMISES),  \
		ENTRY(#name "/3x1", name##_once, 3, NULL, NULL, prepare, finish, PROMISES),   \
		ENTRY(#name "/4x1", name##_once, 4, NULL, NULL, prepare, finish),             \
		ENTRY(#name "/full/3", name##_full, 3, wanted, NULL, fill, finish, PROMISES), \
		ENTRY(#name "/trylock/3", name##_or_try, 3, NULL, NULL, prepare, finish, PROMISES)

/* The most later arrivals that bypass an urgent waiter, once it is in the queue. */
#define URGENT(most) .flags = CHECK_CLIENT_ORDER, .bypass = most, .since = 1 + W_EVENT_urgent

const struct check_client check_clients[] = {
	ENTRIES(cna, "handover_remote"),
	ENTRIES(ron, "contended recheck"),
	ENTRIES(shfl, "contended shuffle"),
	ENTRY("cna/full/4", cna_full, 4, "handover_local secondary flush", NULL, fill, finish),
	ENTRY("shfl/full/5", shfl_full, 5, "shuffle_move", NULL, fill, finish, .walks = 20000),
	ENTRY("cna/urgent/4", cna_full, 4, "urgent secondary", NULL, fill_urgent, finish,
	      URGENT(0)),
	ENTRY("shfl/urgent/5", shfl_full, 5, "urgent shuffle_move", NULL, fill_urgent, finish,
	      URGENT(0), .walks = 20000),
	/* One more may be chosen by a search that began before the urgent waiter came. */
	ENTRY("ron/urgent/5", ron_full, 5, "urgent", NULL, fill_urgent, finish, URGENT(1),
	      .walks = 20000),
	/* The settings of ShflLock change while it is used. */
	ENTRY("shfl/changed/2x2", shfl_twice, 2, NULL, NULL, prepare_changes, finish, PROMISES),
	ENTRY("shfl/changed/full/3", shfl_full, 3, "contended shuffle", NULL, fill_changes, finish,
	      PROMISES),
	ENTRY("shfl/changed/full/5", shfl_full, 5, "shuffle_move", NULL, fill_changes, finish,
	      .walks = 20000),
	{.name = NULL},
};
