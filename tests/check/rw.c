/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The clients of one readers-writer lock of core/locks.def, the same for every lock. LOCK and
 * LOCK_HEADER must be defined. A file locks/NAME.c may hold clients of one lock alone, as for other
 * locks (adapter.h).
 *
 * The protected object is a plain cell that writers write and readers read, so that a writer that
 * is not alone is a data race. Readers inside together are an outcome that must be met. Without
 * help from the clients, the checker detects a thread that never finishes and a use after the end
 * of a lifetime.
 */
#include LOCK_HEADER

#include "clients.h"

#ifdef POUNDLOCK_SHUFFLE_H
#define SHUFFLES "shuffle shuffle_move"
#else
#define SHUFFLES ""
#endif

#ifdef POUNDLOCK_BRAVO_H
#define REVOKES " bias revoke"
#define REVOKED " revoke"
/*
 * Clients of three threads start with the lock biased towards readers: a reader has been inside.
 * Some readers share an entry of the table.
 */
#define BEFORE give_bias
/*
 * BRAVO's own code distinguishes only waiters that park from others. The lock below it has clients
 * of its own for each way of waiting.
 */
#define WIDE_ENTRIES(title, body, ...)                  \
	ENTRY(title "/spin", body##_spin, __VA_ARGS__), \
		ENTRY(title "/park", body##_park, __VA_ARGS__)
#ifdef LOCK_IS_SPECIFIED
#define BOUND(bravo, others) .bound = 0
#else
/* BRAVO over a lock has too many states to explore all of them: a bound on preemptions. */
#define BOUND(bravo, others) .bound = bravo
#endif
#define WORD (&M->lock.lock.word)
#define FULL_TOGETHER "1 2" /* a biased reader does not need the reader count, which is full */
#else
#define REVOKES ""
#define REVOKED ""
#define BEFORE NULL
#define WIDE_ENTRIES ENTRIES
#define BOUND(bravo, others) .bound = others
#define WORD (&M->lock.word)
#define FULL_TOGETHER "1"
#endif

#if defined(POUNDLOCK_SHFL_RW_H) && !defined(POUNDLOCK_BRAVO_H)
#define HAS_FAIR_RELEASES /* of its own */
#endif

struct memory {
	struct w_visible visible[W_VISIBLE]; /* first, as world.h requires */
	uint32_t cell;
	W_ATOMIC(uint32_t) moment; /* loaded inside: a step at which other threads may run */
	W_ATOMIC(uint32_t) given;  /* readers that have given their hold to other threads */
	uint64_t space;            /* gives the lock the address that hold_reading() needs */
	struct LOCK lock;
};

/* The client's record of what the threads did; no part of the explored memory. */
struct notes {
	uint32_t writes;
	uint32_t readers;  /* inside */
	uint32_t together; /* maximum of readers */
	uint32_t fair;     /* fair releases by threads that have seen a waiter */
	uint32_t left;     /* fair releases that have returned */
	bool promised;     /* the lock was left to a waiter, which has not entered yet */
#ifdef CHANGED
	bool changes; /* the lock's settings, at any moment */
#endif
};

#if defined(POUNDLOCK_BRAVO_H) && defined(POUNDLOCK_CHECK_H)
/* Includes the source of the numbers that BRAVO draws. */
_Static_assert(sizeof(struct memory) <= CHECK_COMMON, "the common block is behind it");
#define SHARED_BYTES (CHECK_COMMON + 64)
#else
#define SHARED_BYTES sizeof(struct memory)
#endif

#define M check_shared(struct memory)

/* Not {0}: clang 14 rejects 0 as an initial value of an atomic pointer. */
#define UNLOCKED ((struct LOCK){})
#define NOTES check_ghost(struct notes)

enum mode { READ, READ_AGAIN, WRITE };

#ifdef CHANGED
#include "changes.h"

/* The queue is for clients with a bound on bypass. */
static void prepare_changes(void)
{
	check_queue(&M->lock.tail);
	NOTES->changes = true;
}

/* The same, and thread 0 holds the lock as a writer from the start. */
static void prepare_changes_held(void)
{
	prepare_changes();
	check_assert(LOCK_FUNCTION(try_write)(&M->lock));
}
#endif

/* ---- The lock: calls are not inlined, so that their frames end when they return ---- */

static __attribute__((noinline)) bool acquire(enum mode mode, enum wait wait,
					      const struct w_deadline *deadline)
{
	bool entered;

	check_acquires();
	entered = mode == WRITE ? LOCK_FUNCTION(write)(&M->lock, POLICY(wait), deadline)
				: LOCK_FUNCTION(read)(&M->lock, mode == READ_AGAIN, POLICY(wait),
						      deadline);
	check_acquired(entered);
	return entered;
}

static __attribute__((noinline)) bool try_acquire(enum mode mode)
{
	return mode == WRITE ? LOCK_FUNCTION(try_write)(&M->lock)
			     : LOCK_FUNCTION(try_read)(&M->lock, mode == READ_AGAIN);
}

static __attribute__((noinline)) void release(enum mode mode, enum wait wait)
{
	check_assert(mode == WRITE ? LOCK_FUNCTION(release_write)(&M->lock, POLICY(wait))
				   : LOCK_FUNCTION(release_read)(&M->lock, POLICY(wait)));
}

/* Does in the forked child what the library does after a fork. */
static void after_fork(void)
{
#ifdef POUNDLOCK_BRAVO_H
	bravo_after_fork();
#endif
}

/* ---- Actions of the threads ---- */

/* The critical section up to leave(). */
static void enter(enum mode mode)
{
	check_returned();
	if (mode == WRITE) {
		M->cell++;
		NOTES->writes++;
		return;
	}
	check_assert(M->cell == NOTES->writes);
	check_most(&NOTES->together, check_add(&NOTES->readers, 1));
	(void)w_load_relaxed(&M->moment);
}

static void leave(enum mode mode, enum wait wait)
{
	if (mode != WRITE)
		(void)check_add(&NOTES->readers, -1);
	release(mode, wait);
	check_returned();
}

static void lock_and_unlock(enum mode mode, enum wait wait)
{
	check_assert(acquire(mode, wait, NULL));
	enter(mode);
	leave(mode, wait);
}

static void try_and_unlock(enum mode mode, enum wait wait)
{
	if (!try_acquire(mode)) {
		check_returned();
		return;
	}
	enter(mode);
	leave(mode, wait);
}

static void lock_timed_and_unlock(enum mode mode, enum wait wait)
{
	static const struct w_deadline deadline;
	bool entered;

	check_renew_deadline();
	entered = acquire(mode, wait, &deadline);
	check_returned();
	if (!entered)
		return;
	enter(mode);
	leave(mode, wait);
}

/* Reads; fails if the lock has too many readers. */
static void read_if_room(enum wait wait)
{
	if (!acquire(READ, wait, NULL)) {
		check_returned();
		return;
	}
	enter(READ);
	leave(READ, wait);
}

/* A reader acquires again: this must succeed even if writers wait, and so must the try. */
static void read_again(enum wait wait)
{
	check_assert(acquire(READ, wait, NULL));
	enter(READ);
	check_assert(acquire(READ_AGAIN, wait, NULL));
	check_assert(try_acquire(READ_AGAIN));
	check_returned();
	release(READ, wait);
	release(READ, wait);
	leave(READ, wait);
}

/* Acquires for another thread, which will release. */
static void read_and_give(enum wait wait)
{
	check_assert(acquire(READ, wait, NULL));
	check_returned();
	(void)w_fetch_add_release(&M->given, 1);
}

/* Releases for one of @readers threads, once all of them have given their hold. */
static void leave_given(uint32_t readers, enum wait wait)
{
	(void)w_await_acquire(&M->given, VAL == readers);
	release(READ, wait);
	check_returned();
}

/* Locks; the last of @all users, which is alone inside, frees the lock right after its unlock. */
static void lock_and_free(enum mode mode, uint32_t all, enum wait wait)
{
	uint32_t users;

	check_assert(acquire(mode, wait, NULL));
	check_returned();
	users = check_add(&NOTES->writes, 1);
	release(mode, wait);
	check_returned();
	if (users == all)
		check_ended(&M->lock);
}

/* Forks inside. The lock must work in the child even if the parent had waiters. */
static void lock_and_fork(enum mode mode, enum wait wait)
{
	check_assert(acquire(mode, wait, NULL));
	enter(mode);
	check_fork();
	after_fork();
	check_create_threads();
	leave(mode, wait);
	lock_and_unlock(WRITE, wait);
}

/* Forks inside. Once the child's only thread has left, a trylock must succeed. */
static void fork_and_try(enum mode mode, enum wait wait)
{
	check_assert(acquire(mode, wait, NULL));
	enter(mode);
	check_fork();
	after_fork();
	leave(mode, wait);
	check_assert(try_acquire(WRITE));
	enter(WRITE);
	leave(WRITE, wait);
}

/* Whether the lock has a reader, in the child perhaps a thread that does not exist there. */
static bool has_reader(void)
{
#ifdef POUNDLOCK_BRAVO_H
	/* relaxed, here and below: the child has one thread */
	for (uint32_t i = 0; i < W_VISIBLE; i++)
		if (w_load_relaxed(&w_visible(i)->reader))
			return true;
#endif
	return w_load_relaxed(WORD);
}

/* Forks as a reader beside others. Readers that had not entered must not keep a writer out. */
static void fork_beside_readers(enum wait wait)
{
	bool stays;

	check_assert(acquire(READ, wait, NULL));
	enter(READ);
	check_fork();
	after_fork();
	leave(READ, wait);
	stays = has_reader();
	check_assert(try_acquire(WRITE) != stays);
}

static void lock_in_child(enum mode mode, enum wait wait)
{
	check_wait_to_be_created();
	lock_and_unlock(mode, wait);
}

#ifdef HAS_FAIR_RELEASES
/* ---- Fair releases ---- */

static __attribute__((noinline)) void leave_fairly(enum mode mode, enum wait wait)
{
	if (mode != WRITE)
		(void)check_add(&NOTES->readers, -1);
	check_assert(mode == WRITE ? LOCK_FUNCTION(release_write_fair)(&M->lock, POLICY(wait))
				   : LOCK_FUNCTION(release_read_fair)(&M->lock, POLICY(wait)));
}

/*
 * Releases the lock fairly, as one of @holders threads, which hold it from the start. It is left to
 * a waiter that all of them have seen.
 */
static void leave_to_waiter(enum mode mode, uint32_t holders, enum wait wait)
{
	enter(mode);
	/* relaxed: the waiter is in the queue until it has entered */
	if (w_load_relaxed(&M->lock.tail) && check_add(&NOTES->fair, 1) == holders)
		NOTES->promised = true;
	leave_fairly(mode, wait);
	check_returned();
	(void)check_add(&NOTES->left, 1);
}

/* The waiter. */
static void enter_as_promised(enum mode mode, enum wait wait)
{
	check_assert(acquire(mode, wait, NULL));
	NOTES->promised = false;
	enter(mode);
	leave(mode, wait);
}

/*
 * A newcomer that never queues. Once @holders threads have left the lock to a waiter, it must not
 * enter. Not a reader if the waiter is one: readers may follow it before it returns.
 */
static void barge(enum mode mode, uint32_t holders, enum wait wait)
{
	(void)w_load_relaxed(&M->moment);
	if (check_add(&NOTES->left, 0) != holders || !try_acquire(mode)) {
		check_returned();
		return;
	}
	check_assert(!NOTES->promised);
	enter(mode);
	leave(mode, wait);
}

static void lock_and_leave_fairly(enum mode mode, enum wait wait)
{
	check_assert(acquire(mode, wait, NULL));
	enter(mode);
	leave_fairly(mode, wait);
	check_returned();
}

static void lock_timed_and_leave_fairly(enum mode mode, enum wait wait)
{
	static const struct w_deadline deadline;
	bool entered;

	check_renew_deadline();
	entered = acquire(mode, wait, &deadline);
	check_returned();
	if (!entered)
		return;
	enter(mode);
	leave_fairly(mode, wait);
	check_returned();
}

/* As lock_and_free(), by a fair release. */
static void lock_and_free_fairly(enum mode mode, uint32_t all, enum wait wait)
{
	uint32_t users;

	check_assert(acquire(mode, wait, NULL));
	check_returned();
	users = check_add(&NOTES->writes, 1);
	if (mode != WRITE)
		(void)check_add(&NOTES->readers, 1);
	leave_fairly(mode, wait);
	check_returned();
	if (users == all)
		check_ended(&M->lock);
}

/*
 * Forks inside, and releases fairly in the child, where nobody waits: the release must not close
 * the lock, and a trylock must succeed.
 */
static void fork_and_leave_fairly(enum mode mode, enum wait wait)
{
	uint32_t closed;

	check_assert(acquire(mode, wait, NULL));
	enter(mode);
	check_fork();
	/* relaxed, both: the child has one thread. The parent's head may have closed the lock */
	closed = w_load_relaxed(WORD) & RW_CLOSED;
	leave_fairly(mode, wait);
	check_assert((w_load_relaxed(WORD) & RW_CLOSED) == closed);
	check_assert(try_acquire(WRITE));
	enter(WRITE);
	leave(WRITE, wait);
}
#endif

/* ---- The clients ---- */

/* Sets BRAVO's bias: a reader has been inside. */
static void give_bias(void)
{
	check_assert(try_acquire(READ));
	release(READ, WAIT_PARK);
}

/* Thread 0 holds the lock as a writer from the start, so that all others queue. */
static void hold(void)
{
	check_assert(try_acquire(WRITE));
}

static void leave_held(enum wait wait)
{
	enter(WRITE);
	leave(WRITE, wait);
}

/*
 * Thread 0 holds the lock as a reader from the start and gives its hold to another thread. With
 * BRAVO the lock is biased; at the checker's addresses the reader has the last entry, and threads 1
 * and 2 share the entry before it.
 */
static void hold_reading(void)
{
	give_bias();
	check_assert(try_acquire(READ));
#if defined(POUNDLOCK_BRAVO_H) && defined(POUNDLOCK_CHECK_H)
	check_assert(w_load_relaxed(&w_visible(1)->bias) == bravo_now(&M->lock.bravo));
#endif
}

/* Makes a new lock in the memory of one whose reader never left, as after a forgotten guard. */
static void renew(void)
{
	give_bias();
	check_assert(try_acquire(READ));
	M->lock = UNLOCKED;
	give_bias();
}

/* Fills the reader count but for one reader, as after many forgotten guards. */
static void nearly_fill(void)
{
	w_store_relaxed(WORD, RW_FULL - RW_READER);
}

/* Checks at the end that no write was lost, and that the lock and all nodes are free. */
static void finish(void)
{
	check_outcome(0, NOTES->together);
	check_assert(M->cell == NOTES->writes);
	check_assert(try_acquire(WRITE));
	check_assert(!try_acquire(READ));
	release(WRITE, WAIT_YIELD);
	check_assert(try_acquire(READ));
	check_assert(!try_acquire(WRITE));
	release(READ, WAIT_YIELD);
	check_assert(check_busy_nodes() == 0);
}

static void finish_full(void)
{
	check_assert(w_load_relaxed(WORD) == RW_FULL - RW_READER);
	w_store_relaxed(WORD, 0);
	finish();
}

static void finish_timed(void)
{
	finish();
	check_outcome(1, NOTES->writes);
}

static void finish_freed(void)
{
	check_outcome(0, NOTES->writes);
	check_assert(check_busy_nodes() == 0);
}

WAYS(readers, lock_and_unlock(READ, wait))
WAYS(writers, lock_and_unlock(WRITE, wait))
WAYS(writers_2, lock_and_unlock(WRITE, wait); lock_and_unlock(WRITE, wait))
WAYS(both, lock_and_unlock(self ? READ : WRITE, wait))
WAYS(both_2, lock_and_unlock(self ? READ : WRITE, wait); lock_and_unlock(self ? READ : WRITE, wait))
WAYS(turns, lock_and_unlock(READ, wait); lock_and_unlock(WRITE, wait))
WAYS(one_reader, lock_and_unlock(self ? WRITE : READ, wait))
WAYS(one_reader_2, TWICE(lock_and_unlock(self ? WRITE : READ, wait)))
WAYS(try_read, if (self == 0) lock_and_unlock(WRITE, wait); else try_and_unlock(READ, wait))
WAYS(try_write, if (self == 0) lock_and_unlock(READ, wait); else try_and_unlock(WRITE, wait))
WAYS(timed_read, if (self == 0) lock_timed_and_unlock(READ, wait);
     else lock_and_unlock(self == 1 ? WRITE : READ, wait))
WAYS(timed_write, if (self == 0) lock_timed_and_unlock(WRITE, wait);
     else lock_and_unlock(READ, wait))
WAYS(timed_both, lock_timed_and_unlock(self ? READ : WRITE, wait))
WAYS(
	again_later, if (self == 0) {
		lock_and_unlock(READ, wait);
		read_again(wait);
	} else lock_and_unlock(WRITE, wait))
WAYS(again_beside, if (self) read_again(wait))
WAYS(again, if (self == 0) read_again(wait); else lock_and_unlock(WRITE, wait))
/* The thread that gave its hold acquires again, as a thread that may be a reader already. */
WAYS(
	given, if (self) leave_given(1, wait); else {
		read_and_give(wait);
		lock_and_unlock(READ_AGAIN, wait);
	})
/* A thread that was given a hold acquires again even if writers wait, and leaves twice. */
WAYS(
	given_again, if (self == 0) read_and_give(wait); else if (self == 1) {
		(void)w_await_acquire(&M->given, VAL == 1);
		lock_and_unlock(READ_AGAIN, wait);
		leave_given(1, wait);
	} else lock_and_unlock(WRITE, wait))
/* Threads 0 and 1 enter, 1 and 2 leave. */
WAYS(given_both, if (self < 2) read_and_give(wait); if (self > 0) leave_given(2, wait))
/* Thread 2 leaves for thread 0, perhaps by thread 1's entry; then thread 1 leaves by thread 0's. */
WAYS(
	given_at_start,
	if (self == 1) {
		read_again(wait);
		lock_and_unlock(READ, wait);
	} else if (self == 2) {
		release(READ, wait);
		check_returned();
	})
WAYS(
	fork_given,
	if (self == 1) {
		check_assert(acquire(READ, wait, NULL));
		check_fork();
		after_fork();
		release(READ, wait);
	} else if (self == 2) {
		release(READ, wait);
		check_returned();
	})
/* Thread 1 makes a new lock in the memory of one that thread 0 never left. */
WAYS(
	renewed, if (self == 0) read_and_give(wait); else if (self == 1) {
		(void)w_await_acquire(&M->given, VAL == 1);
		M->lock = UNLOCKED;
		w_store_release(&M->given, 2);
		lock_and_unlock(WRITE, wait);
	} else {
		(void)w_await_acquire(&M->given, VAL == 2);
		lock_and_unlock(READ, wait);
	})
WAYS(full, if (self < 2) read_if_room(wait); else lock_timed_and_unlock(WRITE, wait))
WAYS(freed_writers, lock_and_free(WRITE, 2, wait))
WAYS(freed_both, lock_and_free(self ? READ : WRITE, 2, wait))
/* Only the writer may free the lock: a reader cannot know that the other reader has left. */
WAYS(freed_readers, lock_and_free(self ? READ : WRITE, self ? UINT32_MAX : 3, wait))
WAYS(fork_reader, if (self == 0) lock_and_fork(READ, wait);
     else if (self == 1) lock_and_unlock(WRITE, wait); else lock_in_child(READ, wait))
WAYS(fork_writer, if (self == 0) lock_and_fork(WRITE, wait);
     else if (self == 1) lock_and_unlock(READ, wait); else lock_in_child(READ, wait))
WAYS(fork_readers, if (self == 0) fork_beside_readers(wait); else lock_and_unlock(READ, wait))
WAYS(fork_try_reader, if (self == 0) fork_and_try(READ, wait); else lock_and_unlock(WRITE, wait))
WAYS(fork_try_writer, if (self == 0) fork_and_try(WRITE, wait); else lock_and_unlock(READ, wait))
WAYS(held, if (self == 0) leave_held(wait); else lock_and_unlock(self % 2 ? READ : WRITE, wait))
WAYS(held_timed, if (self == 0) leave_held(wait);
     else if (self < 3) lock_timed_and_unlock(self % 2 ? READ : WRITE, wait);
     else lock_and_unlock(self % 2 ? READ : WRITE, wait))

#ifdef HAS_FAIR_RELEASES
/* Threads 0 and 2 hold the lock as readers from the start: together, even if one soon leaves. */
static void hold_reading_twice(void)
{
	check_assert(try_acquire(READ));
	check_assert(try_acquire(READ));
	NOTES->together = 2;
}

/*
 * Thread 0 holds the lock as @held from the start and leaves it to thread 1, which waits as @waits.
 * All others barge.
 */
static void leave_to_one(uint32_t self, enum mode held, enum mode waits, enum mode barges,
			 enum wait wait)
{
	if (self == 1) {
		enter_as_promised(waits, wait);
		return;
	}
	if (self == 0)
		leave_to_waiter(held, 1, wait);
	barge(barges, 1, wait);
}

WAYS(fair_to_writer, leave_to_one(self, WRITE, WRITE, READ, wait))
WAYS(fair_to_reader, leave_to_one(self, WRITE, READ, WRITE, wait))
WAYS(fair_by_reader, leave_to_one(self, READ, WRITE, WRITE, wait))
WAYS(
	fair_by_readers, if (self == 1) enter_as_promised(WRITE, wait); else {
		leave_to_waiter(READ, 2, wait);
		barge(READ, 2, wait);
	})
WAYS(fair_turns, lock_and_leave_fairly(READ, wait); lock_and_leave_fairly(WRITE, wait))
WAYS(fair_both, lock_and_leave_fairly(self ? READ : WRITE, wait))
WAYS(
	fair_held, if (self == 0) {
		enter(WRITE);
		leave_fairly(WRITE, wait);
	} else lock_timed_and_leave_fairly(self == 1 ? WRITE : READ, wait))
WAYS(
	fair_held_reading,
	if (self == 0) {
		enter(READ);
		leave_fairly(READ, wait);
	} else if (self == 1) lock_timed_and_leave_fairly(WRITE, wait);
	else lock_and_leave_fairly(READ, wait))
WAYS(fair_timed, lock_timed_and_leave_fairly(self ? READ : WRITE, wait))
WAYS(fair_freed_writers, lock_and_free_fairly(WRITE, 2, wait))
WAYS(fair_freed_both, lock_and_free_fairly(self ? READ : WRITE, 2, wait))
WAYS(fair_fork_reader, if (self == 0) fork_and_leave_fairly(READ, wait);
     else lock_and_unlock(WRITE, wait))
WAYS(fair_fork_writer, if (self == 0) fork_and_leave_fairly(WRITE, wait);
     else lock_and_unlock(READ, wait))
#define FAIR_CLIENTS                                                                               \
	ENTRIES("fair/writer/2", fair_to_writer, 2, "contended", "0 1", hold, finish,              \
		.spurious = 1),                                                                    \
		ENTRIES("fair/writer/3", fair_to_writer, 3, "contended", "0 1 2", hold, finish,    \
			.spurious = 0),                                                            \
		ENTRIES("fair/reader/2", fair_to_reader, 2, "", "1", hold, finish, .spurious = 1), \
		ENTRIES("fair/reader/3", fair_to_reader, 3, "", "1", hold, finish, .spurious = 0), \
		ENTRIES("fair/by_reader/2", fair_by_reader, 2, "contended", "1", hold_reading,     \
			finish, .spurious = 1),                                                    \
		ENTRIES("fair/by_reader/3", fair_by_reader, 3, "contended", "1", hold_reading,     \
			finish, .spurious = 0),                                                    \
		ENTRIES("fair/by_readers/3", fair_by_readers, 3, "contended", "2",                 \
			hold_reading_twice, finish, .spurious = 0),                                \
		ENTRIES("fair/turns/2", fair_turns, 2, "contended", "1 2", NULL, finish,           \
			.spurious = 1, .bound = 3),                                                \
		ENTRIES("fair/both/3", fair_both, 3, "contended", "1 2", NULL, finish,             \
			.spurious = 0),                                                            \
		ENTRIES("fair/held/2", fair_held, 2, "abandon", "01 02", hold, finish_timed,       \
			.spurious = 1),                                                            \
		ENTRIES("fair/held/3", fair_held, 3, "abandon", "01 02 11 12", hold, finish_timed, \
			.spurious = 0),                                                            \
		ENTRIES("fair/held_reading/2", fair_held_reading, 2, "abandon", "10 11",           \
			hold_reading, finish_timed, .spurious = 1),                                \
		ENTRIES("fair/held_reading/3", fair_held_reading, 3, "abandon", "10 11 20 21",     \
			hold_reading, finish_timed, .spurious = 0),                                \
		ENTRIES("fair/timed/2", fair_timed, 2, "", "01 10 11", NULL, finish_timed,         \
			.spurious = 1),                                                            \
		ENTRIES("fair/timed/3", fair_timed, 3, "", "01 10 11 20 21", NULL, finish_timed,   \
			.spurious = 0),                                                            \
		ENTRIES("fair/freed/writers", fair_freed_writers, 2, "contended", "2", NULL,       \
			finish_freed, .spurious = 1),                                              \
		ENTRIES("fair/freed/both", fair_freed_both, 2, "contended", "2", NULL,             \
			finish_freed, .spurious = 1),                                              \
		ENTRIES("fair/fork/reader/2", fair_fork_reader, 2, "", NULL, NULL, finish,         \
			.flags = CHECK_CLIENT_FORKS),                                              \
		ENTRIES("fair/fork/writer/2", fair_fork_writer, 2, "", NULL, NULL, finish,         \
			.flags = CHECK_CLIENT_FORKS),
#else
#define FAIR_CLIENTS
#endif

#ifdef CLIENTS
const struct check_client check_clients[] = {CLIENTS{.name = NULL}};
#else
/*
 * Spurious wake-ups multiply the states: clients of two threads have them without a bound, clients
 * of three threads under a bound.
 */
const struct check_client check_clients[] = {
	ENTRIES("readers/2", readers, 2, "", "1 2", NULL, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("writers/2x1", writers, 2, "contended", "0", NULL, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("writers/2x2", writers_2, 2, "contended", "0", NULL, finish, .spurious = 1),
	ENTRIES("both/2x1", both, 2, "contended", "1", NULL, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("both/2x2", both_2, 2, "contended", "1", NULL, finish, .spurious = 1, BOUND(2, 0)),
	ENTRIES("turns/2", turns, 2, "contended", "1 2", NULL, finish, .spurious = 1, BOUND(2, 0)),
	ENTRIES("again/2", again, 2, "contended", "1", NULL, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("again_later/2", again_later, 2, "contended" REVOKES, "1", NULL, finish,
		.spurious = 1, BOUND(2, 0)),
	ENTRIES("given/2", given, 2, "", "1", BEFORE, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("try_read/2", try_read, 2, "", "0 1", NULL, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("try_write/2", try_write, 2, "", "1", NULL, finish, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("timed/2", timed_both, 2, "", "01 10 11", NULL, finish_timed, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("renewed/2", both, 2, "contended", "1", renew, finish, .spurious = 1),
	ENTRIES("full/2", full, 2, "", FULL_TOGETHER, nearly_fill, finish_full, .spurious = 1),
	ENTRIES("freed/writers", freed_writers, 2, "contended", "2", NULL, finish_freed,
		.spurious = 1, .flags = CHECK_CLIENT_PROMISES),
	ENTRIES("freed/both", freed_both, 2, "contended", "2", NULL, finish_freed, .spurious = 1,
		.flags = CHECK_CLIENT_PROMISES),
	ENTRIES("fork/reader/2", fork_try_reader, 2, "", NULL, NULL, finish,
		.flags = CHECK_CLIENT_FORKS),
	ENTRIES("fork/writer/2", fork_try_writer, 2, "", NULL, NULL, finish,
		.flags = CHECK_CLIENT_FORKS),
	ENTRIES("fork/readers/2", fork_readers, 2, "", NULL, BEFORE, NULL,
		.flags = CHECK_CLIENT_FORKS),
	WIDE_ENTRIES("readers/3", readers, 3, "", "1 2 3", BEFORE, finish, .spurious = 0,
		     BOUND(2, 0)),
	WIDE_ENTRIES("both/3x1", both, 3, "contended" REVOKED, "1 2", BEFORE, finish, .spurious = 0,
		     BOUND(2, 0)),
	WIDE_ENTRIES("one_reader/3x1", one_reader, 3, "contended" REVOKED, "1", BEFORE, finish,
		     .spurious = 0, BOUND(2, 0)),
	WIDE_ENTRIES("again/3", again, 3, "contended" REVOKED, "1", BEFORE, finish, .spurious = 0,
		     BOUND(2, 3)),
	WIDE_ENTRIES("given/again", given_again, 3, "", "1", BEFORE, finish, .spurious = 0,
		     BOUND(2, 0)),
	WIDE_ENTRIES("given/3", given_both, 3, "", "0", BEFORE, finish, .spurious = 0, BOUND(2, 0)),
	WIDE_ENTRIES("again/beside/3", again_beside, 3, "", "1 2", BEFORE, finish, .spurious = 0,
		     BOUND(2, 0)),
	WIDE_ENTRIES("given/start/3", given_at_start, 3, "", "1", hold_reading, finish,
		     .spurious = 0, BOUND(2, 0)),
	WIDE_ENTRIES("fork/given/3", fork_given, 3, "", NULL, hold_reading, NULL,
		     .flags = CHECK_CLIENT_FORKS, BOUND(2, 0)),
	WIDE_ENTRIES("try_read/3", try_read, 3, "", "0 1 2", BEFORE, finish, .spurious = 0,
		     BOUND(2, 0)),
	WIDE_ENTRIES("try_write/3", try_write, 3, "", "1", BEFORE, finish, .spurious = 0,
		     BOUND(2, 0)),
	WIDE_ENTRIES("timed_read/3", timed_read, 3, "", "11 21", BEFORE, finish_timed,
		     .spurious = 0, BOUND(2, 3)),
	WIDE_ENTRIES("timed_write/3", timed_write, 3, "", "10 11 20 21", BEFORE, finish_timed,
		     .spurious = 0, BOUND(2, 3)),
	WIDE_ENTRIES("renewed/3", renewed, 3, "contended", "1", BEFORE, finish, .spurious = 0),
	WIDE_ENTRIES("full/3", full, 3, "", FULL_TOGETHER, nearly_fill, finish_full, .spurious = 0,
		     BOUND(2, 3)),
	WIDE_ENTRIES("freed/readers", freed_readers, 3, "contended", "3", BEFORE, finish_freed,
		     BOUND(2, 3)),
	ENTRY("both/3x1/park/stirred", both_park, 3, "contended park", "1 2", BEFORE, finish,
	      .spurious = 1, BOUND(2, 3)),
	WIDE_ENTRIES("fork/reader/3", fork_reader, 3, "fork_repair", NULL, BEFORE, finish,
		     .flags = CHECK_CLIENT_FORKS, BOUND(2, 0)),
	WIDE_ENTRIES("fork/writer/3", fork_writer, 3, "fork_repair", NULL, BEFORE, finish,
		     .flags = CHECK_CLIENT_FORKS, BOUND(2, 0)),
#if !defined(POUNDLOCK_BRAVO_H) || defined(LOCK_IS_SPECIFIED)
	ENTRY("both/4x1/spin", both_spin, 4, "contended" REVOKED, "1 2 3", BEFORE, finish,
	      .bound = 2),
#endif
	ENTRY("both/4x1/park", both_park, 4, "contended park", NULL, BEFORE, finish, .walks = 50000,
	      .spurious = 1),
	WIDE_ENTRIES("held/5", held, 5, "contended " SHUFFLES, NULL, hold, finish, .walks = 20000),
	WIDE_ENTRIES("held_timed/6", held_timed, 6, "contended abandon", NULL, hold, finish,
		     .walks = 20000),
	FAIR_CLIENTS{.name = NULL},
};
#endif
