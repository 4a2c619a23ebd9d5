/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of the word of pthread_cond_* (preload/cond_word.h) on a model of the kernel's futexes
 * (futex.h). The word is accessed as a whole by threads, and by halves by the kernel. A lost
 * wake-up is a thread that never ends; the shared data is plain and checked for races.
 */
#include "check.h"
#include "entry.h"
#include "futex.h"
#include "ttas.h"

#define w_deadline user_deadline
#include "../../preload/cond_word.h"
#undef w_deadline

struct memory {
	struct futex_kernel kernel;
	struct cond cond;
	struct ttas mutex;
	uint32_t posted, entered; /* under the mutex, plain */
};

struct notes {
	struct futex_queue queue;
	uint32_t timed_out;
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)
#define SHARED_BYTES sizeof(struct memory)

/* The mutex only spins: its waiters' sleeps are futex.c's. */
static const struct ttas_policy policy = {.wait = WAIT_SPIN};

static void lock(void)
{
	check_assert(ttas_acquire(&M->mutex, policy, NULL));
}

static void unlock(void)
{
	check_assert(ttas_release(&M->mutex, policy));
}

/* As sleep_until_signalled() of preload/cond.c, without cancellations. */
static int sleep_until_signalled(struct cond_waiter *waiter, const struct user_deadline *deadline)
{
	int result;

	do
		result = sleep_once(waiter, deadline);
	while (sleeps_again(waiter, result));
	return slept(waiter, result);
}

/* As wait_with_type_deferred(), with the mutex held. */
static int wait_once(const struct user_deadline *deadline)
{
	struct cond_waiter waiter = {.cond = &M->cond, .generation = w_fork_generation()};
	int result;

	waiter.sequence = enter(&M->cond);
	unlock();
	result = sleep_until_signalled(&waiter, deadline);
	leave(&M->cond, waiter.generation);
	lock();
	return result;
}

/* A waiter that is cancelled at its first sleep, or before or after it. */
static void wait_and_be_cancelled(void)
{
	struct cond_waiter waiter = {.cond = &M->cond, .generation = w_fork_generation()};

	waiter.sequence = enter(&M->cond);
	unlock();
	(void)sleep_once(&waiter, &futex_deadline);
	leave_cancelled(&waiter);
	lock();
}

/* Waits until something is posted, and takes it. */
static void take(void)
{
	lock();
	while (!M->posted)
		check_assert(!wait_once(NULL));
	M->posted--;
	unlock();
}

static void post(uint32_t count, int wakes)
{
	lock();
	M->posted += count;
	unlock();
	(void)wake(&M->cond, wakes);
}

/* Thread 0 posts for each of the others, with a signal each. */
static void signals(uint32_t self)
{
	if (self) {
		take();
		return;
	}
	post(1, 1);
	post(1, 1);
}

/* The same with one waiter. */
static void one_signal(uint32_t self)
{
	if (self)
		take();
	else
		post(1, 1);
}

/* Two threads post, and one takes both. */
static void two_posters(uint32_t self)
{
	if (self) {
		post(1, 1);
		return;
	}
	take();
	take();
}

static void broadcast(uint32_t self)
{
	if (self)
		take();
	else
		post(2, INT_MAX);
}

/* Thread 1 may still leave after a broadcast when thread 2 enters, which a signal must wake. */
static void broadcast_and_signal(uint32_t self)
{
	if (self == 1) {
		take();
		return;
	}
	if (self == 2) {
		lock();
		while (!M->entered)
			check_assert(!wait_once(NULL));
		unlock();
		return;
	}
	post(1, INT_MAX);
	lock();
	M->entered = 1;
	unlock();
	(void)wake(&M->cond, 1);
}

/* The signal must reach thread 1, and not end at thread 2, which waits only if it enters later. */
static void late(uint32_t self)
{
	struct cond_waiter waiter = {.cond = &M->cond, .generation = w_fork_generation()};

	if (self < 2) {
		one_signal(self);
		return;
	}
	waiter.sequence = enter(&M->cond);
	if (waiter.sequence)
		(void)sleep_until_signalled(&waiter, &futex_deadline);
	leave(&M->cond, waiter.generation);
}

/*
 * Of one post and one signal, thread 2 waits for them until it has them. Thread 1 gives up at a
 * deadline, and puts back what it took.
 */
static void timed(uint32_t self)
{
	int result = 0;

	if (self != 1) {
		one_signal(self);
		return;
	}
	lock();
	while (!M->posted && !result)
		result = wait_once(&futex_deadline);
	unlock();
	if (result)
		(void)check_add(&NOTES->timed_out, 1);
	else
		(void)wake(&M->cond, 1);
}

/* The same, but thread 1 is cancelled. */
static void cancelled(uint32_t self)
{
	if (self != 1) {
		one_signal(self);
		return;
	}
	lock();
	if (!M->posted)
		wait_and_be_cancelled();
	else
		(void)wake(&M->cond, 1);
	unlock();
}

/* Thread 0 destroys the condition variable right after its broadcast. */
static void destroy(uint32_t self)
{
	if (self) {
		take();
		return;
	}
	lock();
	M->posted += 2;
	(void)wake(&M->cond, INT_MAX);
	M->entered = 1;
	unlock();
	await_leavers(&M->cond);
	check_ended(&M->cond);
}

/* Destroyed before a waiter came: it no longer waits. */
static void destroy_late(uint32_t self)
{
	if (!self) {
		destroy(self);
		return;
	}
	lock();
	while (!M->entered)
		check_assert(!wait_once(NULL));
	unlock();
}

/*
 * Thread 0 forks while thread 1 may be in a wait, and posts in the child. There thread 2 takes it,
 * and destroys the condition variable: the parent's waiter does not exist.
 */
static void forks(uint32_t self)
{
	if (self == 1) {
		take();
		return;
	}
	if (self == 2) {
		check_wait_to_be_created();
		take();
		await_leavers(&M->cond);
		check_ended(&M->cond);
		return;
	}
	lock();
	check_fork();
	for (uint32_t thread = 0; thread < FUTEX_THREADS; thread++)
		NOTES->queue.address[thread] = NULL;
	check_create_threads();
	M->posted++;
	(void)wake(&M->cond, 1);
	unlock();
}

static void prepare(void)
{
	check_mixed(&M->cond.state);
}

static void prepare_signal(void)
{
	prepare();
	NOTES->queue.signals = 1;
}

static void prepare_old_kernel(void)
{
	prepare();
	NOTES->queue.lacks_wake_op = true;
}

static void finish(void)
{
	check_outcome(0, NOTES->queue.sleeps != 0);
	for (uint32_t thread = 0; thread < FUTEX_THREADS; thread++)
		check_assert(!NOTES->queue.address[thread]);
}

static void finish_timed(void)
{
	finish();
	check_outcome(1, NOTES->timed_out);
}

static void finish_forks(void)
{
	check_outcome(0, NOTES->queue.sleeps != 0);
}

#define SLEPT "0 1"
#define FORKS .flags = CHECK_CLIENT_FORKS

const struct check_client check_clients[] = {
	ENTRY("signal/2", one_signal, 2, NULL, SLEPT, prepare, finish),
	ENTRY("signal/3", signals, 3, NULL, SLEPT, prepare, finish),
	ENTRY("posters/3", two_posters, 3, NULL, SLEPT, prepare, finish),
	ENTRY("broadcast/3", broadcast, 3, NULL, SLEPT, prepare, finish),
	ENTRY("broadcast_and_signal/3", broadcast_and_signal, 3, NULL, SLEPT, prepare, finish,
	      .bound = 2),
	ENTRY("late/3", late, 3, NULL, SLEPT, prepare, finish),
	ENTRY("old_kernel/late/3", late, 3, NULL, SLEPT, prepare_old_kernel, finish),
	ENTRY("interrupted/signal/2", one_signal, 2, NULL, SLEPT, prepare_signal, finish),
	ENTRY("interrupted/posters/3", two_posters, 3, NULL, SLEPT, prepare_signal, finish),
	ENTRY("old_kernel/signal/3", signals, 3, NULL, SLEPT, prepare_old_kernel, finish),
	ENTRY("old_kernel/broadcast/3", broadcast, 3, NULL, SLEPT, prepare_old_kernel, finish),
	ENTRY("timed/3", timed, 3, NULL, "00 10 11", prepare, finish_timed),
	ENTRY("cancelled/3", cancelled, 3, NULL, SLEPT, prepare, finish),
	ENTRY("destroy/3", destroy, 3, NULL, SLEPT, prepare, finish),
	ENTRY("destroy_late/2", destroy_late, 2, NULL, SLEPT, prepare, finish),
	ENTRY("fork/3", forks, 3, NULL, SLEPT, prepare, finish_forks, FORKS),
	{.name = NULL},
};
