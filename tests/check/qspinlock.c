/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's spin lock with the queues of core/ (kernel/overlay/spin_queues.h) in the
 * kernel's world (world/kernel/objects.h): a byte of the word is stored, its half is exchanged, and
 * the word is compared as a whole. CFL's queue is not among them. Bypassing ends by the clock, of
 * which the explorer chooses each reading: the threshold has passed, or it has not.
 */
#define CHECK_OBJECTS "../../tests/check/kernel.h"
#define CHECK_COMMON 64
#define KERNEL_INTS 32
#define KERNEL_PLACES 2048
#define W_THRESHOLD 1024u
#define CHECK_NOW()                                                                             \
	(CHECK_DO("now", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) ? (uint64_t)W_THRESHOLD << 10 \
								  : UINT64_C(0))
#define W_URGENCY 1
#define w_urgent() (NOTES->urgent >> check_engine->self() & 1)
#include "check.h"
#include "entry.h"

struct notes {
	uint32_t entered;
	uint32_t urgent; /* a bit for each thread */
	bool changes;    /* the lock's settings, at any moment */
};

#define NOTES check_ghost(struct notes)
#define KERNEL_CHANGES NOTES->changes

struct cfl;
struct cfl_ledger;
static struct cfl_ledger *cfl_ledger(struct cfl *lock) __attribute__((unused));

#include "../../world/kernel/pending.h"
#include "../../kernel/overlay/spin_queues.h"

#define MOST_THREADS 5

struct memory {
	struct qspinlock lock;
	uint32_t entered; /* under the lock */
};

#define M check_shared(struct memory)
#define SHARED_BYTES (KERNEL_PLACES + MOST_THREADS * sizeof(places))

_Static_assert(sizeof(struct memory) <= KERNEL_INTS, "the CPUs' data are behind it");

static void enter(void)
{
	M->entered++;
	(void)check_add(&NOTES->entered, 1);
	queued_spin_unlock(&M->lock);
}

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

static void prepare(void)
{
	check_mixed(&M->lock.val.counter);
}

/* The first thread holds the lock and waits pending, so that the others queue. */
static void fill(void)
{
	prepare();
	M->lock.val.counter = _Q_LOCKED_VAL | _Q_PENDING_VAL;
}

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

static void finish(void)
{
	check_assert(!w_load_relaxed(&M->lock.val.counter));
	check_assert(M->entered == NOTES->entered);
}

/* @wanted: events that must occur with a head and another waiter behind it. */
#define PROMISES .flags = CHECK_CLIENT_PROMISES
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
