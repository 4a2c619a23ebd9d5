/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by the clients of slow paths of the kernel's spin lock (qspinlock.c, hook.c): the lock,
 * the time and the notes. A word's bytes are stored, its halves exchanged, and it is compared as a
 * whole. Bypassing ends by the clock, of which the explorer chooses each reading: the threshold has
 * passed, or it has not.
 */
#ifndef POUNDLOCK_CHECK_KERNEL_SPIN_H
#define POUNDLOCK_CHECK_KERNEL_SPIN_H

#define CHECK_OBJECTS "../../tests/check/kernel.h"
#define CHECK_COMMON 64
#define KERNEL_INTS 32
#define KERNEL_PLACES 2048
#define KERNEL_CHANGES NOTES->changes
#define W_THRESHOLD 1024u
#ifndef CHECK_NOW
#define CHECK_NOW()                                                                \
	(!NOTES->still && CHECK_DO("now", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) \
		 ? (uint64_t)W_THRESHOLD << 10                                     \
		 : UINT64_C(0))
#endif
#define W_URGENCY 1
#define w_urgent() (NOTES->urgent >> check_self() & 1)
#include "check.h"
#include "entry.h"

struct notes {
	uint32_t entered;
	uint32_t urgent; /* a bit for each thread */
	bool still;      /* no time passes */
	bool due;        /* there is no time for which waiters may be bypassed */
	bool changes;    /* the lock's settings, at any moment */
};

struct memory {
	struct qspinlock lock;
	uint32_t entered; /* under the lock */
};

#define NOTES check_ghost(struct notes)
#define M check_shared(struct memory)

_Static_assert(sizeof(struct memory) <= KERNEL_INTS, "the CPUs' data are behind it");

#include "../../world/kernel/pending.h"

static void enter(void)
{
	M->entered++;
	(void)check_add(&NOTES->entered, 1);
	queued_spin_unlock(&M->lock);
}

static void prepare(void)
{
	check_mixed(&M->lock.val.counter);
}

/*
 * The lock is held and has a pending waiter, so that all newcomers queue. The first thread acts for
 * both.
 */
static void fill(void)
{
	prepare();
	M->lock.val.counter = _Q_LOCKED_VAL | _Q_PENDING_VAL;
}

static void finish(void)
{
	check_assert(!w_load_relaxed(&M->lock.val.counter));
	check_assert(M->entered == NOTES->entered);
}

#define PROMISES .flags = CHECK_CLIENT_PROMISES

#endif
