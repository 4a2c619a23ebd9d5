/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of the semaphore (core/sema.h). Shared data is plain, so that a wait which a post does
 * not order is a data race. A lost wake-up is a thread that never ends. A use of the semaphore
 * after the end of its lifetime is an error of its own.
 */
#include "sema.h"

#include "check.h"
#include "entry.h"

struct memory {
	struct sema sema, other;
	uint32_t data[4]; /* the data of thread n, plain */
	uint32_t sum;
};

struct notes {
	uint32_t taken, timed_out, refused;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

static __attribute__((noinline)) void post(struct sema *sema, uint32_t count)
{
	check_assert(sema_post(sema, count));
}

static __attribute__((noinline)) void take(struct sema *sema)
{
	if (!sema_try(sema))
		check_assert(sema_wait_slow(sema, NULL));
	(void)check_add(&NOTES->taken, 1);
}

static __attribute__((noinline)) bool take_timed(struct sema *sema)
{
	static const struct w_deadline deadline;
	bool taken;

	check_renew_deadline();
	taken = sema_try(sema) || sema_wait_slow(sema, &deadline);
	(void)check_add(taken ? &NOTES->taken : &NOTES->timed_out, 1);
	return taken;
}

/* ---- Posts and waits ---- */

/* The reader of the data waits for a post by its writer. */
static void publish(uint32_t self)
{
	if (self) {
		take(&M->sema);
		check_assert(M->data[0] == 1);
		return;
	}
	M->data[0] = 1;
	post(&M->sema, 1);
}

/* Thread 0 lets all others in, by one post. */
static void publish_to_all(uint32_t self)
{
	if (self) {
		take(&M->sema);
		check_assert(M->data[0] == 1);
		return;
	}
	M->data[0] = 1;
	post(&M->sema, 2);
}

/* The same, by a post for each. */
static void publish_to_each(uint32_t self)
{
	if (self) {
		publish_to_all(self);
		return;
	}
	M->data[0] = 1;
	post(&M->sema, 1);
	post(&M->sema, 1);
}

/* Two post, and a third takes both, and so sees what either wrote. */
static void gather(uint32_t self)
{
	if (self) {
		M->data[self] = 1;
		post(&M->sema, 1);
		return;
	}
	take(&M->sema);
	take(&M->sema);
	check_assert(M->data[1] + M->data[2] == 2);
}

/* Turns: each thread waits for the other. */
static void ping_pong(uint32_t self)
{
	struct sema *own = self ? &M->sema : &M->other, *others = self ? &M->other : &M->sema;

	for (int i = 0; i < 2; i++) {
		if (self)
			take(own);
		M->sum++;
		post(others, 1);
		if (!self)
			take(own);
	}
}

/* ---- A lock ---- */

static void prepare_lock(void)
{
	w_init(&M->sema.state, 1);
}

/* Of value 1: mutual exclusion. */
static void lock_once(uint32_t self)
{
	(void)self;
	take(&M->sema);
	M->sum++;
	post(&M->sema, 1);
}

static void lock_twice(uint32_t self)
{
	lock_once(self);
	lock_once(self);
}

static void lock_timed(uint32_t self)
{
	if (!self) {
		lock_once(self);
	} else if (take_timed(&M->sema)) {
		M->sum++;
		post(&M->sema, 1);
	}
}

/* Threads that try do not wait, and those that find it taken leave it as it is. */
static void lock_try(uint32_t self)
{
	if (!self) {
		lock_once(self);
	} else if (sema_try(&M->sema)) {
		(void)check_add(&NOTES->taken, 1);
		M->sum++;
		post(&M->sema, 1);
	} else {
		(void)check_add(&NOTES->refused, 1);
	}
}

static void finish_lock(void)
{
	check_assert(M->sum == NOTES->taken);
	check_assert(sema_value(&M->sema) == 1);
	check_assert(w_load_relaxed(&M->sema.waiters) == 0);
	check_outcome(0, NOTES->timed_out);
	check_outcome(1, NOTES->refused);
}

/* ---- Deadlines ---- */

/*
 * One post, a waiter with a deadline and one without. A wake-up that reaches the first when it
 * gives up must not be lost to the other.
 */
static void post_or_deadline(uint32_t self)
{
	if (self == 0) {
		post(&M->sema, 1);
	} else if (self == 1) {
		if (take_timed(&M->sema))
			post(&M->sema, 1);
	} else {
		take(&M->sema);
	}
}

/* ---- The end of the lifetime ---- */

/* The thread that a post lets in frees the semaphore, while the post may not have returned. */
static void freed_by_waiter(uint32_t self)
{
	if (self) {
		post(&M->sema, 1);
		return;
	}
	take(&M->sema);
	check_ended(&M->sema);
}

/* The same with two posts of two threads. */
static void freed_by_last(uint32_t self)
{
	if (self) {
		post(&M->sema, 1);
		return;
	}
	take(&M->sema);
	take(&M->sema);
	check_ended(&M->sema);
}

/* ---- The highest value ---- */

static void prepare_full(void)
{
	w_init(&M->sema.state, SEMA_MOST - 1);
}

static void overflow(uint32_t self)
{
	(void)self;
	if (!sema_post(&M->sema, 1))
		(void)check_add(&NOTES->refused, 1);
}

static void finish_full(void)
{
	check_assert(NOTES->refused == 1);
	check_assert(sema_value(&M->sema) == SEMA_MOST);
}

/* ---- Forks ---- */

/* The parent's waiters are counted in the child, which has one of its own. */
static void fork_among_waiters(uint32_t self)
{
	if (self == 0) {
		check_fork();
		check_create_threads();
		post(&M->sema, 1);
		return;
	}
	if (self == 2)
		check_wait_to_be_created();
	take(&M->sema);
}

static void finish(void)
{
	check_assert(sema_value(&M->sema) == 0);
	check_assert(w_load_relaxed(&M->sema.waiters) == 0);
	check_outcome(0, NOTES->timed_out);
}

#define SHARED_BYTES sizeof(struct memory)

const struct check_client check_clients[] = {
	ENTRY("publish/2", publish, 2, "park", "0", NULL, finish, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("publish/all/3", publish_to_all, 3, "park", "0", NULL, finish, .spurious = 1),
	ENTRY("publish/each/3", publish_to_each, 3, "park", "0", NULL, finish, .spurious = 1),
	ENTRY("gather/3", gather, 3, "park", "0", NULL, finish, .spurious = 1),
	ENTRY("ping_pong/2", ping_pong, 2, "park", "0", NULL, finish, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("lock/2", lock_twice, 2, "park", "00", prepare_lock, finish_lock, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("lock/3", lock_once, 3, "park", "00", prepare_lock, finish_lock),
	ENTRY("lock/4", lock_once, 4, "park", NULL, prepare_lock, finish_lock, .walks = 20000),
	ENTRY("lock/timed/2", lock_timed, 2, "park abandon", "00 10", prepare_lock, finish_lock,
	      .spurious = 1, .flags = CHECK_CLIENT_PROMISES),
	ENTRY("lock/timed/3", lock_timed, 3, "park abandon", "00 10 20", prepare_lock, finish_lock),
	ENTRY("lock/try/2", lock_try, 2, "park", "00 01", prepare_lock, finish_lock, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("lock/try/3", lock_try, 3, "park", "00 01 02", prepare_lock, finish_lock),
	ENTRY("post_or_deadline/3", post_or_deadline, 3, "park abandon", "0 1", NULL, finish),
	ENTRY("freed/by_waiter/2", freed_by_waiter, 2, "park", NULL, NULL, NULL, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("freed/by_waiter/3", freed_by_last, 3, "park", NULL, NULL, NULL, .spurious = 1),
	ENTRY("overflow/2", overflow, 2, "", NULL, prepare_full, finish_full),
	ENTRY("fork/3", fork_among_waiters, 3, "park", NULL, NULL, NULL,
	      .flags = CHECK_CLIENT_FORKS),
	{.name = NULL},
};
