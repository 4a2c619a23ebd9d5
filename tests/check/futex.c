/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of user space's sleeping (world/user/park.h) on a model of the kernel's futexes
 * (futex.h), by a lock and a semaphore whose waiters sleep: core/ttas.h wakes one, core/sema.h one
 * or all. A wake-up may come before, during or after a sleep, together with a deadline or a signal,
 * or after the memory of the lock was freed and used again.
 */
#include "check.h"
#include "entry.h"
#include "futex.h"
#include "sema.h"
#include "ttas.h"

struct memory {
	struct futex_kernel kernel;
	union {
		struct ttas lock;
		struct sema sema;
	};
	W_ATOMIC(uint32_t) renewed; /* the lock is a semaphore now, or nobody waits for it */
	uint32_t entered;           /* under the lock, plain */
	uint32_t data;              /* plain */
};

struct notes {
	struct futex_queue queue;
	uint32_t entered, timed_out, users;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SHARED_BYTES sizeof(struct memory)

static const struct ttas_policy policy = {.wait = WAIT_PARK};

static void enter(void)
{
	M->entered++;
	(void)check_add(&NOTES->entered, 1);
}

static void once(uint32_t self)
{
	(void)self;
	check_assert(ttas_acquire(&M->lock, policy, NULL));
	enter();
	check_assert(ttas_release(&M->lock, policy));
}

static void twice(uint32_t self)
{
	once(self);
	once(self);
}

/* Threads other than the first wait until a deadline. */
static void timed(uint32_t self)
{
	const struct w_deadline deadline = {0};

	if (!self || ttas_acquire(&M->lock, policy, &deadline)) {
		if (!self)
			check_assert(ttas_acquire(&M->lock, policy, NULL));
		enter();
		check_assert(ttas_release(&M->lock, policy));
	} else {
		(void)check_add(&NOTES->timed_out, 1);
	}
}

/* Thread 0 holds the lock until thread 1 has given up. */
static void outlasted(uint32_t self)
{
	const struct w_deadline deadline = {0};

	if (self) {
		check_assert(!ttas_acquire(&M->lock, policy, &deadline));
		w_store_relaxed(&M->renewed, 1);
	} else {
		(void)w_await_acquire(&M->renewed, VAL);
		check_assert(ttas_release(&M->lock, policy));
	}
}

static void held(void)
{
	w_init(&M->lock.word, TTAS_HELD);
}

/* The last user frees the lock right after its unlock. The other may wake by the address. */
static void freed(uint32_t self)
{
	bool last;

	(void)self;
	check_assert(ttas_acquire(&M->lock, policy, NULL));
	enter();
	last = !check_add(&NOTES->users, -1u);
	check_assert(ttas_release(&M->lock, policy));
	if (last)
		check_ended(&M->lock);
}

static void two_users(void)
{
	NOTES->users = 2;
}

static void post(uint32_t count)
{
	check_assert(sema_post(&M->sema, count));
}

static void take(void)
{
	if (!sema_try(&M->sema))
		check_assert(sema_wait_slow(&M->sema, NULL));
	check_assert(M->data == 1);
}

/* Thread 0 lets all others in, by one post that wakes all. */
static void post_to_all(uint32_t self)
{
	if (self) {
		take();
		return;
	}
	M->data = 1;
	post(2);
}

/* The same, by a post for each. */
static void post_to_each(uint32_t self)
{
	if (self) {
		take();
		return;
	}
	M->data = 1;
	post(1);
	post(1);
}

/*
 * The lock's last user makes a semaphore of its memory and sleeps there until thread 2 posts. The
 * wake-up of the other user may come as late as that.
 */
static void reused(uint32_t self)
{
	bool last;

	if (self == 2) {
		(void)w_await_acquire(&M->renewed, VAL);
		M->data = 1;
		post(1);
		return;
	}
	check_assert(ttas_acquire(&M->lock, policy, NULL));
	enter();
	last = !check_add(&NOTES->users, -1u);
	check_assert(ttas_release(&M->lock, policy));
	if (last) {
		w_store_release(&M->renewed, 1);
		take();
	}
}

static void a_signal(void)
{
	NOTES->queue.signals = 1;
}

static void finish(void)
{
	check_assert(M->entered == NOTES->entered);
	for (uint32_t thread = 0; thread < FUTEX_THREADS; thread++)
		check_assert(!NOTES->queue.address[thread]);
}

/* A sleep is met in some execution. */
static void finish_slept(void)
{
	finish();
	check_outcome(0, NOTES->queue.sleeps != 0);
}

static void finish_timed(void)
{
	finish();
	check_outcome(0, NOTES->timed_out);
}

const struct check_client check_clients[] = {
	ENTRY("2x1", once, 2, NULL, "0 1", NULL, finish_slept),
	ENTRY("2x2", twice, 2, NULL, "0 1", NULL, finish_slept),
	ENTRY("3x1", once, 3, NULL, "0 1", NULL, finish_slept),
	ENTRY("signal/2x1", once, 2, NULL, "0 1", a_signal, finish_slept),
	ENTRY("signal/3x1", once, 3, NULL, "0 1", a_signal, finish_slept),
	ENTRY("timed/2", timed, 2, NULL, "0 1", NULL, finish_timed),
	ENTRY("timed/3", timed, 3, NULL, "0 1 2", NULL, finish_timed),
	ENTRY("signal/timed/3", timed, 3, NULL, "0 1 2", a_signal, finish_timed),
	ENTRY("outlasted/2", outlasted, 2, NULL, "0 1", held, finish_slept),
	ENTRY("freed/2", freed, 2, NULL, "0 1", two_users, finish_slept),
	ENTRY("reused/3", reused, 3, NULL, "0 1", two_users, finish_slept),
	ENTRY("all/3", post_to_all, 3, NULL, "0 1", NULL, finish_slept),
	ENTRY("each/3", post_to_each, 3, NULL, "0 1", NULL, finish_slept),
	{.name = NULL},
};
