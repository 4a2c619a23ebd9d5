/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of the recursive lock (core/recursive.h) over ttas. The data and the depth are plain, so
 * that two owners at a time are a data race.
 */
#include "recursive.h"
#include "ttas.h"

#include "check.h"
#include "entry.h"

struct memory {
	struct recursive recursive;
	struct ttas lock;
	uint32_t sum;
};

struct notes {
	uint32_t entered;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

static const struct ttas_policy policy = {.wait = WAIT_YIELD};

static __attribute__((noinline)) void lock(void)
{
	enum recursive_entry entry = recursive_enter(&M->recursive);

	check_assert(entry != RECURSIVE_FULL);
	if (entry == RECURSIVE_AGAIN)
		return;
	check_assert(ttas_acquire(&M->lock, policy, NULL));
	recursive_own(&M->recursive);
}

static __attribute__((noinline)) bool try_lock(void)
{
	enum recursive_entry entry = recursive_enter(&M->recursive);

	if (entry == RECURSIVE_NEW && ttas_try_acquire(&M->lock))
		recursive_own(&M->recursive);
	else if (entry != RECURSIVE_AGAIN)
		return false;
	return true;
}

static __attribute__((noinline)) void unlock(void)
{
	if (recursive_leave(&M->recursive))
		check_assert(ttas_release(&M->lock, policy));
}

static void use(void)
{
	M->sum++;
	(void)check_add(&NOTES->entered, 1);
}

/* Locked again while locked, and unlocked as often. */
static void nest(uint32_t self)
{
	(void)self;
	lock();
	use();
	lock();
	use();
	unlock();
	use();
	unlock();
}

static void nest_twice(uint32_t self)
{
	nest(self);
	nest(self);
}

/* A try of the owner always succeeds; any other thread's only if it is free. */
static void try_nested(uint32_t self)
{
	if (!self) {
		nest(self);
	} else if (try_lock()) {
		use();
		check_assert(try_lock());
		use();
		unlock();
		unlock();
	}
}

/* The highest depth is refused, and nothing has changed. */
static void overflow(uint32_t self)
{
	lock();
	if (!self) {
		M->recursive.depth = RECURSIVE_MOST;
		check_assert(recursive_enter(&M->recursive) == RECURSIVE_FULL);
		check_assert(M->recursive.depth == RECURSIVE_MOST);
		M->recursive.depth = 0;
	}
	use();
	unlock();
}

/* The next owner may free it when the last has unlocked it. */
static void freed(uint32_t self)
{
	lock();
	use();
	lock();
	unlock();
	if (M->sum == 2) {
		unlock();
		check_ended(&M->recursive);
	} else {
		unlock();
	}
	(void)self;
}

static void fork_held(uint32_t self)
{
	if (self == 0) {
		lock();
		check_fork();
		check_create_threads();
		lock();
		unlock();
		unlock();
		return;
	}
	check_wait_to_be_created();
	nest(self);
}

static void finish(void)
{
	check_assert(M->sum == NOTES->entered);
	check_assert(try_lock());
	check_assert(!M->recursive.depth);
	unlock();
}

static void finish_freed(void)
{
	check_assert(M->sum == NOTES->entered);
}

#define SHARED_BYTES sizeof(struct memory)

const struct check_client check_clients[] = {
	ENTRY("2", nest_twice, 2, "contended", NULL, NULL, finish, .flags = CHECK_CLIENT_PROMISES),
	ENTRY("3", nest, 3, "contended", NULL, NULL, finish, .flags = CHECK_CLIENT_PROMISES),
	ENTRY("try/3", try_nested, 3, "", NULL, NULL, finish, .flags = CHECK_CLIENT_PROMISES),
	ENTRY("overflow/2", overflow, 2, "", NULL, NULL, finish),
	ENTRY("freed/2", freed, 2, "contended", NULL, NULL, finish_freed,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("fork/3", fork_held, 3, "", NULL, NULL, finish, .flags = CHECK_CLIENT_FORKS),
	{.name = NULL},
};
