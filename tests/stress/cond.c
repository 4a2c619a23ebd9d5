/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stress-cond [SCENARIO]: pound_cond_t under load, with a pound_mutex_t, locks by name and a
 * readers-writer lock's writer. Silent, with status 0, on success; else one line on stderr
 * describes the failure. A lost signal is a scenario that does not end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

#include "../forks.h"
#include "poundlock.h"
#include "stress.h"

/* ---- A lock of any kind ---- */

enum kind { MUTEX, LOCK, WRITER, KINDS };

struct guard {
	enum kind kind;
	union {
		pound_mutex_t mutex;
		pound_lock_t lock;
		pound_rwlock_t rwlock;
	};
};

static void guard_init(struct guard *guard, enum kind kind, const char *spec)
{
	memset(guard, 0, sizeof(*guard));
	guard->kind = kind;
	if (kind == LOCK)
		EXPECT(!pound_lock_init(&guard->lock, spec, NULL, 0));
	if (kind == WRITER)
		EXPECT(!pound_rwlock_init(&guard->rwlock, spec, NULL, 0));
}

static void guard_destroy(struct guard *guard)
{
	if (guard->kind == LOCK)
		pound_lock_destroy(&guard->lock);
}

static void guard_lock(struct guard *guard)
{
	switch (guard->kind) {
	case MUTEX:
		pound_mutex_lock(&guard->mutex);
		break;
	case LOCK:
		pound_lock_lock(&guard->lock);
		break;
	default:
		pound_rwlock_wrlock(&guard->rwlock);
	}
}

static void guard_unlock(struct guard *guard)
{
	switch (guard->kind) {
	case MUTEX:
		pound_mutex_unlock(&guard->mutex);
		break;
	case LOCK:
		pound_lock_unlock(&guard->lock);
		break;
	default:
		pound_rwlock_wrunlock(&guard->rwlock);
	}
}

static void wait_for(pound_cond_t *cond, struct guard *guard)
{
	switch (guard->kind) {
	case MUTEX:
		pound_cond_wait(cond, &guard->mutex);
		break;
	case LOCK:
		pound_cond_wait_lock(cond, &guard->lock);
		break;
	default:
		pound_cond_wait_wrlock(cond, &guard->rwlock);
	}
}

static int wait_until(pound_cond_t *cond, struct guard *guard, const struct w_deadline *deadline)
{
	switch (guard->kind) {
	case MUTEX:
		return pound_cond_timedwait(cond, &guard->mutex, deadline->clock, &deadline->at);
	case LOCK:
		return pound_cond_timedwait_lock(cond, &guard->lock, deadline->clock,
						 &deadline->at);
	default:
		return pound_cond_timedwait_wrlock(cond, &guard->rwlock, deadline->clock,
						   &deadline->at);
	}
}

/* Waits, one time in four until a deadline that is near. Returns false if it passed first. */
static bool wait_somehow(pound_cond_t *cond, struct guard *guard, uint32_t random)
{
	struct w_deadline deadline;
	int result;

	if (random % 4) {
		wait_for(cond, guard);
		return true;
	}
	deadline = after(random % 8 ? CLOCK_MONOTONIC : CLOCK_REALTIME, random % 50000);
	result = wait_until(cond, guard, &deadline);
	EXPECT(!result || (result == ETIMEDOUT && w_expired(&deadline)), "%d", result);
	return !result;
}

/* ---- A bounded queue ---- */

#define SLOTS 3
#define PRODUCERS 4
#define CONSUMERS 4

static struct queue {
	struct guard guard;
	pound_cond_t not_full, not_empty;
	int items[SLOTS], first, count;
	int seen[PRODUCERS]; /* items of each producer, which a consumer must see in order */
	int each, left;
	struct cell cell;
} queue;

/* A signal per item, or a broadcast. After a broadcast, waiters that find nothing wait again. */
static void notify(pound_cond_t *cond, uint32_t random)
{
	if (random % 16)
		pound_cond_signal(cond);
	else
		pound_cond_broadcast(cond);
}

static void put(int item, uint32_t *random)
{
	bool early = next_random(random) % 2;

	guard_lock(&queue.guard);
	while (queue.count == SLOTS)
		(void)wait_somehow(&queue.not_full, &queue.guard, next_random(random));
	cell_write(&queue.cell, *random);
	queue.items[(queue.first + queue.count++) % SLOTS] = item;
	if (early)
		notify(&queue.not_empty, *random);
	guard_unlock(&queue.guard);
	if (!early)
		notify(&queue.not_empty, *random);
}

/* Takes an item. Returns false if all have been taken. */
static bool take(uint32_t *random)
{
	int item;

	guard_lock(&queue.guard);
	while (!queue.count && queue.left)
		(void)wait_somehow(&queue.not_empty, &queue.guard, next_random(random));
	if (!queue.left) {
		guard_unlock(&queue.guard);
		return false;
	}
	cell_write(&queue.cell, *random);
	item = queue.items[queue.first];
	queue.first = (queue.first + 1) % SLOTS;
	queue.count--;
	EXPECT(queue.seen[item % PRODUCERS]++ == item / PRODUCERS, "an item out of order");
	if (!--queue.left)
		pound_cond_broadcast(&queue.not_empty);
	guard_unlock(&queue.guard);
	notify(&queue.not_full, *random);
	return true;
}

static void produce_or_consume(int number, void *unused)
{
	uint32_t random = (uint32_t)number + 1;

	(void)unused;
	if (number < PRODUCERS)
		for (int i = 0; i < queue.each; i++)
			put(i * PRODUCERS + number, &random);
	else
		while (take(&random))
			;
}

static void run_queue(enum kind kind, const char *spec, int each)
{
	memset((void *)&queue, 0, sizeof(queue));
	guard_init(&queue.guard, kind, spec);
	queue.each = each;
	queue.left = each * PRODUCERS;
	crew_run(PRODUCERS + CONSUMERS, produce_or_consume, NULL);
	cell_expect(&queue.cell, 2 * (uint64_t)each * PRODUCERS);
	guard_destroy(&queue.guard);
}

static void cond_queue(void)
{
	run_queue(MUTEX, NULL, rounds(10000));
}

static void cond_locks(void)
{
	for (size_t i = 0; pound_lock_info(i); i++) {
		char spec[64];

		snprintf(spec, sizeof(spec), "%s,wait=park", pound_lock_info(i)->name);
		run_queue(LOCK, spec, rounds(200));
	}
}

static void cond_writers(void)
{
	for (size_t i = 0; pound_rwlock_info(i); i++)
		run_queue(WRITER, pound_rwlock_info(i)->name, rounds(3000));
}

/* ---- Signals against deadlines ---- */

/*
 * As many signals as tokens, and waiters of which most give up early, without a token. If one that
 * gives up consumed a signal, the patient waiters would sleep although a token is left.
 */
static struct {
	struct guard guard;
	pound_cond_t cond;
	int tokens, taken, total;
} counted;

static void give_tokens(void)
{
	for (int i = 0; i < counted.total; i++) {
		guard_lock(&counted.guard);
		counted.tokens++;
		guard_unlock(&counted.guard);
		pound_cond_signal(&counted.cond);
		if (i % 8 == 0)
			sched_yield();
	}
}

/* Takes a token only if it is signalled within a moment. */
static void take_token_soon(uint32_t random)
{
	struct w_deadline deadline = after(CLOCK_MONOTONIC, random % 20000);
	int result = wait_until(&counted.cond, &counted.guard, &deadline);

	EXPECT(!result || result == ETIMEDOUT);
	if (!result && counted.tokens) {
		counted.tokens--;
		counted.taken++;
	}
}

static void take_tokens(int number, void *unused)
{
	uint32_t random = (uint32_t)number + 1;

	(void)unused;
	if (!number) {
		give_tokens();
		return;
	}
	guard_lock(&counted.guard);
	while (counted.taken < counted.total) {
		if (number > 2) {
			take_token_soon(next_random(&random));
		} else if (counted.tokens) {
			counted.tokens--;
			counted.taken++;
		} else {
			wait_for(&counted.cond, &counted.guard);
		}
		if (counted.taken == counted.total)
			pound_cond_broadcast(&counted.cond);
	}
	guard_unlock(&counted.guard);
}

static void cond_deadlines(void)
{
	memset(&counted, 0, sizeof(counted));
	guard_init(&counted.guard, MUTEX, NULL);
	counted.total = rounds(30000);
	crew_run(8, take_tokens, NULL);
	EXPECT(counted.taken == counted.total && !counted.tokens);
}

/* ---- The memory ends with the last notification ---- */

#define WAITERS 4

static struct ended {
	pound_mutex_t mutex;
	pound_cond_t *cond; /* a mapping of its own */
	int waiting, done;
	bool one_by_one; /* notified by signals */
	uint32_t random;
} ended;

static void wait_until_ended(int number, void *unused)
{
	uint32_t random = ended.random + (uint32_t)number;
	struct w_deadline deadline;

	(void)unused;
	pound_mutex_lock(&ended.mutex);
	ended.waiting++;
	deadline = after(CLOCK_MONOTONIC, next_random(&random) % 200000);
	while (!ended.done) {
		if (number % 2) {
			pound_cond_wait(ended.cond, &ended.mutex);
		} else if (pound_cond_timedwait(ended.cond, &ended.mutex, deadline.clock,
						&deadline.at)) {
			break;
		}
	}
	ended.waiting--;
	pound_mutex_unlock(&ended.mutex);
}

static void end_while_waiting(void)
{
	struct crew crew;
	uint32_t random = ended.random;

	crew_start(&crew, WAITERS, wait_until_ended, NULL);
	while (next_random(&random) % 64)
		sched_yield();
	pound_mutex_lock(&ended.mutex);
	ended.done = 1;
	if (ended.one_by_one)
		for (int i = 0; i < WAITERS; i++)
			pound_cond_signal(ended.cond);
	else
		pound_cond_broadcast(ended.cond);
	EXPECT(!munmap(ended.cond, sizeof(pound_cond_t)));
	pound_mutex_unlock(&ended.mutex);
	crew_join(&crew);
}

static void cond_destroy(void)
{
	uint32_t random = 1;

	for (int i = 0; i < rounds(1500); i++) {
		memset(&ended, 0, sizeof(ended));
		ended.random = next_random(&random);
		ended.one_by_one = i % 2;
		ended.cond = mmap(NULL, sizeof(pound_cond_t), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT(ended.cond != MAP_FAILED);
		end_while_waiting();
	}
}

/* ---- Waiters with different locks ---- */

static struct {
	struct guard guards[2];
	pound_cond_t cond;
	int turn[2], answers[2];
	int turns;
} mixed;

#define MIXED 3 /* waiters with each lock */

static void wait_for_turns(int number, void *unused)
{
	int which = number % 2;

	(void)unused;
	guard_lock(&mixed.guards[which]);
	for (int i = 1; i <= mixed.turns; i++) {
		while (mixed.turn[which] < i)
			wait_for(&mixed.cond, &mixed.guards[which]);
		mixed.answers[which]++;
	}
	guard_unlock(&mixed.guards[which]);
}

static bool all_have_answered(int turn)
{
	bool all = true;

	for (int i = 0; i < 2; i++) {
		guard_lock(&mixed.guards[i]);
		all = all && mixed.answers[i] == turn * MIXED;
		guard_unlock(&mixed.guards[i]);
	}
	return all;
}

static void cond_two_locks(void)
{
	struct crew crew;

	memset(&mixed, 0, sizeof(mixed));
	guard_init(&mixed.guards[0], MUTEX, NULL);
	guard_init(&mixed.guards[1], WRITER, "shfl_rw");
	mixed.turns = rounds(1000);
	crew_start(&crew, 2 * MIXED, wait_for_turns, NULL);
	for (int turn = 1; turn <= mixed.turns; turn++) {
		for (int i = 0; i < 2; i++) {
			guard_lock(&mixed.guards[i]);
			mixed.turn[i]++;
			guard_unlock(&mixed.guards[i]);
		}
		pound_cond_broadcast(&mixed.cond);
		while (!all_have_answered(turn))
			sched_yield();
	}
	crew_join(&crew);
}

/* ---- Forks ---- */

static struct {
	pound_mutex_t mutex;
	pound_cond_t cond;
	int done, waiting;
} forked;

static void wait_until_done(int number, void *unused)
{
	uint32_t random = (uint32_t)number + 1;
	struct w_deadline deadline;

	(void)unused;
	pound_mutex_lock(&forked.mutex);
	forked.waiting++;
	while (!forked.done) {
		if (number % 2) {
			pound_cond_wait(&forked.cond, &forked.mutex);
			continue;
		}
		deadline = after(CLOCK_MONOTONIC, next_random(&random) % 10000);
		(void)pound_cond_timedwait(&forked.cond, &forked.mutex, deadline.clock,
					   &deadline.at);
	}
	forked.waiting--;
	pound_mutex_unlock(&forked.mutex);
}

/* Lets the waiters of this process go. */
static void end_waiters(struct crew *crew, int count)
{
	bool all = false;

	while (!all) {
		pound_mutex_lock(&forked.mutex);
		all = forked.waiting == count;
		forked.done = all;
		pound_mutex_unlock(&forked.mutex);
		if (!all)
			sched_yield();
	}
	pound_cond_broadcast(&forked.cond);
	crew_join(crew);
	EXPECT(!forked.waiting);
	forked.done = 0;
}

static void child_main(int way)
{
	struct crew crew;
	pid_t child;

	limit();
	forked.waiting = 0;
	pound_mutex_unlock(&forked.mutex);
	crew_start(&crew, 3, wait_until_done, NULL);
	end_waiters(&crew, 3);
	pound_mutex_lock(&forked.mutex);
	child = fork_by(way);
	if (!child) {
		pound_mutex_unlock(&forked.mutex);
		pound_cond_signal(&forked.cond);
		pound_cond_broadcast(&forked.cond);
		_exit(0);
	}
	pound_mutex_unlock(&forked.mutex);
	reap(child);
	_exit(0);
}

static void cond_fork(void)
{
	struct crew crew;
	pid_t child;

	if (!STRESS_FORK)
		return;
	for (int i = 0; i < rounds(60); i++) {
		memset(&forked, 0, sizeof(forked));
		crew_start(&crew, 4, wait_until_done, NULL);
		pound_mutex_lock(&forked.mutex);
		while (forked.waiting < 4) {
			pound_mutex_unlock(&forked.mutex);
			sched_yield();
			pound_mutex_lock(&forked.mutex);
		}
		child = fork_by(i % FORKS);
		if (!child)
			child_main(i % FORKS);
		pound_mutex_unlock(&forked.mutex);
		reap(child);
		end_waiters(&crew, 4);
	}
}

int main(int count, char **arguments)
{
	static const struct scenario scenarios[] = {
		{"queue", cond_queue},     {"locks", cond_locks},
		{"writers", cond_writers}, {"deadlines", cond_deadlines},
		{"destroy", cond_destroy}, {"two_locks", cond_two_locks},
		{"fork", cond_fork},       {NULL, NULL},
	};

	if (count > 2) {
		fprintf(stderr, "Usage: stress-cond [SCENARIO]\n");
		return 2;
	}
	way = WAIT_PARK;
	return run_scenarios(scenarios, count == 2 ? arguments[1] : NULL);
}
