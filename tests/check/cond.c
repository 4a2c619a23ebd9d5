/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of the condition variable (core/cond.h), with ttas locks. Shared data is plain, so that a
 * wait that returns without the lock is a data race. A lost signal is a thread that never ends. A
 * use of the condition variable after the end of its lifetime, and of a waiter's node after its
 * frame has returned, are errors of their own.
 */
#include "cond.h"
#include "ttas.h"

#include "check.h"
#include "entry.h"

struct memory {
	struct cond cond;
	struct ttas lock, other; /* two locks whose waiters share the condition variable */
	uint32_t tokens;         /* under `lock` */
	uint32_t done;           /* under the waiter's lock */
	uint32_t other_done;
	W_ATOMIC(uint32_t) finished; /* a waiter of `other`, or thread 1's way to its wait */
};

struct notes {
	uint32_t signalled, timed_out;
	uint32_t reported,
		woken; /* waiters: that notifications have reported; that were signalled */
};

#define M check_shared(struct memory)
#define NOTES check_ghost(struct notes)

static void acquire(void *lock)
{
	check_assert(ttas_acquire(lock, (struct ttas_policy){.wait = WAIT_YIELD}, NULL));
}

static void release(void *lock)
{
	check_assert(ttas_release(lock, (struct ttas_policy){.wait = WAIT_YIELD}));
}

static __attribute__((noinline)) enum cond_result wait_by(struct cond_lock lock,
							  const struct w_deadline *deadline)
{
	enum cond_result result = cond_wait(&M->cond, lock, deadline);

	if (result == COND_SIGNALLED)
		(void)check_add(&NOTES->woken, 1);
	return result;
}

static bool wait_with(struct ttas *lock, const struct w_deadline *deadline)
{
	return wait_by((struct cond_lock){lock, release, acquire, false}, deadline) !=
	       COND_TIMED_OUT;
}

static enum cond_result wait_only(struct ttas *lock, const struct w_deadline *deadline)
{
	return wait_by((struct cond_lock){lock, release, acquire, true}, deadline);
}

static __attribute__((noinline)) void signal_one(void)
{
	(void)check_add(&NOTES->reported, cond_signal(&M->cond));
}

static __attribute__((noinline)) void signal_all(void)
{
	(void)check_add(&NOTES->reported, (uint32_t)cond_broadcast(&M->cond));
}

/* Waits until @lock's `done` is set. */
static void await(struct ttas *lock, uint32_t *done)
{
	acquire(lock);
	while (!*done) {
		check_assert(wait_with(lock, NULL));
		check_returned();
	}
	release(lock);
}

static void await_done(void)
{
	await(&M->lock, &M->done);
}

/* As await_done(), but gives up at the deadline. Returns whether it was signalled. */
static bool await_done_timed(void)
{
	static const struct w_deadline deadline;
	bool signalled = false;

	acquire(&M->lock);
	while (!M->done) {
		check_renew_deadline();
		signalled = wait_with(&M->lock, &deadline);
		check_returned();
		if (!signalled) {
			(void)check_add(&NOTES->timed_out, 1);
			break;
		}
	}
	release(&M->lock);
	return signalled;
}

static void set_done(void)
{
	acquire(&M->lock);
	M->done = 1;
	release(&M->lock);
}

/* ---- Signals ---- */

/* The signal comes after the unlock, or before it. */
static void signal_late(uint32_t self)
{
	if (self) {
		await_done();
		return;
	}
	set_done();
	signal_one();
	check_returned();
}

static void signal_early(uint32_t self)
{
	if (self) {
		await_done();
		return;
	}
	acquire(&M->lock);
	M->done = 1;
	signal_one();
	check_returned();
	release(&M->lock);
}

/* Each waiter takes a token. Each token comes with one signal. */
static void tokens(uint32_t self)
{
	if (self) {
		acquire(&M->lock);
		while (!M->tokens) {
			check_assert(wait_with(&M->lock, NULL));
			check_returned();
		}
		M->tokens--;
		release(&M->lock);
		return;
	}
	for (int i = 0; i < 2; i++) {
		acquire(&M->lock);
		M->tokens++;
		release(&M->lock);
		signal_one();
		check_returned();
	}
}

/* A waiter of two rounds: the second wait begins while others still wake. */
static void rounds(uint32_t self)
{
	for (int i = 0; i < 2; i++) {
		acquire(&M->lock);
		while (M->tokens != self) {
			check_assert(wait_with(&M->lock, NULL));
			check_returned();
		}
		M->tokens = !self;
		release(&M->lock);
		signal_one();
		check_returned();
	}
}

/*
 * One signal, a waiter with a deadline and one without. If the first consumes the signal, it sends
 * another. If it leaves at its deadline, the signal must reach the other.
 */
static void signal_or_deadline(uint32_t self)
{
	if (self == 0) {
		set_done();
		signal_one();
		check_returned();
	} else if (self == 1) {
		if (await_done_timed()) {
			(void)check_add(&NOTES->signalled, 1);
			signal_one();
			check_returned();
		}
	} else {
		await_done();
	}
}

/* ---- Broadcasts ---- */

static void broadcast(uint32_t self)
{
	if (self) {
		await_done();
		return;
	}
	set_done();
	signal_all();
	check_returned();
}

/* All waiters but the last have deadlines. */
static void broadcast_timed(uint32_t self)
{
	if (self == 0) {
		set_done();
		signal_all();
		check_returned();
	} else if (self == 1) {
		await_done();
	} else {
		(void)await_done_timed();
	}
}

/*
 * Thread 1 waits with a lock that thread 0 holds until thread 2, which waits with another lock, has
 * finished. A broadcast that lets thread 1 wake thread 2 would never end.
 */
static void two_locks(uint32_t self)
{
	if (self == 1) {
		await_done();
	} else if (self == 2) {
		await(&M->other, &M->other_done);
		w_store_release(&M->finished, 1);
	} else {
		acquire(&M->other);
		M->other_done = 1;
		release(&M->other);
		acquire(&M->lock);
		M->done = 1;
		signal_all();
		check_returned();
		(void)w_await_acquire(&M->finished, VAL);
		release(&M->lock);
	}
}

/* ---- Waits that allow no other lock ---- */

/*
 * Thread 0 holds the lock of thread 1, so it knows whether that one waits. It is refused with
 * another lock exactly then, and still holds both.
 */
static void only(uint32_t self)
{
	static const struct w_deadline deadline;

	acquire(&M->lock);
	if (self == 0) {
		acquire(&M->other);
		check_renew_deadline();
		check_assert(wait_only(&M->other, &deadline) ==
			     (M->tokens ? COND_REFUSED : COND_TIMED_OUT));
		check_returned();
		release(&M->other);
		M->done = 1;
		signal_one();
		check_returned();
	} else {
		M->tokens = 1;
		while (!M->done) {
			check_assert(wait_only(&M->lock, NULL) == COND_SIGNALLED);
			check_returned();
		}
		M->tokens = 0;
	}
	release(&M->lock);
}

/* With the same lock nobody is refused, also behind a barrier. Thread 1 is the first to wait. */
static void only_behind_barrier(uint32_t self)
{
	static const struct w_deadline deadline;

	if (self != 1)
		(void)w_await_acquire(&M->finished, VAL);
	if (self == 0) {
		signal_all();
		check_returned();
		return;
	}
	acquire(&M->lock);
	w_store_release(&M->finished, 1);
	check_renew_deadline();
	check_assert(wait_only(&M->lock, &deadline) != COND_REFUSED);
	check_returned();
	release(&M->lock);
}

/* ---- The end of the lifetime ---- */

/* Nobody waits after the broadcast, or the signal of the only waiter: the memory is freed. */
static void free_after(void (*notify)(void), uint32_t self, bool timed)
{
	if (self && timed) {
		(void)await_done_timed();
	} else if (self) {
		await_done();
	} else {
		acquire(&M->lock);
		M->done = 1;
		notify();
		check_returned();
		check_ended(&M->cond);
		release(&M->lock);
	}
}

static void free_after_broadcast(uint32_t self)
{
	free_after(signal_all, self, false);
}

static void free_after_broadcast_timed(uint32_t self)
{
	free_after(signal_all, self, self == 1);
}

static void free_after_signal_timed(uint32_t self)
{
	free_after(signal_one, self, true);
}

/* The waiter frees it when a signal wakes it, while that signal may not have returned yet. */
static void freed_by_waiter(uint32_t self)
{
	if (self) {
		acquire(&M->lock);
		check_assert(wait_with(&M->lock, NULL));
		check_returned();
		check_ended(&M->cond);
		release(&M->lock);
		return;
	}
	(void)w_await_acquire(&M->cond.last, VAL != NULL);
	signal_one();
	check_returned();
}

/* ---- Forks ---- */

/*
 * The child has another waiter than the parent. The parent's may have the list locked, because it
 * leaves.
 */
static void fork_among_waiters(uint32_t self)
{
	if (self == 0) {
		acquire(&M->lock);
		check_fork();
		check_create_threads();
		M->done = 1;
		release(&M->lock);
		signal_all();
		check_returned();
		return;
	}
	if (self == 2) {
		check_wait_to_be_created();
		await_done();
	} else {
		(void)await_done_timed();
	}
}

static void fork_and_release(void *lock)
{
	check_fork();
	release(lock);
}

/* A signal handler of the waiter forks: the wait ends in the child, where nobody would signal. */
static void fork_in_wait(uint32_t self)
{
	if (self) {
		broadcast(0);
		return;
	}
	acquire(&M->lock);
	check_assert(wait_by((struct cond_lock){&M->lock, fork_and_release, acquire, false},
			     NULL) != COND_TIMED_OUT);
	check_returned();
	release(&M->lock);
	signal_all();
	check_returned();
}

static void finish(void)
{
	check_outcome(0, NOTES->timed_out);
	check_outcome(1, NOTES->signalled);
	check_assert(check_busy_nodes() == 0);
	check_assert(cond_idle(&M->cond));
}

/* Without forks, in which a thread may end before it has reported. */
static void finish_counted(void)
{
	finish();
	check_assert(NOTES->woken == NOTES->reported);
}

static void finish_freed(void)
{
	check_outcome(0, NOTES->timed_out);
	check_assert(check_busy_nodes() == 0);
	check_assert(NOTES->woken == NOTES->reported);
}

#define SHARED_BYTES sizeof(struct memory)

const struct check_client check_clients[] = {
	ENTRY("signal/late/2", signal_late, 2, "park", "00", NULL, finish_counted, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("signal/early/2", signal_early, 2, "park", "00", NULL, finish_counted, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("tokens/3", tokens, 3, "park", "00", NULL, finish_counted, .spurious = 1),
	ENTRY("rounds/2", rounds, 2, "park", "00", NULL, finish_counted, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("signal_or_deadline/3", signal_or_deadline, 3, "park abandon", "00 10 01", NULL,
	      finish_counted, .spurious = 1),
	ENTRY("broadcast/2", broadcast, 2, "park", "00", NULL, finish_counted, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("broadcast/3", broadcast, 3, "park relay", "00", NULL, finish_counted, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("broadcast/4", broadcast, 4, "park relay", NULL, NULL, finish_counted,
	      .walks = 20000),
	ENTRY("broadcast/timed/3", broadcast_timed, 3, "park relay abandon barrier", "00 10", NULL,
	      finish_counted, .spurious = 1),
	ENTRY("broadcast/timed/4", broadcast_timed, 4, "park relay abandon barrier", NULL, NULL,
	      finish_counted, .walks = 20000),
	ENTRY("two_locks/3", two_locks, 3, "park", "00", NULL, finish_counted, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("only/2", only, 2, "park abandon", "00", NULL, finish_counted, .spurious = 1,
	      .flags = CHECK_CLIENT_PROMISES),
	ENTRY("only/behind_barrier/3", only_behind_barrier, 3, "park abandon barrier", "00", NULL,
	      finish),
	ENTRY("freed/broadcast/2", free_after_broadcast, 2, "park", "0", NULL, finish_freed,
	      .spurious = 1, .flags = CHECK_CLIENT_PROMISES),
	ENTRY("freed/broadcast/3", free_after_broadcast, 3, "park relay", "0", NULL, finish_freed),
	ENTRY("freed/timed/2", free_after_broadcast_timed, 2, "abandon barrier", "0 1", NULL,
	      finish_freed, .spurious = 1, .flags = CHECK_CLIENT_PROMISES),
	ENTRY("freed/timed/3", free_after_broadcast_timed, 3, "abandon barrier", "0 1", NULL,
	      finish_freed),
	ENTRY("freed/timed_signal/2", free_after_signal_timed, 2, "abandon barrier", "0 1", NULL,
	      finish_freed, .spurious = 1, .flags = CHECK_CLIENT_PROMISES),
	ENTRY("freed/by_waiter/2", freed_by_waiter, 2, "park", "0", NULL, finish_freed,
	      .spurious = 1, .flags = CHECK_CLIENT_PROMISES),
	ENTRY("fork/3", fork_among_waiters, 3, "fork_repair", "00 10", NULL, finish,
	      .flags = CHECK_CLIENT_FORKS),
	ENTRY("fork/in_wait/2", fork_in_wait, 2, "fork_repair", "00", NULL, finish,
	      .flags = CHECK_CLIENT_FORKS),
	{.name = NULL},
};
