/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The scenarios of one process; fork.c has the one of two. Each names the faults that it would
 * catch.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "stress.h"

/* ---- The protected data ---- */

struct guarded {
	struct stress_lock lock;
	struct cell cell;
};

void expect_free(struct stress_lock *lock)
{
	EXPECT(ops->trylock(lock), "trylock failed on a free lock");
	EXPECT(!ops->trylock(lock), "trylock took a held lock");
	EXPECT(ops->unlock(lock, ops));
	EXPECT(!ops->unlock(lock, ops), "unlock of a free lock said that it was held");
	EXPECT(ops->trylock(lock), "an unlock of a free lock changed it");
	EXPECT(ops->unlock(lock, ops));
}

struct contention {
	struct stress_lock *lock;
	struct guarded guarded;
	int turns;
};

static void contend_member(int number, void *shared)
{
	struct contention *contention = shared;
	uint32_t random = (uint32_t)number + 1;

	for (int i = 0; i < contention->turns; i++) {
		ops->lock(contention->lock, ops);
		cell_write(&contention->guarded.cell, next_random(&random));
		EXPECT(ops->unlock(contention->lock, ops));
	}
}

void contend(struct stress_lock *lock, int turns)
{
	struct contention contention = {.lock = lock, .turns = turns};

	crew_run(contenders(), contend_member, &contention);
	cell_expect(&contention.guarded.cell, (uint64_t)contenders() * (uint64_t)turns);
	expect_free(lock);
}

/* ---- exclusion: all ways to take the lock, mixed ---- */

static struct {
	struct guarded guarded;
	_Atomic uint64_t taken;
} exclusion;

static bool take_somehow(struct stress_lock *lock, uint32_t random)
{
	clockid_t clock = random & 16 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	struct w_deadline deadline;

	switch (random % 8) {
	case 0:
	case 1:
		return ops->trylock(lock);
	case 2:
		deadline = after(clock, 0);
		return ops->timedlock(lock, &deadline, ops);
	case 3:
		deadline = after(clock, random >> 12);
		return ops->timedlock(lock, &deadline, ops);
	case 4:
		deadline = after(clock, HOUR);
		EXPECT(ops->timedlock(lock, &deadline, ops),
		       "a timed lock gave up an hour before its deadline");
		return true;
	default:
		ops->lock(lock, ops);
		return true;
	}
}

static void exclusion_member(int number, void *shared)
{
	uint32_t random = (uint32_t)number + 7, taken = 0;

	(void)shared;
	for (int i = 0; i < rounds(6000); i++) {
		if (!take_somehow(&exclusion.guarded.lock, next_random(&random)))
			continue;
		cell_write(&exclusion.guarded.cell, random >> 8);
		taken++;
		EXPECT(ops->unlock(&exclusion.guarded.lock, ops));
		if (random % 32 == 9)
			sched_yield();
	}
	atomic_fetch_add(&exclusion.taken, taken);
}

void scenario_exclusion(void)
{
	crew_run(contenders(), exclusion_member, NULL);
	cell_expect(&exclusion.guarded.cell, atomic_load(&exclusion.taken));
	expect_free(&exclusion.guarded.lock);
}

/* ---- trylock: a free lock can be taken at once, also after contended hand-overs ---- */

void scenario_trylock(void)
{
	struct stress_lock lock = {0};

	expect_free(&lock);
	for (int i = 0; i < rounds(20); i++)
		contend(&lock, 50);
}

/* ---- nesting: more locks at once than a thread has spare nodes, released in any order ---- */

#define NESTED 100

static struct {
	struct guarded locks[NESTED];
	int depth;
} nesting;

static void nesting_member(int number, void *shared)
{
	uint32_t random = (uint32_t)number + 3;
	int order[NESTED];

	(void)shared;
	for (int round = 0; round < rounds(40); round++) {
		random_order(order, nesting.depth, &random);
		for (int i = 0; i < nesting.depth; i++) {
			ops->lock(&nesting.locks[i].lock, ops);
			cell_write(&nesting.locks[i].cell, random);
		}
		for (int i = 0; i < nesting.depth; i++)
			EXPECT(ops->unlock(&nesting.locks[order[i]].lock, ops));
	}
}

static void nest(int depth)
{
	memset(&nesting, 0, sizeof(nesting));
	nesting.depth = depth;
	crew_run(contenders(), nesting_member, NULL);
	for (int i = 0; i < depth; i++) {
		cell_expect(&nesting.locks[i].cell, (uint64_t)contenders() * (uint64_t)rounds(40));
		expect_free(&nesting.locks[i].lock);
	}
}

void scenario_nesting(void)
{
	nest(12);
	nest(NESTED);
}

/* ---- timeout: waiters that give up while the lock is held leave the queue intact ---- */

#define PATIENT 2 /* waiters without a deadline, among those with one */

static struct {
	struct guarded guarded;
	uint64_t wait_nanoseconds;
	_Atomic uint64_t taken;
} timeouts;

static void impatient_member(int number, void *shared)
{
	struct w_deadline deadline =
		after(number % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, timeouts.wait_nanoseconds);

	(void)shared;
	EXPECT(!ops->timedlock(&timeouts.guarded.lock, &deadline, ops), "two hold the lock");
}

static void patient_member(int number, void *shared)
{
	(void)shared;
	ops->lock(&timeouts.guarded.lock, ops);
	cell_write(&timeouts.guarded.cell, (uint32_t)number);
	atomic_fetch_add(&timeouts.taken, 1);
	EXPECT(ops->unlock(&timeouts.guarded.lock, ops));
}

static int patient_count(void)
{
	return only_spins() ? 1 : PATIENT;
}

void scenario_timeout(void)
{
	struct crew early, impatient, late;

	for (int round = 0; round < rounds(40); round++) {
		timeouts.wait_nanoseconds = 200000 + 100000 * (uint64_t)(round % 8);
		ops->lock(&timeouts.guarded.lock, ops);
		crew_start(&early, patient_count(), patient_member, NULL);
		crew_start(&impatient, contenders(), impatient_member, NULL);
		crew_start(&late, patient_count(), patient_member, NULL);
		crew_join(&impatient);
		EXPECT(ops->unlock(&timeouts.guarded.lock, ops));
		crew_join(&early);
		crew_join(&late);
		expect_free(&timeouts.guarded.lock);
	}
	cell_expect(&timeouts.guarded.cell, atomic_load(&timeouts.taken));
}

/*
 * ---- straddle: deadlines that expire during hand-overs lose neither the lock nor a wake-up ----
 */

static void straddling_member(int number, void *shared)
{
	struct w_deadline *deadline = shared;

	if (!ops->timedlock(&timeouts.guarded.lock, deadline, ops))
		return;
	cell_write(&timeouts.guarded.cell, (uint32_t)number);
	atomic_fetch_add(&timeouts.taken, 1);
	EXPECT(ops->unlock(&timeouts.guarded.lock, ops));
}

void scenario_straddle(void)
{
	struct straddle straddle;

	timeouts.taken = timeouts.guarded.cell.lines[0].word;
	for (int round = 0; round < rounds(100); round++) {
		straddle.deadline = after(CLOCK_MONOTONIC, 300000);
		ops->lock(&timeouts.guarded.lock, ops);
		straddle_begin(&straddle, straddling_member, patient_count(), patient_member);
		EXPECT(ops->unlock(&timeouts.guarded.lock, ops));
		straddle_end(&straddle);
		expect_free(&timeouts.guarded.lock);
	}
	cell_expect(&timeouts.guarded.cell, atomic_load(&timeouts.taken));
}

/* ---- destroy: the last holder unmaps the lock at once; a late access faults ---- */

struct page {
	struct stress_lock lock;
	int inside; /* threads that have yet to take the lock */
};

static struct {
	struct page *page;
	pthread_barrier_t start, end;
} destroy;

static struct page *map_page(void)
{
	struct page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(page != MAP_FAILED);
	page->inside = contenders();
	return page;
}

static void destroy_member(int number, void *shared)
{
	struct page *page;
	bool last;

	(void)shared;
	for (int round = 0; round < rounds(1500); round++) {
		if (!number)
			destroy.page = map_page();
		pthread_barrier_wait(&destroy.start);
		page = destroy.page;
		ops->lock(&page->lock, ops);
		last = !--page->inside;
		EXPECT(ops->unlock(&page->lock, ops));
		if (last)
			EXPECT(!munmap(page, sizeof(*page)));
		pthread_barrier_wait(&destroy.end);
	}
}

void scenario_destroy(void)
{
	EXPECT(!pthread_barrier_init(&destroy.start, NULL, (unsigned)contenders()));
	EXPECT(!pthread_barrier_init(&destroy.end, NULL, (unsigned)contenders()));
	crew_run(contenders(), destroy_member, NULL);
}

/* ---- threads: thousands start and end ---- */

#define THREADS_FULL 4000

static struct guarded crowd;

static void crowd_member(int number, void *shared)
{
	struct w_deadline deadline = after(CLOCK_MONOTONIC, HOUR);

	(void)shared;
	if (number % 2)
		ops->lock(&crowd.lock, ops);
	else
		EXPECT(ops->timedlock(&crowd.lock, &deadline, ops));
	cell_write(&crowd.cell, (uint32_t)number);
	EXPECT(ops->unlock(&crowd.lock, ops));
}

void scenario_threads(void)
{
	int at_once = only_spins() ? contenders() : 40, batches = rounds(THREADS_FULL) / at_once;

	for (int i = 0; i < batches; i++)
		crew_run(at_once, crowd_member, NULL);
	cell_expect(&crowd.cell, (uint64_t)batches * (uint64_t)at_once);
	expect_free(&crowd.lock);
}

/* ---- handoff: a thread unlocks for another one, which may have ended ---- */

static struct {
	struct guarded guarded;
	sem_t locked;
} handoff;

static void handoff_locks(int number, void *shared)
{
	(void)number, (void)shared;
	ops->lock(&handoff.guarded.lock, ops);
	EXPECT(!sem_post(&handoff.locked));
}

static void handoff_unlocks(int number, void *shared)
{
	(void)shared;
	EXPECT(!sem_wait(&handoff.locked));
	cell_write(&handoff.guarded.cell, (uint32_t)number);
	EXPECT(ops->unlock(&handoff.guarded.lock, ops));
}

void scenario_handoff(void)
{
	struct crew locking, unlocking;
	int turns = only_spins() ? 1 : contenders();

	EXPECT(!sem_init(&handoff.locked, 0, 0));
	for (int round = 0; round < rounds(100); round++) {
		crew_start(&locking, turns, handoff_locks, NULL);
		crew_start(&unlocking, turns, handoff_unlocks, NULL);
		crew_join(&locking);
		crew_join(&unlocking);
	}
	cell_expect(&handoff.guarded.cell, (uint64_t)rounds(100) * (uint64_t)turns);
	expect_free(&handoff.guarded.lock);
}
