/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of once (core/once.h). The function's data is plain, so that a call that returns before
 * the function has ended, or a second run of the function at the same time, is a data race.
 */
#include "check.h"
#include "entry.h"

static bool interrupts_sleep(void);

/* A sleep, which a signal handler may interrupt. */
static inline void sleep_or_fork(W_ATOMIC(uint32_t) *word, uint32_t expected,
				 const struct w_deadline *deadline)
{
	if (!interrupts_sleep())
		w_park(word, expected, deadline);
}

#undef w_park
#define w_park sleep_or_fork
#include "once.h"

struct memory {
	struct once once;
	uint32_t runs; /* by the functions, plain */
	W_ATOMIC(uint32_t) asked;
};

struct notes {
	uint32_t ended, failed;
	bool handler_forks;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

static __attribute__((noinline)) bool begin(void)
{
	return !once_done(&M->once) && once_begin(&M->once);
}

static __attribute__((noinline)) void end(bool completed)
{
	once_end(&M->once, completed);
}

/* A call, whose function fails if @fails. Returns whether the function ran here. */
static bool call(bool fails)
{
	if (!begin())
		return false;
	M->runs++;
	(void)check_add(fails ? &NOTES->failed : &NOTES->ended, 1);
	end(!fails);
	return true;
}

static void once_each(uint32_t self)
{
	(void)self;
	(void)call(false);
	check_assert(M->runs == 1);
}

static void twice_each(uint32_t self)
{
	once_each(self);
	once_each(self);
}

/* Thread 0 fails whenever it is the one to run; then it calls no more. */
static void fail_at_0(uint32_t self)
{
	bool fails = self == 0;

	if (call(fails) && fails)
		return;
	check_assert(NOTES->ended == 1);
	check_assert(M->runs == 1 + NOTES->failed);
}

/*
 * The memory is freed by a caller that did not run the function, while the one that did may still
 * be about to wake it.
 */
static void freed(uint32_t self)
{
	if (self == 0) {
		check_assert(begin());
		w_store_release(&M->asked, 1);
		end(true);
		return;
	}
	(void)w_await_acquire(&M->asked, VAL);
	check_assert(!begin());
	check_ended(&M->once);
}

/* ---- Forks ---- */

/*
 * Thread 0 forks before its own call. In the parent, thread 1 may be running its function, which
 * thread 2, the child's own, must not wait for.
 */
static void fork_meanwhile(uint32_t self)
{
	if (self == 0) {
		check_fork();
		check_create_threads();
	} else if (self == 2) {
		check_wait_to_be_created();
	}
	(void)call(false);
}

/* The thread that runs the function forks in it, and completes it in the child. */
static void fork_in_function(uint32_t self)
{
	if (self == 0) {
		if (begin()) {
			check_fork();
			M->runs++;
			end(true);
		} else {
			check_fork();
		}
		check_create_threads();
	} else if (self == 2) {
		check_wait_to_be_created();
	}
	(void)call(false);
	if (self != 1)
		check_assert(once_done(&M->once));
}

/* The sleeping thread's signal handler forks: the child must not wait for the parent's thread. */
static bool interrupts_sleep(void)
{
	if (!NOTES->handler_forks)
		return false;
	NOTES->handler_forks = false;
	check_fork();
	return true;
}

static void fork_in_wait(uint32_t self)
{
	if (self == 0) {
		(void)w_await_acquire(&M->asked, VAL);
		NOTES->handler_forks = true;
		(void)call(false);
		check_assert(once_done(&M->once));
		return;
	}
	check_assert(begin());
	w_store_release(&M->asked, 1);
	M->runs++;
	end(true);
}

static void finish(void)
{
	check_outcome(0, NOTES->failed);
	check_assert(once_done(&M->once));
	check_assert(M->runs == NOTES->ended + NOTES->failed);
	check_assert(NOTES->ended == 1);
}

static void finish_forked(void)
{
	check_assert(once_done(&M->once));
}

#define SHARED_BYTES sizeof(struct memory)

const struct check_client check_clients[] = {
	ENTRY("2", once_each, 2, "park", "0", NULL, finish, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("2x2", twice_each, 2, "park", "0", NULL, finish, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("3", once_each, 3, "park", "0", NULL, finish, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("4", once_each, 4, "park", "0", NULL, finish),
	ENTRY("fail/2", fail_at_0, 2, "park", "0 1", NULL, finish, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("fail/3", fail_at_0, 3, "park", "0 1", NULL, finish, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("freed/2", freed, 2, "park", NULL, NULL, NULL, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("fork/3", fork_meanwhile, 3, "", NULL, NULL, finish_forked,
	      .flags = CHECK_CLIENT_FORKS),
	ENTRY("fork/in_function/3", fork_in_function, 3, "", NULL, NULL, finish_forked,
	      .flags = CHECK_CLIENT_FORKS),
	ENTRY("fork/in_wait/2", fork_in_wait, 2, "park", NULL, NULL, finish_forked,
	      .flags = CHECK_CLIENT_FORKS),
	{.name = NULL},
};
