/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The clients of one readers-writer lock of core/locks.def (LOCK and LOCK_HEADER are defined), the same for all of them.
 *
 * The protected object is a plain cell that writers write and readers read: a writer that is not alone is a race. That
 * readers are inside together is an outcome that must be found. That no thread waits for ever, and that nothing is used
 * after its life, the checker sees by itself.
 */
#include LOCK_HEADER

#include "check.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define LOCK_FUNCTION(name) PASTE(LOCK, PASTE(_, name))

/* Bounds are as small as they can be while what they bound still happens. */
#define SMALL(lock, key, default_, least, most, small) .key = small,
#define POLICY(way) ((struct LOCK_FUNCTION(policy)){.wait = (way), LOCK_FUNCTION(settings)(SMALL)})

#ifdef POUNDLOCK_SHUFFLE_H
#define SHUFFLES "shuffle shuffle_move"
#else
#define SHUFFLES ""
#endif

#ifdef POUNDLOCK_BRAVO_H
#define REVOKES " bias revoke"
/* Its states are too many to visit all of them: so many switches away from a thread that could have gone on, at most. */
#define LIMIT(bravo, others) .bound = bravo
#else
#define REVOKES ""
#define LIMIT(bravo, others) .bound = others
#endif

struct memory {
	struct w_visible visible[W_VISIBLE]; /* first, as world.h says */
	uint32_t cell;
	W_ATOMIC(uint32_t) moment; /* its load by a reader inside is a moment in which others may run */
	struct LOCK lock;
};

/* What the threads did: the client's own. */
struct notes {
	uint32_t writes;
	uint32_t readers;  /* inside */
	uint32_t together; /* the most of them at a time */
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

enum mode { READ, READ_AGAIN, WRITE };

/* ---- The lock: calls that are not inlined, whose frames, and what lies there, end with them ---- */

static __attribute__((noinline)) bool acquire(enum mode mode, enum wait wait, const struct w_deadline *deadline)
{
	return mode == WRITE ? LOCK_FUNCTION(write)(&M->lock, POLICY(wait), deadline)
			     : LOCK_FUNCTION(read)(&M->lock, mode == READ_AGAIN, POLICY(wait), deadline);
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

/* In the forked child: what the library does after a fork. */
static void after_fork(void)
{
#ifdef POUNDLOCK_BRAVO_H
	bravo_after_fork();
#endif
}

/* ---- What the threads do ---- */

/* Inside: whatever comes before leave(). */
static void enter(enum mode mode)
{
	check_returned();
	if (mode == WRITE) {
		M->cell++;
		NOTES->writes++;
		return;
	}
	check_assert(M->cell == NOTES->writes);
	if (++NOTES->readers > NOTES->together)
		NOTES->together = NOTES->readers;
	(void)w_load_relaxed(&M->moment);
}

static void leave(enum mode mode, enum wait wait)
{
	if (mode != WRITE)
		NOTES->readers--;
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

/* Becomes a reader again while it is one, whatever writers wait; the try must succeed, too. */
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

/* Frees the lock right after the unlock if it is alone in it, and the last of so many users. */
static void lock_and_free(enum mode mode, uint32_t all, enum wait wait)
{
	uint32_t users;

	check_assert(acquire(mode, wait, NULL));
	check_returned();
	users = ++NOTES->writes;
	release(mode, wait);
	check_returned();
	if (users == all)
		check_ended(&M->lock);
}

/* Forks inside; the lock must serve the child, whoever waited for it in the parent. */
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

/* Once the child's one thread has left, the lock is free, whatever its waiters in the parent had done to it. */
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

static void lock_in_child(enum mode mode, enum wait wait)
{
	check_wait_to_be_created();
	lock_and_unlock(mode, wait);
}

/* ---- The clients ---- */

/* The lock is held from the start, by a writer, thread 0, so that the others all queue. */
static void hold(void)
{
	check_assert(try_acquire(WRITE));
}

static void leave_held(enum wait wait)
{
	enter(WRITE);
	leave(WRITE, wait);
}

/* After all threads: as many writes as were counted, nobody is inside, the lock is free, and so are all nodes. */
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

#define WAYS(name, body)                           \
	static void name##_spin(uint32_t self)     \
	{                                          \
		const enum wait wait = WAIT_SPIN;  \
		(void)self;                        \
		body;                              \
	}                                          \
	static void name##_yield(uint32_t self)    \
	{                                          \
		const enum wait wait = WAIT_YIELD; \
		(void)self;                        \
		body;                              \
	}                                          \
	static void name##_park(uint32_t self)     \
	{                                          \
		const enum wait wait = WAIT_PARK;  \
		(void)self;                        \
		body;                              \
	}

WAYS(readers, lock_and_unlock(READ, wait))
WAYS(writers, lock_and_unlock(WRITE, wait))
WAYS(writers_2, lock_and_unlock(WRITE, wait); lock_and_unlock(WRITE, wait))
WAYS(both, lock_and_unlock(self ? READ : WRITE, wait))
WAYS(both_2, lock_and_unlock(self ? READ : WRITE, wait); lock_and_unlock(self ? READ : WRITE, wait))
WAYS(turns, lock_and_unlock(READ, wait); lock_and_unlock(WRITE, wait))
WAYS(one_reader, lock_and_unlock(self ? WRITE : READ, wait))
WAYS(try_read, if (self == 0) lock_and_unlock(WRITE, wait); else try_and_unlock(READ, wait))
WAYS(try_write, if (self == 0) lock_and_unlock(READ, wait); else try_and_unlock(WRITE, wait))
WAYS(timed_read, if (self == 0) lock_timed_and_unlock(READ, wait); else lock_and_unlock(self == 1 ? WRITE : READ, wait))
WAYS(timed_write, if (self == 0) lock_timed_and_unlock(WRITE, wait); else lock_and_unlock(READ, wait))
WAYS(timed_both, lock_timed_and_unlock(self ? READ : WRITE, wait))
WAYS(
	again_later, if (self == 0) {
		lock_and_unlock(READ, wait);
		read_again(wait);
	} else lock_and_unlock(WRITE, wait))
WAYS(again, if (self == 0) read_again(wait); else lock_and_unlock(WRITE, wait))
WAYS(freed_writers, lock_and_free(WRITE, 2, wait))
WAYS(freed_both, lock_and_free(self ? READ : WRITE, 2, wait))
/* Only the writer knows that the readers, who are inside together, have left. */
WAYS(freed_readers, lock_and_free(self ? READ : WRITE, self ? UINT32_MAX : 3, wait))
WAYS(fork_reader, if (self == 0) lock_and_fork(READ, wait); else if (self == 1) lock_and_unlock(WRITE, wait);
     else lock_in_child(READ, wait))
WAYS(fork_writer, if (self == 0) lock_and_fork(WRITE, wait); else if (self == 1) lock_and_unlock(READ, wait);
     else lock_in_child(READ, wait))
WAYS(fork_try_reader, if (self == 0) fork_and_try(READ, wait); else lock_and_unlock(WRITE, wait))
WAYS(fork_try_writer, if (self == 0) fork_and_try(WRITE, wait); else lock_and_unlock(READ, wait))
WAYS(held, if (self == 0) leave_held(wait); else lock_and_unlock(self % 2 ? READ : WRITE, wait))
WAYS(held_timed, if (self == 0) leave_held(wait);
     else if (self < 3) lock_timed_and_unlock(self % 2 ? READ : WRITE, wait);
     else lock_and_unlock(self % 2 ? READ : WRITE, wait))

/* Wanted: events that must happen. Outcomes: all numbers of readers together that must be found. */
#define ENTRY(title, body, count, wanted, outcomes, first, last, ...)                                               \
	{                                                                                                           \
		.name = title, .shared = sizeof(struct memory), .ghost = sizeof(struct notes), .threads = count,    \
		.setup = first, .thread = body, .finish = last, .demands = wanted, .allowed = outcomes, __VA_ARGS__ \
	}
#define ENTRIES(title, body, count, wanted, outcomes, first, last, ...)                                 \
	ENTRY(title "/spin", body##_spin, count, wanted, outcomes, first, last, __VA_ARGS__),           \
		ENTRY(title "/yield", body##_yield, count, wanted, outcomes, first, last, __VA_ARGS__), \
		ENTRY(title "/park", body##_park, count, wanted, outcomes, first, last, __VA_ARGS__)

/* Sleeps that end for no reason multiply the states: all of them with two threads, under a bound with three. */
const struct check_client check_clients[] = {
	ENTRIES("readers/2", readers, 2, "", "1 2", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("readers/3", readers, 3, "", "1 2 3", NULL, finish, .spurious = 0, LIMIT(2, 0)),
	ENTRIES("writers/2x1", writers, 2, "contended", "0", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("writers/2x2", writers_2, 2, "contended", "0", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("both/2x1", both, 2, "contended", "1", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("both/2x2", both_2, 2, "contended", "1", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("turns/2", turns, 2, "contended", "1 2", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("again/2", again, 2, "contended", "1", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("again_later/2", again_later, 2, "contended" REVOKES, "1", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("again/3", again, 3, "contended", "1", NULL, finish, .spurious = 0, LIMIT(1, 2)),
	ENTRIES("try_read/2", try_read, 2, "", "0 1", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("try_write/2", try_write, 2, "", "1", NULL, finish, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("try_read/3", try_read, 3, "", "0 1 2", NULL, finish, .spurious = 0, LIMIT(1, 0)),
	ENTRIES("try_write/3", try_write, 3, "", "1", NULL, finish, .spurious = 0, LIMIT(1, 0)),
	ENTRIES("timed/2", timed_both, 2, "", "01 10 11", NULL, finish_timed, .spurious = 1, LIMIT(2, 0)),
	ENTRIES("timed_read/3", timed_read, 3, "", "11 21", NULL, finish_timed, .spurious = 0, LIMIT(1, 3)),
	ENTRIES("timed_write/3", timed_write, 3, "", "10 11 20 21", NULL, finish_timed, .spurious = 0, LIMIT(1, 3)),
	ENTRIES("freed/writers", freed_writers, 2, "contended", "2", NULL, finish_freed, .spurious = 1,
		.flags = CHECK_CLIENT_FREES, LIMIT(2, 0)),
	ENTRIES("freed/both", freed_both, 2, "contended", "2", NULL, finish_freed, .spurious = 1,
		.flags = CHECK_CLIENT_FREES, LIMIT(2, 0)),
	ENTRIES("freed/readers", freed_readers, 3, "contended", "3", NULL, finish_freed, .flags = CHECK_CLIENT_FREES,
		LIMIT(1, 3)),
	ENTRIES("both/3x1", both, 3, "contended", "1 2", NULL, finish, .spurious = 0, LIMIT(1, 0)),
	ENTRIES("one_reader/3x1", one_reader, 3, "contended", "1", NULL, finish, .spurious = 0, LIMIT(1, 0)),
	ENTRY("both/3x1/park/stirred", both_park, 3, "contended park", "1 2", NULL, finish, .spurious = 1, LIMIT(1, 3)),
	ENTRIES("fork/reader/2", fork_try_reader, 2, "", NULL, NULL, finish, LIMIT(2, 0)),
	ENTRIES("fork/writer/2", fork_try_writer, 2, "", NULL, NULL, finish, LIMIT(2, 0)),
	ENTRIES("fork/reader/3", fork_reader, 3, "fork_repair", NULL, NULL, finish, LIMIT(1, 0)),
	ENTRIES("fork/writer/3", fork_writer, 3, "fork_repair", NULL, NULL, finish, LIMIT(1, 0)),
#ifndef POUNDLOCK_BRAVO_H
	ENTRY("both/4x1/spin", both_spin, 4, "contended", "1 2 3", NULL, finish, .bound = 2),
#endif
	ENTRY("both/4x1/park", both_park, 4, "contended park", NULL, NULL, finish, .walks = 50000, .spurious = 1),
	ENTRIES("held/5", held, 5, "contended " SHUFFLES, NULL, hold, finish, .walks = 20000),
	ENTRIES("held_timed/6", held_timed, 6, "contended abandon", NULL, hold, finish, .walks = 20000),
	{.name = NULL},
};
