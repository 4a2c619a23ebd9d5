/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * count [FILE]: counts the atomic read-modify-writes of one acquisition and release of each lock,
 * with its default way of waiting: uncontended, and as the mean of threads that acquire it
 * continuously (ShflLock, Table 1). Readers-writer locks are counted uncontended as reader and as
 * writer; contending threads alternate between the two.
 *
 * Prints the counts in the form of lib/atomics.def. With that file's name, compares them with it
 * instead and fails where they differ. No count depends on time: see world/world.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "../expect.h"
#include "any_rw.h"
#include "poundlock.h"

#define ROUNDS 2000      /* acquisitions by each thread */
#define SECTION 12       /* steps in the critical section */
#define BETWEEN 3        /* steps between two of them */
#define BRIEF_READS 4000 /* a brief wait outlasts a hand-over to every other thread: none sleeps */
#define STACK 65536

static struct {
	ucontext_t main, threads[COUNT_THREADS];
	struct w_self *records[COUNT_THREADS];
	struct w_own own[COUNT_THREADS];
	bool alive[COUNT_THREADS];
	uint32_t self;
	uint64_t updates, steps;
	uint32_t random;
} run;

static char stacks[COUNT_THREADS][STACK];
static const struct any_ops *ops;
static const struct any_rw_ops *rw_ops;
/* Has the same address in every run, since some locks hash it. */
static char *const lock = (char *)0x200000000;

/* ---- The world ---- */

/* Makes that thread the running one. */
static void become(uint32_t thread)
{
	run.self = thread;
	w_self_or_null = run.records[thread];
	w_own = run.own[thread];
}

/* Ends the thread's turn: the next thread runs, if there is one. */
static void pass_turn(void)
{
	uint32_t before = run.self, next = before;

	do
		next = (next + 1) % COUNT_THREADS;
	while (!run.alive[next] && next != before);
	if (next == before)
		return;
	run.records[before] = w_self_or_null;
	run.own[before] = w_own;
	become(next);
	swapcontext(&run.threads[before], &run.threads[next]);
}

void count_step(void)
{
	run.steps++;
	pass_turn();
}

void count_update(void)
{
	count_step();
	run.updates++;
}

uint32_t count_random(void)
{
	run.random ^= run.random << 13;
	run.random ^= run.random >> 17;
	run.random ^= run.random << 5;
	return run.random;
}

uint64_t count_now(void)
{
	return run.steps;
}

uint32_t count_self(void)
{
	return run.self;
}

bool count_read_again(uint32_t *reads, enum w_how how)
{
	++*reads;
	return how < W_BRIEF || *reads < BRIEF_READS;
}

/* A step is a nanosecond. */
bool count_expired(const struct w_deadline *deadline)
{
	return deadline && run.steps >= (uint64_t)deadline->at.tv_sec * 1000000000 +
						(uint64_t)deadline->at.tv_nsec;
}

void count_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline)
{
	while (atomic_load(p) == expected && !count_expired(deadline))
		count_step();
}

void count_unpark(W_ATOMIC(uint32_t) *p)
{
	(void)p;
}

/* ---- Threads ---- */

static void pass(int steps)
{
	while (steps--)
		count_step();
}

/* Acquires and releases once, in the thread's turn @turn. */
static void (*use)(int turn);

static void lock_and_unlock(int turn)
{
	(void)turn;
	ops->lock(lock, ops);
	pass(SECTION);
	EXPECT(ops->unlock(lock, ops));
	pass(BETWEEN);
}

static void read_and_leave(int turn)
{
	(void)turn;
	rw_ops->rdlock(lock, false, rw_ops);
	pass(SECTION);
	EXPECT(rw_ops->rdunlock(lock, rw_ops));
	pass(BETWEEN);
}

static void write_and_leave(int turn)
{
	(void)turn;
	rw_ops->wrlock(lock, rw_ops);
	pass(SECTION);
	EXPECT(rw_ops->wrunlock(lock, rw_ops));
	pass(BETWEEN);
}

static void read_or_write(int turn)
{
	if (turn % 2)
		read_and_leave(turn);
	else
		write_and_leave(turn);
}

static void thread_main(void)
{
	for (int i = 0; i < ROUNDS; i++)
		use(i);
	run.alive[run.self] = false;
	pass_turn();
	setcontext(&run.main);
}

/* Equal weights for all threads, independent of the process's nice value. */
static const struct w_own newcomer = {.weight = 1024, .group = 1};

static void create(uint32_t thread)
{
	ucontext_t *context = &run.threads[thread];

	EXPECT(!getcontext(context));
	context->uc_stack.ss_sp = stacks[thread];
	context->uc_stack.ss_size = STACK;
	makecontext(context, thread_main, 0);
	run.alive[thread] = true;
	run.own[thread] = newcomer;
}

static void begin(void (*by)(int turn))
{
	use = by;
	w_own = newcomer;
	memset(lock, 0, ANY_RW_SIZE);
	run.random = 1;
	run.steps = run.updates = 0;
}

static double alone(void (*by)(int turn))
{
	uint64_t before;

	begin(by);
	use(0);
	before = run.updates;
	for (int i = 0; i < ROUNDS; i++)
		use(0);
	return (double)(run.updates - before) / ROUNDS;
}

static double together(void (*by)(int turn))
{
	begin(by);
	for (uint32_t i = 0; i < COUNT_THREADS; i++)
		create(i);
	become(0);
	EXPECT(!swapcontext(&run.main, &run.threads[0]));
	return (double)run.updates / (ROUNDS * COUNT_THREADS);
}

/* ---- Results ---- */

static void begin_part(const char *lock_name)
{
	expect_part = lock_name;
	limit();
}

static size_t describe_lock(const char *name, char *text, size_t size)
{
	char error[256];

	begin_part(name);
	ops = any_find(name, error, sizeof(error));
	EXPECT(ops, "%s", error);
	return (size_t)snprintf(text, size, "ATOMICS(%s, %.1f, %.1f)\n", name,
				alone(lock_and_unlock), together(lock_and_unlock));
}

static size_t describe_rw_lock(const char *name, char *text, size_t size)
{
	char error[256];

	begin_part(name);
	rw_ops = any_rw_find(name, error, sizeof(error));
	EXPECT(rw_ops, "%s", error);
	return (size_t)snprintf(text, size, "RW_ATOMICS(%s, %.1f, %.1f, %.1f)\n", name,
				alone(read_and_leave), alone(write_and_leave),
				together(read_or_write));
}

static void describe(char *text, size_t size)
{
	const struct pound_lock_info *info;
	size_t used = 0;

	for (size_t i = 0; (info = pound_lock_info(i)) && used < size; i++)
		used += describe_lock(info->name, text + used, size - used);
	for (size_t i = 0; (info = pound_rwlock_info(i)) && used < size; i++)
		used += describe_rw_lock(info->name, text + used, size - used);
	EXPECT(used < size);
}

/* Whether the lines of @path that define counts are @text; reports the first that differs. */
static bool file_says(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	char line[256];

	EXPECT(file, "cannot read %s", path);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "ATOMICS(", 8) && strncmp(line, "RW_ATOMICS(", 11))
			continue;
		if (strncmp(text, line, strlen(line))) {
			fprintf(stderr, "count: %s has %snow counted: %.*s\n", path, line,
				(int)strcspn(text, "\n"), text);
			return false;
		}
		text += strlen(line);
	}
	if (*text)
		fprintf(stderr, "count: %s lacks %.*s\n", path, (int)strcspn(text, "\n"), text);
	return !*text;
}

int main(int count, char **arguments)
{
	static char text[65536];

	EXPECT(mmap(lock, ANY_RW_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == lock);
	describe(text, sizeof(text));
	if (count > 1)
		return !file_says(arguments[1], text);
	fputs(text, stdout);
	return 0;
}
