/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The word of shfl_mutex with its queue by specification, and with a flag above the lock's own that
 * the holder changes at any time, as shfl_ron does.
 *
 * The specification of the queue (part/shuffle.h): one waiter at a time is the head, and a head
 * that leaves makes any other waiter the head. The status by which a waiter waits and sleeps is the
 * queue's own. There is no shuffler, and nobody is woken early.
 *
 * A newcomer tries once to take the lock before it queues. More attempts are as if it came later.
 */
#define LOCK shfl_mutex
/* As in adapter.h. */
#define SHFL_MAX_BATCH 3

#include "choice.h"

/* It decides only whether waiters are woken early. */
#undef w_has_own_cpu
#define w_has_own_cpu() false

#define shfl_enter shfl_enter_itself
#define shfl_leave shfl_leave_itself
#define shfl_head_shuffles shfl_head_shuffles_itself
#define shfl_wake_ahead shfl_wake_ahead_itself
#include "part/shuffle.h"
#undef shfl_enter
#undef shfl_leave
#undef shfl_head_shuffles
#undef shfl_wake_ahead

#define THREADS 4u

/* ---- The queue by its specification ---- */

/*
 *   tail = NULL                  no queue
 *          1 + bits of threads   a head, and the threads that wait behind it
 */
static struct shfl_node *tail_of(uintptr_t head_and_waiters)
{
	return (struct shfl_node *)head_and_waiters;
}

/* The nodes of the threads that wait. */
static struct shfl_node **nodes(void);

static uintptr_t bit_of(uint32_t thread)
{
	return (uintptr_t)2 << thread;
}

static bool shfl_enter(shfl_tail *tail, struct shfl_node *node, uint32_t note)
{
	struct shfl_node *seen = NULL;

	(void)note;
	/* relaxed, both: the compare-exchange publishes them */
	w_store_relaxed(&node->status, SHFL_WAITING);
	w_store_relaxed(&node->shuffler, 0);
	nodes()[check_self()] = node;
	w_event(contended);
	while (!w_compare_exchange_acq_rel(tail, &seen,
					   tail_of(seen ? (uintptr_t)seen | bit_of(check_self())
							: 1)))
		;
	return !seen;
}

/* Returns any one of the threads whose bits are in @waiters; not 0. */
static uint32_t any_of(uintptr_t waiters)
{
	uint32_t thread = 0;

	while (!(waiters & bit_of(thread)) || (waiters > 2 * bit_of(thread) && any_choice()))
		thread++;
	return thread;
}

/* As the head: makes the waiter of @node the head. Returns the status to unpark if it sleeps. */
static W_ATOMIC(uint32_t) *make_head(struct shfl_node *node)
{
	return w_exchange_acq_rel(&node->status, SHFL_READY) == SHFL_PARKED ? &node->status : NULL;
}

static W_ATOMIC(uint32_t) *shfl_leave(shfl_tail *tail, struct shfl_node *node, enum wait wait)
{
	struct shfl_node *seen = tail_of(1);
	uintptr_t left;
	uint32_t next;

	(void)node, (void)wait;
	do {
		left = (uintptr_t)seen - 1;
		next = left ? any_of(left) : 0;
	} while (
		!w_compare_exchange_acq_rel(tail, &seen,
					    left ? tail_of((uintptr_t)seen - bit_of(next)) : NULL));
	return left ? make_head(nodes()[next]) : NULL;
}

static bool shfl_head_shuffles(struct shfl_node *node)
{
	(void)node;
	return false;
}

static void shfl_wake_ahead(struct shfl_node *node, uint32_t count)
{
	(void)node, (void)count;
}

#include "shfl_mutex.h"

/* ---- The clients ---- */

#include "clients.h"

#define FLAG 16u

struct memory {
	uint32_t cell;
	struct shfl_mutex lock;
};

struct notes {
	uint32_t count;
	uint32_t flag; /* FLAG if it is set */
	struct shfl_node *nodes[THREADS];
};

#define SHARED_BYTES sizeof(struct memory)
#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

static struct shfl_node **nodes(void)
{
	return NOTES->nodes;
}

static __attribute__((noinline)) void acquire(enum wait wait)
{
	struct shfl_node node;

	if (!shfl_mutex_try_acquire(&M->lock))
		check_assert(shfl_mutex_acquire_queued(&M->lock, &node, POLICY(wait), NULL));
}

/* As the holder: changes the flag, which nobody else has changed. */
static void change_flag(void)
{
	const uint32_t flag = NOTES->flag ^ FLAG;
	/* relaxed, both: publishes nothing */
	const uint32_t seen = flag ? w_fetch_or_relaxed(&M->lock.state, FLAG)
				   : w_fetch_and_relaxed(&M->lock.state, ~FLAG);

	check_assert((seen & SHFL_MUTEX_STANDING) == NOTES->flag);
	NOTES->flag = flag;
}

static void lock_and_unlock(enum wait wait)
{
	acquire(wait);
	check_returned();
	M->cell++;
	NOTES->count++;
	if (any_choice())
		change_flag();
	check_assert(shfl_mutex_release(&M->lock, POLICY(wait)));
}

static void finish(void)
{
	check_outcome(0, NOTES->count);
	check_assert(M->cell == NOTES->count);
	/* relaxed: the threads have ended */
	check_assert(w_load_relaxed(&M->lock.state) == NOTES->flag);
}

WAYS(lock_1, lock_and_unlock(wait))
WAYS(lock_2, TWICE(lock_and_unlock(wait)))

#define COMPOSED .flags = CHECK_CLIENT_COMPOSED | CHECK_CLIENT_COMPLETE

const struct check_client check_clients[] = {
	ENTRY("2x1/park", lock_1_park, 2, "contended park", "2", NULL, finish,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("2x2/park", lock_2_park, 2, "contended park", "4", NULL, finish),
	ENTRY("composed/3x1/park", lock_1_park, 3, "contended park close wake_late", "3", NULL,
	      finish, COMPOSED),
	ENTRY("composed/4x1/park", lock_1_park, THREADS, "contended park close wake_late", "4",
	      NULL, finish, COMPOSED),
	{.name = NULL},
};
