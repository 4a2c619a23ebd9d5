/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The clients of one lock of core/locks.def, the same for every lock (adapter.h).
 *
 * The protected object is a plain cell, so that two threads in the critical section are a data
 * race even if the count is right. Without help from the clients, the checker detects a thread that
 * never finishes and a use after the end of a lifetime.
 */
#include "adapter.h"

struct memory {
	uint32_t cell;
#ifdef TWO_LOCKS
	uint32_t other_cell;
	struct LOCK other; /* waiters of both locks use the same common block */
#endif
	struct LOCK lock; /* last: a boxed lock extends beyond its struct */
};

/* The size of the memory that all threads share. */
#ifdef COMMON_ROOM
_Static_assert(sizeof(struct memory) + BOX_ROOM <= CHECK_COMMON, "the common block is behind it");
#define SHARED_BYTES (CHECK_COMMON + COMMON_ROOM)
#else
#define SHARED_BYTES (sizeof(struct memory) + BOX_ROOM)
#endif

/* The client's record of what the threads did; no part of the explored memory. */
struct notes {
	uint32_t count;
	holding kept;  /* of the thread that holds the lock from the start */
	bool promised; /* the lock was left to a waiter, which has not acquired it yet */
#ifdef CHANGED
	bool changes; /* the lock's settings, at any moment */
#endif
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

static void critical_section(void)
{
	M->cell++;
	NOTES->count++;
}

static void lock_and_unlock(enum wait wait)
{
	holding kept;

	check_assert(acquire(&M->lock, &kept, wait, NULL));
	check_returned();
	critical_section();
	release(&M->lock, kept, wait);
	check_returned();
}

static void try_and_unlock(enum wait wait)
{
	holding kept;

	if (!try_acquire(&M->lock, &kept))
		return;
	check_returned();
	critical_section();
	release(&M->lock, kept, wait);
	check_returned();
}

static void lock_timed_and_unlock(enum wait wait)
{
	static const struct w_deadline deadline;
	holding kept;
	bool locked;

	check_renew_deadline();
	locked = acquire(&M->lock, &kept, wait, &deadline);
	check_returned();
	if (!locked)
		return;
	critical_section();
	release(&M->lock, kept, wait);
	check_returned();
}

/* Locks. Returns the number of users until now, this one included. */
static uint32_t lock_as_user(holding *kept, enum wait wait)
{
	check_assert(acquire(&M->lock, kept, wait, NULL));
	check_returned();
	NOTES->count++;
	return ++M->cell;
}

/* Locks; the last user frees the lock right after its unlock. */
static void lock_and_free(enum wait wait)
{
	holding kept;
	const uint32_t users = lock_as_user(&kept, wait);

	release(&M->lock, kept, wait);
	check_returned();
	if (users == 2)
		check_ended(&M->lock);
}

/* Forks as the holder. The lock must work in the child even if the parent had waiters. */
static void lock_and_fork(enum wait wait)
{
	holding kept;

	check_assert(acquire(&M->lock, &kept, wait, NULL));
	check_returned();
	critical_section();
	check_fork();
	repair(&M->lock, kept);
	check_create_threads();
	release(&M->lock, kept, wait);
	check_returned();
	lock_and_unlock(wait);
}

/* Forks as the holder. Once the child's only thread has unlocked, a trylock must succeed. */
static void fork_and_try(enum wait wait)
{
	holding kept;

	check_assert(acquire(&M->lock, &kept, wait, NULL));
	check_returned();
	critical_section();
	check_fork();
	repair(&M->lock, kept);
	release(&M->lock, kept, wait);
	check_returned();
	check_assert(try_acquire(&M->lock, &kept));
	critical_section();
	release(&M->lock, kept, wait);
}

/* Forks as holder for the second time: the other may have been woken without getting the lock. */
static void lock_and_fork_later(enum wait wait)
{
	lock_and_unlock(wait);
	fork_and_try(wait);
}

static void lock_in_child(enum wait wait)
{
	check_wait_to_be_created();
	lock_and_unlock(wait);
}

#ifdef TWO_LOCKS
/* Threads with even numbers use one lock, the others another. */
static void lock_either(enum wait wait, uint32_t self)
{
	struct LOCK *lock = self % 2 ? &M->other : &M->lock;
	holding kept;

	check_assert(acquire(lock, &kept, wait, NULL));
	check_returned();
	if (self % 2)
		M->other_cell++;
	else
		critical_section();
	release(lock, kept, wait);
	check_returned();
}
#endif

static void prepare(void)
{
	make(&M->lock);
}

#ifdef CHANGED
#include "changes.h"

static void prepare_changes(void)
{
	prepare();
	NOTES->changes = true;
}
#endif

/* Thread 0 holds the lock from the start, so that all others queue. */
static void hold(void)
{
	holding kept;

	make(&M->lock);
	check_assert(try_acquire(&M->lock, &kept));
	NOTES->kept = kept;
}

static void unlock_held(enum wait wait)
{
	critical_section();
	release(&M->lock, NOTES->kept, wait);
	check_returned();
}

/* Checks at the end that no critical section was lost, and that the lock and all nodes are free. */
static void finish(void)
{
	holding kept;

	check_outcome(0, NOTES->count);
	check_assert(M->cell == NOTES->count);
	check_assert(try_acquire(&M->lock, &kept));
	release(&M->lock, kept, WAIT_YIELD);
	check_assert(check_busy_nodes() == 0);
#ifdef AT_REST
	check_assert(AT_REST());
#endif
}

static void finish_freed(void)
{
	check_outcome(0, M->cell);
	check_assert(check_busy_nodes() == 0);
}

#ifdef RELEASE_FAIRLY
/* Not inlined, so that its frame ends when it returns. */
static __attribute__((noinline)) void release_fairly(enum wait wait)
{
	check_assert(LOCK_FUNCTION(release_fair)(&M->lock, POLICY(wait)));
	check_returned();
}

/* Releases the lock fairly, which leaves it to a waiter that the caller has seen. */
static void unlock_fairly(enum wait wait)
{
	/* relaxed: the waiter is in the queue until it has acquired the lock */
	NOTES->promised = w_load_relaxed(&RELEASE_FAIRLY(&M->lock)->tail) != NULL;
	critical_section();
	release_fairly(wait);
}

/* A waiter, the only one that the fair release may have seen. */
static void wait_and_unlock(enum wait wait)
{
	holding kept;

	check_assert(acquire(&M->lock, &kept, wait, NULL));
	check_returned();
	NOTES->promised = false;
	critical_section();
	release(&M->lock, kept, wait);
	check_returned();
}

/* A newcomer that never queues, and must not take a lock that is left to a waiter. */
static void barge_and_unlock(enum wait wait)
{
	holding kept;

	if (!try_acquire(&M->lock, &kept))
		return;
	check_returned();
	check_assert(!NOTES->promised);
	critical_section();
	release(&M->lock, kept, wait);
	check_returned();
}

static void lock_and_unlock_fairly(enum wait wait)
{
	holding kept;

	check_assert(acquire(&M->lock, &kept, wait, NULL));
	check_returned();
	critical_section();
	release_fairly(wait);
}

static void lock_timed_and_unlock_fairly(enum wait wait)
{
	static const struct w_deadline deadline;
	holding kept;

	check_renew_deadline();
	if (!acquire(&M->lock, &kept, wait, &deadline)) {
		check_returned();
		return;
	}
	check_returned();
	critical_section();
	release_fairly(wait);
}

/* Locks; the last user frees the lock right after its fair release. */
static void lock_and_free_fairly(enum wait wait)
{
	holding kept;
	const uint32_t users = lock_as_user(&kept, wait);

	release_fairly(wait);
	if (users == 2)
		check_ended(&M->lock);
}

/*
 * Forks as the holder, and releases fairly in the child, where nobody waits: a trylock must
 * succeed, without the repair that it would do itself.
 */
static void fork_and_release_fairly(enum wait wait)
{
	holding kept;

	check_assert(acquire(&M->lock, &kept, wait, NULL));
	check_returned();
	critical_section();
	check_fork();
	release_fairly(wait);
	check_assert(!(w_load_relaxed(&RELEASE_FAIRLY(&M->lock)->state) & ~SHFL_MUTEX_STANDING));
	check_assert(try_acquire(&M->lock, &kept));
	critical_section();
	release(&M->lock, kept, wait);
}

WAYS(
	fair_once,
	if (self == 0) {
		unlock_fairly(wait);
		barge_and_unlock(wait);
	} else if (self == 1) wait_and_unlock(wait);
	else barge_and_unlock(wait))
WAYS(fair_lock, TWICE(lock_and_unlock_fairly(wait)))
WAYS(
	fair_held, if (self == 0) {
		critical_section();
		release_fairly(wait);
	} else lock_timed_and_unlock_fairly(wait))
WAYS(fair_either, if (self == 0) lock_timed_and_unlock_fairly(wait);
     else lock_and_unlock_fairly(wait))
WAYS(fair_freed, lock_and_free_fairly(wait))
WAYS(fair_fork, if (self == 0) fork_and_release_fairly(wait); else lock_and_unlock(wait))

/* The outcome of the timed clients is the number of threads that acquired the lock. */
#define FAIR_CLIENTS                                                                              \
	ENTRIES("fair/2", fair_once, 2, "contended", "2 3", hold, finish, .spurious = 1),         \
		ENTRIES("fair/3", fair_once, 3, "contended", "2 3 4", hold, finish,               \
			.spurious = 0),                                                           \
		ENTRIES("fair/2x2", fair_lock, 2, "contended", "4", prepare, finish),             \
		ENTRIES("fair/timed/2", fair_held, 2, "abandon", "1 2", hold, finish,             \
			.spurious = 1),                                                           \
		ENTRIES("fair/timed/3", fair_held, 3, "abandon", "1 2 3", hold, finish,           \
			.spurious = 0, .walks = WALKS),                                           \
		ENTRIES("fair/timed/one_of_3", fair_either, 3, "abandon", "2 3", prepare, finish, \
			.spurious = 0, .walks = WALKS),                                           \
		ENTRIES("fair/freed/2", fair_freed, 2, "contended", "2", prepare, finish_freed,   \
			.spurious = 1),                                                           \
		ENTRIES("fair/fork/2", fair_fork, 2, "", "2 3", prepare, finish,                  \
			.flags = CHECK_CLIENT_FORKS),
#else
#define FAIR_CLIENTS
#endif

WAYS(lock_1, lock_and_unlock(wait))
WAYS(lock_2, TWICE(lock_and_unlock(wait)))
#ifdef BYPASS
WAYS(lock_3, TWICE(lock_and_unlock(wait)); lock_and_unlock(wait))
#endif
WAYS(try, if (self == 0) lock_and_unlock(wait); else try_and_unlock(wait))
WAYS(timed, if (self == 0) lock_timed_and_unlock(wait); else lock_and_unlock(wait))
WAYS(timed_both, if (self < 2) lock_timed_and_unlock(wait); else lock_and_unlock(wait))
WAYS(held, if (self == 0) unlock_held(wait); else lock_and_unlock(wait))
WAYS(fork, if (self == 0) lock_and_fork(wait); else if (self == 1) lock_and_unlock(wait);
     else lock_in_child(wait))
WAYS(held_timed, if (self == 0) unlock_held(wait); else if (self % 2) lock_timed_and_unlock(wait);
     else lock_and_unlock(wait))
WAYS(fork_try, if (self == 0) fork_and_try(wait); else lock_and_unlock(wait))
WAYS(fork_later, if (self == 0) lock_and_fork_later(wait); else lock_and_unlock(wait))
WAYS(freed, lock_and_free(wait))
#ifdef TWO_LOCKS
WAYS(either, lock_either(wait, self))
#endif

#ifdef BODIES
#include BODIES
#endif

#define ORDERED(count) .flags = CHECK_CLIENT_ORDER, .bypass = BYPASS(count), .since = BYPASS_SINCE

#ifdef CLIENTS
const struct check_client check_clients[] = {CLIENTS{.name = NULL}};
#else
/*
 * Spurious wake-ups multiply the states: clients of two threads have them without a bound, clients
 * of three threads under a bound.
 */
const struct check_client check_clients[] = {
#ifdef BYPASS
	/* Enough rounds for a thread that does not queue to overtake the other twice. */
	ENTRIES("order/2", lock_3, 2, "contended", "6", prepare, finish, ORDERED(2)),
	ENTRY("order/3/spin", lock_2_spin, 3, "contended", "6", prepare, finish, ORDERED(3)),
	ENTRY("order/5/yield", lock_2_yield, 5, "contended", NULL, prepare, finish, ORDERED(5),
	      .walks = 10000),
	ENTRY("order/5/park", lock_2_park, 5, "contended", NULL, prepare, finish, ORDERED(5),
	      .walks = 10000),
#endif
	ENTRY("moved/3/spin", lock_1_spin, 3, "contended", "3", prepare, finish, .moves = 2,
	      .walks = WALKS),
	ENTRY("moved/3/park", lock_1_park, 3, "contended", "3", prepare, finish, .moves = 1,
	      .walks = WALKS),
	ENTRY("moved/5/park", held_park, 5, "contended", NULL, hold, finish, .moves = 2,
	      .walks = 10000),
	ENTRIES("2x1", lock_1, 2, "contended", "2", prepare, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRY("2x2/spin", lock_2_spin, 2, "contended", "4", prepare, finish, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("2x2/yield", lock_2_yield, 2, "contended", "4", prepare, finish, .spurious = 1),
	ENTRY("2x2/park", lock_2_park, 2, "contended", "4", prepare, finish, .spurious = 1,
	      .flags = PROMISES_PARKED),
	ENTRIES("trylock/2", try, 2, "", "1 2", prepare, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("timed/2", timed, 2, "", "1 2", prepare, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("freed/2", freed, 2, "contended", "2", prepare, finish_freed, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRY("3x1/spin", lock_1_spin, 3, "contended " WHEN_3, "3", prepare, finish, .walks = WALKS,
	      .invariant = queue_invariant, .flags = CHECK_CLIENT_PROMISES),
	ENTRY("3x1/yield", lock_1_yield, 3, "contended " WHEN_3, "3", prepare, finish,
	      .walks = WALKS, .invariant = queue_invariant),
	ENTRY("3x1/park", lock_1_park, 3, "contended " WHEN_3, "3", prepare, finish, .walks = WALKS,
	      .invariant = queue_invariant, .flags = PARKED_3),
	ENTRIES("trylock/3", try, 3, "", "1 2 3", prepare, finish, .spurious = 0, .walks = WALKS),
	ENTRIES("timed/3", timed, 3, "", "2 3", prepare, finish, .spurious = 0, .walks = WALKS),
	ENTRIES("timed/two_of_3", timed_both, 3, "", "1 2 3", prepare, finish, .spurious = 0,
		.walks = WALKS),
	ENTRY("3x1/park/stirred", lock_1_park, 3, "contended " WHEN_PARKED, "3", prepare, finish,
	      .spurious = 1, .bound = STIRRED),
	ENTRY("timed/3/park/stirred", timed_park, 3, WHEN_PARKED, "2 3", prepare, finish,
	      .spurious = 1, .bound = 2),
	ENTRIES("fork/3", fork, 3, WHEN_FORKED, "3 4", prepare, finish, .flags = CHECK_CLIENT_FORKS,
		.walks = WALKS),
	ENTRIES("fork/2", fork_try, 2, "", "2 3", prepare, finish, .flags = CHECK_CLIENT_FORKS),
	ENTRIES("fork_later/2", fork_later, 2, "", "3 4", prepare, finish,
		.flags = CHECK_CLIENT_FORKS),
	ENTRY("held_timed/4/spin", held_timed_spin, 4, "", NULL, hold, finish,
	      .walks = WALKS_4_SPIN, .domains = 1),
	ENTRY("held_timed/4/park", held_timed_park, 4, "", NULL, hold, finish, .walks = WALKS_4,
	      .domains = 1),
	ENTRY("held_timed/6/yield", held_timed_yield, 6, "", NULL, hold, finish, .walks = 10000),
	ENTRY("held_timed/6/park", held_timed_park, 6, "", NULL, hold, finish, .walks = 10000),
	ENTRY("4x1/spin", lock_1_spin, 4, "contended " WHEN_3, "4", prepare, finish, .spurious = 0,
	      .walks = WALKS_4_SPIN, .invariant = queue_invariant, .flags = SPIN_4),
	ENTRY("4x1/park", lock_1_park, 4, "contended " WHEN_3, "4", prepare, finish, .spurious = 0,
	      .walks = WALKS_4, .invariant = queue_invariant),
#ifdef COMPOSED
	ENTRY("composed/3x1/park", lock_1_park, 3, "contended park " WHEN_3, "3", prepare, finish,
	      .flags = CHECK_CLIENT_COMPOSED),
	ENTRY("composed/4x1/park", lock_1_park, 4, "contended park " WHEN_3, "4", prepare, finish,
	      .flags = CHECK_CLIENT_COMPOSED | CHECK_CLIENT_COMPLETE),
#endif
	ENTRY("4x2/yield", lock_2_yield, 4, "contended", NULL, prepare, finish, .walks = 25000,
	      .invariant = queue_invariant),
	ENTRY("4x2/park", lock_2_park, 4, "contended " WHEN_PARKED, NULL, prepare, finish,
	      .walks = 25000, .spurious = 1, .invariant = queue_invariant),
	ENTRY("held/5/spin", held_spin, 5, WHEN_5, "5", hold, finish, .bound = !WALKS_5,
	      .walks = WALKS_5, .invariant = queue_invariant),
	ENTRY("held/5/yield", held_yield, 5, WHEN_5, NULL, hold, finish, .walks = 10000,
	      .invariant = queue_invariant),
	ENTRY("held/5/park", held_park, 5, WHEN_5 " " WHEN_PARKED, NULL, hold, finish,
	      .walks = 10000, .spurious = 1, .invariant = queue_invariant),
#ifdef TWO_LOCKS
	ENTRIES("two_locks/3", either, 3, "contended", "2", prepare, finish, .cpus = 1),
	ENTRIES("two_locks/4", either, 4, "contended", "2", prepare, finish, .cpus = 2,
		.walks = 50000),
#endif
#ifdef POUNDLOCK_TOUR_H
	/* Several waiters at one place: all three threads, or two of them. */
	ENTRIES("one_place/3x1", lock_1, 3, "contended", "3", prepare, finish, .spurious = 0,
		.cpus = 1, .walks = WALKS),
	ENTRIES("two_places/3x1", lock_1, 3, "contended", "3", prepare, finish, .spurious = 0,
		.cpus = 2, .walks = WALKS),
	ENTRIES("one_place/timed/3", timed_both, 3, "", "1 2 3", prepare, finish, .spurious = 0,
		.cpus = 1, .walks = WALKS),
#endif
	FAIR_CLIENTS MORE_CLIENTS{.name = NULL},
};
#endif
