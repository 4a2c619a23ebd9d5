/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Clients of the kernel's spin lock with the queues of core/ (kernel/overlay/spin_queues.h) in the
 * kernel's world (world/kernel/objects.h): a byte of the word is stored, its half is exchanged, and
 * the word is compared as a whole. CFL's queue is not among them.
 */
#define CHECK_OBJECTS "../../tests/check/kernel.h"
#define CHECK_COMMON 64
#define KERNEL_INTS 32
#define KERNEL_PLACES 2048
#include "check.h"
#include "entry.h"

struct cfl;
struct cfl_ledger;
static struct cfl_ledger *cfl_ledger(struct cfl *lock) __attribute__((unused));

#include "../../kernel/overlay/spin_queues.h"

#define MOST_THREADS 5

struct memory {
	struct qspinlock lock;
	uint32_t entered; /* under the lock */
};

struct notes {
	uint32_t entered;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SHARED_BYTES (KERNEL_PLACES + MOST_THREADS * sizeof(places))

_Static_assert(sizeof(struct memory) <= KERNEL_INTS, "the CPUs' data are behind it");

static void enter(void)
{
	M->entered++;
	(void)check_add(&NOTES->entered, 1);
	queued_spin_unlock(&M->lock);
}

#define CLIENTS(name)                                                                \
	static void name##_once(uint32_t self)                                       \
	{                                                                            \
		int seen = 0;                                                        \
                                                                                     \
		(void)self;                                                          \
		if (!atomic_try_cmpxchg_acquire(&M->lock.val, &seen, _Q_LOCKED_VAL)) \
			name##_spin_lock_slowpath(&M->lock, seen);                   \
		enter();                                                             \
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

static void finish(void)
{
	check_assert(!w_load_relaxed(&M->lock.val.counter));
	check_assert(M->entered == NOTES->entered);
}

/* @wanted: events that must occur among three threads. */
#define PROMISES .flags = CHECK_CLIENT_PROMISES
#define ENTRIES(name, wanted)                                                                 \
	ENTRY(#name "/2x1", name##_once, 2, NULL, NULL, prepare, finish, PROMISES),           \
		ENTRY(#name "/2x2", name##_twice, 2, NULL, NULL, prepare, finish, PROMISES),  \
		ENTRY(#name "/3x1", name##_once, 3, wanted, NULL, prepare, finish, PROMISES), \
		ENTRY(#name "/trylock/3", name##_or_try, 3, NULL, NULL, prepare, finish, PROMISES)

const struct check_client check_clients[] = {
	ENTRIES(cna, "handover_local handover_remote"),
	ENTRIES(ron, "contended recheck"),
	ENTRIES(shfl, "contended shuffle"),
	ENTRY("cna/4x1", cna_once, 4, "secondary flush", NULL, prepare, finish),
	ENTRY("shfl/5x1", shfl_once, 5, "shuffle_move", NULL, prepare, finish, .walks = 20000),
	{.name = NULL},
};
