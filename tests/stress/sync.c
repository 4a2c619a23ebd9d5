/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stress-sync [SCENARIO]: pound_once_t, pound_sem_t and pound_recursive_mutex_t under load, and
 * pound_mutex_unlock_fair(). Silent, with status 0, on success; else one line on stderr describes
 * the failure. A lost wake-up is a scenario that does not end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

#include "../forks.h"
#include "poundlock.h"
#include "stress.h"

#define THREADS 6

/* ---- Once ---- */

#define FLAGS 64

/* All threads call each of these in random order, several times. Some runs fail. */
static struct {
	pound_once_t once[FLAGS];
	int runs[FLAGS], failed[FLAGS]; /* plain: a second run at the same time is a data race */
	_Atomic(int) ended[FLAGS];
} called;

static void run_once(void *number)
{
	int i = *(int *)number;

	called.runs[i]++;
	sched_yield();
	EXPECT(!atomic_fetch_add(&called.ended[i], 1), "the function has run twice");
}

/* Runs the function, or lets it fail. */
static void begin_and_end(int i, bool fails)
{
	if (!pound_once_begin(&called.once[i]))
		return;
	if (fails)
		called.failed[i]++;
	else
		run_once(&i);
	pound_once_end(&called.once[i], !fails);
}

static void call_all(int number, void *unused)
{
	uint32_t random = (uint32_t)number + 1;
	int order[FLAGS];

	(void)unused;
	random_order(order, FLAGS, &random);
	for (int i = 0; i < FLAGS; i++) {
		begin_and_end(order[i], next_random(&random) % 2);
		pound_once(&called.once[order[i]], run_once, &order[i]);
		EXPECT(called.runs[order[i]] == 1, "a call returned before the function");
	}
}

static void once(void)
{
	for (int i = 0; i < rounds(300); i++) {
		memset((void *)&called, 0, sizeof(called));
		crew_run(THREADS, call_all, NULL);
	}
}

/* ---- A semaphore of value 1 is a lock, of value n a limit ---- */

static struct {
	pound_sem_t sem;
	struct cell cell;
	_Atomic(int) inside;
	int value, each;
} limited;

static bool enter(uint32_t random)
{
	struct w_deadline deadline;
	int result;

	if (random % 8 == 0)
		return pound_sem_trywait(&limited.sem);
	if (random % 8 < 3) {
		deadline = after(random % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, random % 50000);
		result = pound_sem_timedwait(&limited.sem, deadline.clock, &deadline.at);
		EXPECT(!result || (result == ETIMEDOUT && w_expired(&deadline)), "%d", result);
		return !result;
	}
	pound_sem_wait(&limited.sem);
	return true;
}

static void enter_often(int number, void *unused)
{
	uint32_t random = (uint32_t)number + 1;

	(void)unused;
	for (int i = 0; i < limited.each;) {
		if (!enter(next_random(&random)))
			continue;
		EXPECT(atomic_fetch_add(&limited.inside, 1) < limited.value, "too many");
		if (limited.value == 1)
			cell_write(&limited.cell, random);
		if (random % 16 == 0)
			sched_yield();
		atomic_fetch_sub(&limited.inside, 1);
		EXPECT(!pound_sem_post(&limited.sem, 1));
		i++;
	}
}

static void run_limit(int value, int each)
{
	memset((void *)&limited, 0, sizeof(limited));
	EXPECT(!pound_sem_init(&limited.sem, (uint32_t)value));
	limited.value = value;
	limited.each = each;
	crew_run(THREADS, enter_often, NULL);
	EXPECT(pound_sem_value(&limited.sem) == (uint32_t)value);
	EXPECT(!limited.sem.pound_waiters);
	if (value == 1)
		cell_expect(&limited.cell, (uint64_t)each * THREADS);
}

static void lock(void)
{
	run_limit(1, rounds(20000));
}

static void limit_of_three(void)
{
	run_limit(3, rounds(20000));
}

/* ---- A bounded queue of two semaphores ---- */

#define SLOTS 3
#define PRODUCERS 3
#define CONSUMERS 3

static struct {
	pound_sem_t free, filled;
	pound_mutex_t mutex;
	int items[SLOTS], first, count;
	int seen[PRODUCERS];
	int each;
} queue;

static void put(int item)
{
	pound_sem_wait(&queue.free);
	pound_mutex_lock(&queue.mutex);
	EXPECT(queue.count < SLOTS);
	queue.items[(queue.first + queue.count++) % SLOTS] = item;
	pound_mutex_unlock(&queue.mutex);
	EXPECT(!pound_sem_post(&queue.filled, 1));
}

static void take(void)
{
	int item;

	pound_sem_wait(&queue.filled);
	pound_mutex_lock(&queue.mutex);
	EXPECT(queue.count-- > 0);
	item = queue.items[queue.first];
	queue.first = (queue.first + 1) % SLOTS;
	EXPECT(queue.seen[item % PRODUCERS]++ == item / PRODUCERS, "an item out of order");
	pound_mutex_unlock(&queue.mutex);
	EXPECT(!pound_sem_post(&queue.free, 1));
}

static void produce_or_consume(int number, void *unused)
{
	(void)unused;
	for (int i = 0; i < queue.each; i++) {
		if (number < PRODUCERS)
			put(i * PRODUCERS + number);
		else
			take();
	}
}

static void two_semaphores(void)
{
	memset((void *)&queue, 0, sizeof(queue));
	EXPECT(!pound_sem_init(&queue.free, SLOTS));
	queue.each = rounds(20000);
	crew_run(PRODUCERS + CONSUMERS, produce_or_consume, NULL);
	EXPECT(!queue.count && pound_sem_value(&queue.free) == SLOTS);
	EXPECT(!pound_sem_value(&queue.filled));
}

/* ---- Posts of several at once ---- */

static struct {
	pound_sem_t sem;
	int each;
} granted;

/* Thread 0 posts as many as the others take, in parts. */
static void grant_or_take(int number, void *unused)
{
	uint32_t random = 1, left = (uint32_t)granted.each * (THREADS - 1), part;

	(void)unused;
	if (number) {
		for (int i = 0; i < granted.each; i++)
			pound_sem_wait(&granted.sem);
		return;
	}
	while (left) {
		part = next_random(&random) % THREADS;
		part = part < left ? part : left;
		EXPECT(!pound_sem_post(&granted.sem, part));
		left -= part;
		if (random % 4 == 0)
			sched_yield();
	}
}

static void several(void)
{
	memset(&granted, 0, sizeof(granted));
	granted.each = rounds(20000);
	crew_run(THREADS, grant_or_take, NULL);
	EXPECT(!granted.sem.pound_state && !granted.sem.pound_waiters);
}

/* ---- The memory ends with the wait ---- */

/*
 * glibc's bug 12674: the thread that a post lets in unmaps the semaphore, while the post may still
 * be in progress. An access to it would be a fault, since no page is mapped again.
 */
static struct {
	char *pages;
	size_t page;
	_Atomic(pound_sem_t *) sem; /* NULL: none now */
	int rounds;
} ended;

static void wait_and_unmap(void)
{
	pound_sem_t *sem;

	for (int i = 0; i < ended.rounds; i++) {
		sem = (pound_sem_t *)(void *)(ended.pages + (size_t)i * ended.page);
		atomic_store(&ended.sem, sem);
		pound_sem_wait(sem);
		EXPECT(!munmap(sem, ended.page));
	}
}

static void post_or_unmap(int number, void *unused)
{
	pound_sem_t *sem;

	(void)unused;
	if (!number) {
		wait_and_unmap();
		return;
	}
	for (int i = 0; i < ended.rounds; i++) {
		while (!(sem = atomic_exchange(&ended.sem, NULL)))
			sched_yield();
		if (i % 3 == 0) /* the waiter may sleep by now */
			sched_yield();
		EXPECT(!pound_sem_post(sem, 1));
	}
}

static void destroy(void)
{
	ended.rounds = rounds(20000);
	ended.page = (size_t)sysconf(_SC_PAGESIZE);
	ended.pages = mmap(NULL, (size_t)ended.rounds * ended.page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	EXPECT(ended.pages != MAP_FAILED);
	crew_run(2, post_or_unmap, NULL);
}

/* ---- A recursive mutex ---- */

static struct {
	pound_recursive_mutex_t mutex;
	struct cell cell;
	int each;
} nested;

static bool lock_somehow(uint32_t random)
{
	struct w_deadline deadline;

	if (random % 4 == 0)
		return pound_recursive_mutex_trylock(&nested.mutex);
	if (random % 4 == 1) {
		deadline = after(CLOCK_MONOTONIC, random % 50000);
		return !pound_recursive_mutex_timedlock(&nested.mutex, deadline.clock,
							&deadline.at);
	}
	EXPECT(!pound_recursive_mutex_lock(&nested.mutex));
	return true;
}

/* Writes the cell under 1 to 4 locks. */
static void nest(int number, void *unused)
{
	uint32_t random = (uint32_t)number + 1;

	(void)unused;
	for (int i = 0; i < nested.each;) {
		int depth = 1 + (int)(next_random(&random) >> 8) % 4;

		if (!lock_somehow(random))
			continue;
		for (int j = 1; j < depth; j++)
			EXPECT(lock_somehow(next_random(&random)), "the owner had to wait");
		for (int j = 0; j < depth; j++) {
			cell_write(&nested.cell, random);
			pound_recursive_mutex_unlock(&nested.mutex);
			i++;
		}
	}
}

static void recursive(void)
{
	memset((void *)&nested, 0, sizeof(nested));
	nested.each = rounds(20000);
	crew_run(THREADS, nest, NULL);
	EXPECT(!nested.mutex.pound_mutex.pound_state && !nested.mutex.pound_recursion.pound_owner);
}

/* ---- Fair and other releases of a mutex, beside waiters that give up ---- */

static struct {
	pound_mutex_t mutex;
	struct cell cell;
	int each;
	_Atomic(uint64_t) written;
} fairly;

static bool lock_fairly(uint32_t random)
{
	struct w_deadline deadline;

	if (random % 4 == 0)
		return pound_mutex_trylock(&fairly.mutex);
	if (random % 4 == 1) {
		pound_mutex_lock(&fairly.mutex);
		return true;
	}
	deadline = after(CLOCK_MONOTONIC, random % 20000);
	return !pound_mutex_timedlock(&fairly.mutex, deadline.clock, &deadline.at);
}

static void release_fairly(int number, void *unused)
{
	uint32_t random = (uint32_t)number + 1;
	uint64_t written = 0;

	(void)unused;
	for (int i = 0; i < fairly.each; i++) {
		if (!lock_fairly(next_random(&random) >> 8))
			continue;
		cell_write(&fairly.cell, random);
		written++;
		if (random >> 16 & 1)
			pound_mutex_unlock_fair(&fairly.mutex);
		else
			pound_mutex_unlock(&fairly.mutex);
	}
	atomic_fetch_add(&fairly.written, written);
}

/* Many short runs: at the end of each, the lock must be open as well as free. */
static void fair(void)
{
	for (int i = 0; i < rounds(60); i++) {
		memset((void *)&fairly, 0, sizeof(fairly));
		fairly.each = 100;
		crew_run(THREADS, release_fairly, NULL);
		cell_expect(&fairly.cell, atomic_load(&fairly.written));
		EXPECT(pound_mutex_trylock(&fairly.mutex), "trylock failed on a free mutex");
	}
}

/* ---- Forks ---- */

static struct {
	pound_sem_t sem;
	pound_once_t once;
	pound_recursive_mutex_t mutex;
	_Atomic(int) runs;
} forked;

static void count_run(void *unused)
{
	(void)unused;
	sched_yield();
	atomic_fetch_add(&forked.runs, 1);
}

static void use_all(int number, void *unused)
{
	(void)unused;
	pound_once(&forked.once, count_run, NULL);
	EXPECT(atomic_load(&forked.runs) >= 1);
	EXPECT(!pound_recursive_mutex_lock(&forked.mutex));
	if (number % 2)
		EXPECT(!pound_sem_post(&forked.sem, 1));
	EXPECT(pound_recursive_mutex_trylock(&forked.mutex));
	pound_recursive_mutex_unlock(&forked.mutex);
	pound_recursive_mutex_unlock(&forked.mutex);
	if (number % 2 == 0)
		pound_sem_wait(&forked.sem);
}

/* Forks while others use all; the child, which holds the mutex, does the same. */
static void fork_meanwhile(void)
{
	struct crew crew;
	pid_t child;

	if (!STRESS_FORK)
		return;
	for (int i = 0; i < rounds(100); i++) {
		memset((void *)&forked, 0, sizeof(forked));
		crew_start(&crew, 4, use_all, NULL);
		EXPECT(!pound_recursive_mutex_lock(&forked.mutex));
		child = fork_by(i % FORKS);
		pound_recursive_mutex_unlock(&forked.mutex);
		if (!child) {
			limit();
			crew_run(4, use_all, NULL);
			_exit(0);
		}
		crew_join(&crew);
		reap(child);
	}
}

int main(int count, char **arguments)
{
	static const struct scenario scenarios[] = {
		{"once", once},
		{"lock", lock},
		{"limit", limit_of_three},
		{"queue", two_semaphores},
		{"several", several},
		{"destroy", destroy},
		{"recursive", recursive},
		{"fair", fair},
		{"fork", fork_meanwhile},
		{NULL, NULL},
	};

	if (count > 2) {
		fprintf(stderr, "Usage: stress-sync [SCENARIO]\n");
		return 2;
	}
	way = WAIT_PARK;
	return run_scenarios(scenarios, count == 2 ? arguments[1] : NULL);
}
