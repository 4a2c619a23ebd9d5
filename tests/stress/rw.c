/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stress-rw SPEC [SCENARIO]: runs one readers-writer lock, chosen as in any_rw.h, through all
 * scenarios or one. Silent, with status 0, on success; else one line on stderr describes the
 * failure. Each scenario names the faults that it would catch.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "../forks.h"
#include "any_rw.h"
#include "poundlock.h"
#include "stress.h"

/* The lock under test. */
static const struct any_rw_ops *ops_rw;

/* A lock's memory, as any_rw.h requires it. */
struct rw {
	_Alignas(8) char bytes[ANY_RW_SIZE];
};

struct guarded {
	struct rw lock;
	struct cell cell;
};

enum mode { READ, READ_AGAIN, WRITE };

/* ---- The lock ---- */

static void take(struct rw *lock, enum mode mode)
{
	if (mode == WRITE)
		ops_rw->wrlock(lock, ops_rw);
	else
		ops_rw->rdlock(lock, mode == READ_AGAIN, ops_rw);
}

static bool try_to_take(struct rw *lock, enum mode mode)
{
	return mode == WRITE ? ops_rw->trywrlock(lock)
			     : ops_rw->tryrdlock(lock, mode == READ_AGAIN);
}

static bool take_until(struct rw *lock, enum mode mode, const struct w_deadline *deadline)
{
	return mode == WRITE ? ops_rw->timedwrlock(lock, deadline, ops_rw)
			     : ops_rw->timedrdlock(lock, mode == READ_AGAIN, deadline, ops_rw);
}

static void leave(struct rw *lock, enum mode mode)
{
	EXPECT(mode == WRITE ? ops_rw->wrunlock(lock, ops_rw) : ops_rw->rdunlock(lock, ops_rw),
	       "who was inside is not known there");
}

static void leave_fairly(struct rw *lock, enum mode mode)
{
	EXPECT(mode == WRITE ? ops_rw->wrunlock_fair(lock, ops_rw)
			     : ops_rw->rdunlock_fair(lock, ops_rw),
	       "who was inside is not known there");
}

static void expect_nobody(struct rw *lock)
{
	EXPECT(!ops_rw->rdunlock(lock, ops_rw), "a reader left where none was");
	EXPECT(!ops_rw->wrunlock(lock, ops_rw), "a writer left where none was");
}

/* Checks that the lock is free: readers together, or one writer, can enter at once. */
static void expect_rw_free(struct rw *lock)
{
	expect_nobody(lock);
	EXPECT(try_to_take(lock, WRITE), "a try to write failed on a free lock");
	EXPECT(!try_to_take(lock, WRITE) && !try_to_take(lock, READ),
	       "a try entered beside a writer");
	EXPECT(!ops_rw->rdunlock(lock, ops_rw), "a reader left where a writer was");
	leave(lock, WRITE);
	for (int i = 0; i < 3; i++)
		EXPECT(try_to_take(lock, READ), "a try to read failed on a lock without a writer");
	EXPECT(!try_to_take(lock, WRITE), "a try to write entered beside readers");
	EXPECT(!ops_rw->wrunlock(lock, ops_rw), "a writer left where readers were");
	for (int i = 0; i < 3; i++)
		leave(lock, READ);
	expect_nobody(lock);
}

/* Inside: uses the protected data as @mode allows. */
static void use(struct cell *cell, enum mode mode, uint32_t random)
{
	if (mode == WRITE)
		cell_write(cell, random);
	else
		(void)cell_read(cell, random);
}

static void take_and_use(struct guarded *guarded, enum mode mode, uint32_t random)
{
	take(&guarded->lock, mode);
	use(&guarded->cell, mode, random);
	leave(&guarded->lock, mode);
}

static void try_until_refused(int number, void *lock)
{
	(void)number;
	while (try_to_take(lock, READ)) {
		leave(lock, READ);
		sched_yield();
	}
}

/*
 * Waits until a newcomer would have to wait for the waiting writer, while the caller or another
 * thread is a reader. A failing try of a thread that is inside proves less: a BRAVO reader then
 * uses the lock below, which a writer has before it announces that it waits. So a newcomer tries
 * too.
 */
static void await_waiting_writer(struct rw *lock)
{
	struct crew newcomer;

	try_until_refused(0, lock);
	crew_start(&newcomer, 1, try_until_refused, lock);
	crew_join(&newcomer);
}

/* ---- exclusion: all ways to enter, mixed ---- */

static struct {
	struct guarded guarded;
	_Atomic uint64_t written;
} exclusion;

static bool take_somehow(struct rw *lock, enum mode mode, uint32_t random)
{
	clockid_t clock = random & 16 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	struct w_deadline deadline;

	switch (random % 8) {
	case 0:
	case 1:
		return try_to_take(lock, mode);
	case 2:
		deadline = after(clock, 0);
		return take_until(lock, mode, &deadline);
	case 3:
		deadline = after(clock, random >> 12);
		return take_until(lock, mode, &deadline);
	case 4:
		deadline = after(clock, HOUR);
		EXPECT(take_until(lock, mode, &deadline),
		       "a timed wait ended an hour before its deadline");
		return true;
	default:
		take(lock, mode);
		return true;
	}
}

/* A reader becomes a reader again. */
static void read_again(struct guarded *guarded, uint32_t random)
{
	struct w_deadline deadline = after(CLOCK_MONOTONIC, HOUR);

	if (random % 4 == 0)
		take(&guarded->lock, READ_AGAIN);
	else if (random % 4 == 1)
		EXPECT(try_to_take(&guarded->lock, READ_AGAIN), "a reader could not enter again");
	else if (random % 4 == 2)
		EXPECT(take_until(&guarded->lock, READ_AGAIN, &deadline),
		       "a reader could not enter again");
	else
		return;
	use(&guarded->cell, READ, random);
	leave(&guarded->lock, READ);
}

static void exclusion_member(int number, void *shared)
{
	uint32_t random = (uint32_t)number + 7, written = 0;

	(void)shared;
	for (int i = 0; i < rounds(6000); i++) {
		/* Alternates phases of mostly writers and mostly readers. */
		enum mode mode = next_random(&random) >> 20 & (i & 256 ? 3 : 15) ? READ : WRITE;

		if (!take_somehow(&exclusion.guarded.lock, mode, random))
			continue;
		use(&exclusion.guarded.cell, mode, random >> 8);
		if (mode == READ)
			read_again(&exclusion.guarded, random >> 16);
		else
			written++;
		if (random & 1 << 30)
			leave_fairly(&exclusion.guarded.lock, mode);
		else
			leave(&exclusion.guarded.lock, mode);
		if (random % 32 == 9)
			sched_yield();
	}
	atomic_fetch_add(&exclusion.written, written);
}

static void scenario_rw_exclusion(void)
{
	crew_run(contenders(), exclusion_member, NULL);
	EXPECT(atomic_load(&exclusion.written) > 0);
	cell_expect(&exclusion.guarded.cell, atomic_load(&exclusion.written));
	expect_rw_free(&exclusion.guarded.lock);
}

/*
 * ---- together: readers meet inside, after finding the lock free and after waiting for a writer
 * ----
 */

static struct {
	struct guarded guarded;
	pthread_barrier_t inside;
} together;

static void meeting_member(int number, void *shared)
{
	(void)shared;
	take(&together.guarded.lock, READ);
	(void)cell_read(&together.guarded.cell, (uint32_t)number);
	pthread_barrier_wait(&together.inside);
	(void)cell_read(&together.guarded.cell, (uint32_t)number);
	leave(&together.guarded.lock, READ);
}

static void scenario_together(void)
{
	struct crew readers;

	EXPECT(!pthread_barrier_init(&together.inside, NULL, (unsigned)contenders()));
	for (int round = 0; round < rounds(200); round++) {
		bool behind_writer = round % 2;

		if (behind_writer)
			take(&together.guarded.lock, WRITE);
		crew_start(&readers, contenders(), meeting_member, NULL);
		if (behind_writer) {
			cell_write(&together.guarded.cell, 1);
			leave(&together.guarded.lock, WRITE);
		}
		crew_join(&readers);
		expect_rw_free(&together.guarded.lock);
	}
}

/* ---- closed: while a writer waits for readers, newcomers queue and readers may re-enter ---- */

static struct {
	struct guarded guarded;
	uint64_t before;
} closed;

static void closing_writer(int number, void *shared)
{
	(void)shared;
	take_and_use(&closed.guarded, WRITE, (uint32_t)number);
}

static void newcomer(int number, void *shared)
{
	(void)shared;
	take(&closed.guarded.lock, READ);
	EXPECT(cell_read(&closed.guarded.cell, (uint32_t)number) > closed.before,
	       "a newcomer passed a waiting writer");
	leave(&closed.guarded.lock, READ);
}

static void scenario_closed(void)
{
	struct crew writer, newcomers;

	for (int round = 0; round < rounds(200); round++) {
		struct w_deadline soon = after(CLOCK_MONOTONIC, 20000);

		take(&closed.guarded.lock, READ);
		closed.before = cell_read(&closed.guarded.cell, 0);
		crew_start(&writer, 1, closing_writer, NULL);
		await_waiting_writer(&closed.guarded.lock);
		crew_start(&newcomers, contenders() - 1, newcomer, NULL);
		for (uint32_t i = 0; i < 3; i++)
			read_again(&closed.guarded, i);
		EXPECT(!try_to_take(&closed.guarded.lock, READ),
		       "a try to read passed a waiting writer");
		EXPECT(!take_until(&closed.guarded.lock, READ, &soon),
		       "a newcomer passed a waiting writer");
		EXPECT(cell_read(&closed.guarded.cell, 0) == closed.before,
		       "a writer came in beside a reader");
		leave(&closed.guarded.lock, READ);
		crew_join(&writer);
		crew_join(&newcomers);
		expect_rw_free(&closed.guarded.lock);
	}
	cell_expect(&closed.guarded.cell, (uint64_t)rounds(200));
}

/* ---- nesting: many locks at once, released in any order ---- */

#define NESTED 100

static struct {
	struct guarded locks[NESTED];
	_Atomic uint64_t written[NESTED];
} nesting;

static void nesting_member(int number, void *shared)
{
	uint32_t random = (uint32_t)number + 3;
	enum mode modes[NESTED];
	int order[NESTED];

	(void)shared;
	for (int round = 0; round < rounds(40); round++) {
		random_order(order, NESTED, &random);
		for (int i = 0; i < NESTED; i++) {
			modes[i] = next_random(&random) % 8 ? READ : WRITE;
			take(&nesting.locks[i].lock, modes[i]);
			use(&nesting.locks[i].cell, modes[i], random);
			if (modes[i] == WRITE)
				atomic_fetch_add(&nesting.written[i], 1);
		}
		for (int i = 0; i < NESTED; i++)
			leave(&nesting.locks[order[i]].lock, modes[order[i]]);
	}
}

static void scenario_rw_nesting(void)
{
	crew_run(contenders(), nesting_member, NULL);
	for (int i = 0; i < NESTED; i++) {
		cell_expect(&nesting.locks[i].cell, atomic_load(&nesting.written[i]));
		expect_rw_free(&nesting.locks[i].lock);
	}
}

/*
 * ---- timeout: waiters that give up leave the queue intact, and admit threads they had excluded
 * ----
 */

static struct {
	struct guarded guarded;
	enum mode held; /* while the others wait */
	uint64_t nanoseconds;
	_Atomic uint64_t written;
} timeouts;

static void impatient_member(int number, void *shared)
{
	struct w_deadline deadline =
		after(number % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, timeouts.nanoseconds);
	enum mode mode = number % 3 ? READ : WRITE;

	(void)shared;
	if (!take_until(&timeouts.guarded.lock, mode, &deadline))
		return;
	EXPECT(timeouts.held == READ && mode == READ, "one entered who is against those inside");
	leave(&timeouts.guarded.lock, mode);
}

static void patient_member(int number, void *shared)
{
	enum mode mode = number % 2 ? READ : WRITE;

	(void)shared;
	take_and_use(&timeouts.guarded, mode, (uint32_t)number);
	if (mode == WRITE)
		atomic_fetch_add(&timeouts.written, 1);
}

static void time_out(enum mode held, int patient)
{
	struct crew patient_ones, impatient_ones;

	timeouts.held = held;
	take(&timeouts.guarded.lock, held);
	crew_start(&patient_ones, patient, patient_member, NULL);
	crew_start(&impatient_ones, contenders(), impatient_member, NULL);
	crew_join(&impatient_ones);
	leave(&timeouts.guarded.lock, held);
	crew_join(&patient_ones);
	expect_rw_free(&timeouts.guarded.lock);
}

/* A writer that waited for readers and gave up leaves the lock open to readers. */
static void reopen(void)
{
	struct crew impatient_ones;

	timeouts.held = READ;
	take(&timeouts.guarded.lock, READ);
	crew_start(&impatient_ones, 1, impatient_member, NULL);
	crew_join(&impatient_ones);
	EXPECT(try_to_take(&timeouts.guarded.lock, READ),
	       "a writer that gave up keeps readers out");
	leave(&timeouts.guarded.lock, READ);
	leave(&timeouts.guarded.lock, READ);
	expect_rw_free(&timeouts.guarded.lock);
}

static void scenario_rw_timeout(void)
{
	for (int round = 0; round < rounds(40); round++) {
		timeouts.nanoseconds = 200000 + 100000 * (uint64_t)(round % 8);
		time_out(WRITE, only_spins() ? 1 : 4);
		time_out(READ, only_spins() ? 1 : 4);
		reopen();
	}
	cell_expect(&timeouts.guarded.cell, atomic_load(&timeouts.written));
}

/*
 * ---- straddle: deadlines that expire during hand-overs lose neither the lock nor a wake-up ----
 */

static void straddling_member(int number, void *shared)
{
	enum mode mode = number % 2 ? READ : WRITE;

	if (!take_until(&timeouts.guarded.lock, mode, shared))
		return;
	use(&timeouts.guarded.cell, mode, (uint32_t)number);
	if (mode == WRITE)
		atomic_fetch_add(&timeouts.written, 1);
	leave(&timeouts.guarded.lock, mode);
}

static void scenario_rw_straddle(void)
{
	struct straddle straddle;

	timeouts.written = timeouts.guarded.cell.lines[0].word;
	for (int round = 0; round < rounds(100); round++) {
		enum mode mode = round % 2 ? READ : WRITE;

		straddle.deadline = after(CLOCK_MONOTONIC, 300000);
		take(&timeouts.guarded.lock, mode);
		straddle_begin(&straddle, straddling_member, only_spins() ? 1 : 2, patient_member);
		leave(&timeouts.guarded.lock, mode);
		straddle_end(&straddle);
		expect_rw_free(&timeouts.guarded.lock);
	}
	cell_expect(&timeouts.guarded.cell, atomic_load(&timeouts.written));
}

/* ---- destroy: the last writer unmaps the lock at once; a late access faults ---- */

struct page {
	struct rw lock;
	_Atomic int to_come; /* readers that have not been inside */
	int writers_to_come; /* the same for writers; protected by the lock */
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
	page->to_come = contenders() / 2;
	page->writers_to_come = contenders() - 1 - page->to_come;
	return page;
}

static void unmap_when_all_have_been(struct page *page)
{
	bool all;

	do {
		take(&page->lock, WRITE);
		all = !atomic_load(&page->to_come) && !page->writers_to_come;
		leave(&page->lock, WRITE);
		if (!all)
			sched_yield();
	} while (!all);
	EXPECT(!munmap(page, sizeof(*page)));
}

static void visit(struct page *page, bool reads)
{
	take(&page->lock, reads ? READ : WRITE);
	if (reads)
		atomic_fetch_sub(&page->to_come, 1);
	else
		page->writers_to_come--;
	leave(&page->lock, reads ? READ : WRITE);
}

static void destroy_member(int number, void *shared)
{
	struct page *page;

	(void)shared;
	for (int round = 0; round < rounds(1500); round++) {
		if (!number)
			destroy.page = map_page();
		pthread_barrier_wait(&destroy.start);
		page = destroy.page;
		if (number)
			visit(page, number % 2);
		else
			unmap_when_all_have_been(page);
		pthread_barrier_wait(&destroy.end);
	}
}

static void scenario_rw_destroy(void)
{
	EXPECT(!pthread_barrier_init(&destroy.start, NULL, (unsigned)contenders()));
	EXPECT(!pthread_barrier_init(&destroy.end, NULL, (unsigned)contenders()));
	crew_run(contenders(), destroy_member, NULL);
}

/* ---- threads: thousands start and end ---- */

#define THREADS_FULL 4000

static struct {
	struct guarded guarded;
	_Atomic uint64_t written;
} crowd;

static void crowd_member(int number, void *shared)
{
	struct w_deadline deadline = after(CLOCK_MONOTONIC, HOUR);
	enum mode mode = number % 4 ? READ : WRITE;

	(void)shared;
	if (number % 2)
		take(&crowd.guarded.lock, mode);
	else
		EXPECT(take_until(&crowd.guarded.lock, mode, &deadline));
	use(&crowd.guarded.cell, mode, (uint32_t)number);
	if (mode == WRITE)
		atomic_fetch_add(&crowd.written, 1);
	leave(&crowd.guarded.lock, mode);
}

static void scenario_rw_threads(void)
{
	int at_once = only_spins() ? contenders() : 40, batches = rounds(THREADS_FULL) / at_once;

	for (int i = 0; i < batches; i++)
		crew_run(at_once, crowd_member, NULL);
	cell_expect(&crowd.guarded.cell, atomic_load(&crowd.written));
	expect_rw_free(&crowd.guarded.lock);
}

/* ---- handoff: a thread releases for another one, which may have ended ---- */

static struct {
	struct guarded guarded;
	sem_t inside;
	enum mode mode;
} handoff;

static void handoff_enters(int number, void *shared)
{
	(void)number, (void)shared;
	take(&handoff.guarded.lock, handoff.mode);
	EXPECT(!sem_post(&handoff.inside));
}

static void handoff_leaves(int number, void *shared)
{
	(void)shared;
	EXPECT(!sem_wait(&handoff.inside));
	use(&handoff.guarded.cell, handoff.mode, (uint32_t)number);
	leave(&handoff.guarded.lock, handoff.mode);
}

static void scenario_rw_handoff(void)
{
	struct crew entering, leaving;
	int turns = only_spins() ? 1 : contenders();

	EXPECT(!sem_init(&handoff.inside, 0, 0));
	for (int round = 0; round < rounds(100); round++) {
		handoff.mode = round % 3 ? READ : WRITE;
		crew_start(&entering, turns, handoff_enters, NULL);
		crew_start(&leaving, turns, handoff_leaves, NULL);
		crew_join(&entering);
		crew_join(&leaving);
		expect_rw_free(&handoff.guarded.lock);
	}
}

/*
 * ---- fork: from inside, while others wait and sleep. The child's threads can release and use the
 * lock ----
 */

static struct {
	struct guarded guarded;
} forked;

static void fork_member(int number, void *shared)
{
	(void)shared;
	take_and_use(&forked.guarded, number % 2 ? READ : WRITE, (uint32_t)number);
}

static void child_main(enum mode mode)
{
	limit();
	EXPECT(!try_to_take(&forked.guarded.lock, WRITE),
	       "the child wrote beside its own reader or writer");
	leave(&forked.guarded.lock, mode);
	expect_rw_free(&forked.guarded.lock);
	for (int i = 0; i < rounds(20); i++)
		crew_run(contenders(), fork_member, NULL);
	expect_rw_free(&forked.guarded.lock);
	_exit(0);
}

static void fork_inside(enum mode mode, int way_to_fork)
{
	uint64_t before = contended_so_far();
	struct crew writer, waiters;
	pid_t child;

	take(&forked.guarded.lock, mode);
	crew_start(&writer, 1, fork_member, NULL);
	/* The writer waits by now; threads behind it may or may not, and both must work. */
	if (mode == READ)
		await_waiting_writer(&forked.guarded.lock);
	while (mode == WRITE && contended_so_far() == before)
		sched_yield();
	crew_start(&waiters, only_spins() ? 0 : 3, fork_member, NULL);
	child = fork_by(way_to_fork);
	if (!child)
		child_main(mode);
	reap(child);
	leave(&forked.guarded.lock, mode);
	crew_join(&writer);
	crew_join(&waiters);
	expect_rw_free(&forked.guarded.lock);
}

static void scenario_rw_fork(void)
{
	if (!STRESS_FORK)
		return;
	pound_events_start();
	for (int i = 0; i < rounds(10); i++) {
		fork_inside(READ, i % FORKS);
		fork_inside(WRITE, i % FORKS);
	}
}

int main(int count, char **arguments)
{
	static const struct scenario scenarios[] = {
		{"exclusion", scenario_rw_exclusion},
		{"together", scenario_together},
		{"closed", scenario_closed},
		{"nesting", scenario_rw_nesting},
		{"timeout", scenario_rw_timeout},
		{"straddle", scenario_rw_straddle},
		{"destroy", scenario_rw_destroy},
		{"threads", scenario_rw_threads},
		{"handoff", scenario_rw_handoff},
		{"fork", scenario_rw_fork},
		{NULL, NULL},
	};
	char error[256];

	if (count != 2 && count != 3) {
		fprintf(stderr, "Usage: stress-rw SPEC [SCENARIO]\n");
		return 2;
	}
	ops_rw = any_rw_find(arguments[1], error, sizeof(error));
	if (!ops_rw) {
		fprintf(stderr, "stress-rw: %s\n", error);
		return 2;
	}
	way = ops_rw->wait;
	return run_scenarios(scenarios, arguments[2]);
}
