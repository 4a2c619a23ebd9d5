/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The machine of world.h: threads that repeatedly take one lock, and their results. */
#ifndef POUNDLOCK_TURNS_H
#define POUNDLOCK_TURNS_H

#include <ucontext.h>

#include "../unit.h"
#include "world.h"

#define MOST 40
#define STACK 65536
#define MILLISECOND UINT64_C(1000000)

struct thread {
	uint64_t hold, think; /* its repeated action */
	uint64_t begin, leaves, returns;
	uint32_t weight, group;
	int32_t domain;
	/* The results. */
	uint64_t held, late; /* in total, and since `watched` */
	uint32_t turns, passed, most_passed;
	/* The machine's state. */
	uint64_t time;
	const void *asleep;
	uint64_t until; /* end of its sleep; 0: none */
	bool ended;
	ucontext_t context;
	struct w_self self;
	struct w_own own;
	_Alignas(16) char stack[STACK];
};

uint64_t turns_readings;

static struct {
	struct thread threads[MOST];
	int count, running;
	uint64_t end, watched, busy;
	bool inside;
	uint32_t woken; /* sleeps that a wake-up ended */
	/*
	 * The lock's domain, since when, for how long, the longest stay, the number of moves to
	 * another domain, and the number of stays that exceeded the limit.
	 */
	int32_t domain;
	uint64_t since, stay, longest, limit;
	uint32_t crossings, overstays;
	void (*acquire)(void);
	bool (*release)(void);
	ucontext_t main;
} machine;

static struct thread *self(void)
{
	return &machine.threads[machine.running];
}

static void become(struct thread *thread)
{
	w_self_or_null = &thread->self;
	w_own = thread->own;
}

/* The time at which @thread continues if nothing happens to it; 0: never. */
static uint64_t goes_on(const struct thread *thread)
{
	if (thread->ended)
		return 0;
	return !thread->asleep                                  ? thread->time
	       : !thread->until || thread->until > thread->time ? thread->until
								: thread->time;
}

/* Continues with the earliest awake thread; returns to main() when all have ended. */
static void pick(void)
{
	int before = machine.running, next = -1;

	for (int i = 0; i < machine.count; i++) {
		uint64_t time = goes_on(&machine.threads[i]);

		if (time && (next < 0 || time < goes_on(&machine.threads[next])))
			next = i;
	}
	if (next >= 0) {
		machine.threads[next].time = goes_on(&machine.threads[next]);
		machine.threads[next].asleep = NULL;
	}
	if (next < 0) {
		for (int i = 0; i < machine.count; i++)
			EXPECT(machine.threads[i].ended, "thread %d sleeps for ever", i);
		swapcontext(&machine.threads[before].context, &machine.main);
	} else if (next != before) {
		machine.running = next;
		machine.threads[before].own = w_own;
		become(&machine.threads[next]);
		swapcontext(&machine.threads[before].context, &machine.threads[next].context);
	}
}

uint64_t turns_time(void)
{
	return self()->time;
}

void turns_spend(uint64_t nanoseconds)
{
	self()->time += nanoseconds;
	pick();
}

void turns_step(void)
{
	if (machine.count)
		turns_spend(TURNS_STEP);
}

int32_t turns_domain(void)
{
	return self()->domain;
}

uint32_t turns_position(void)
{
	return (uint32_t)machine.running % w_cpu_count();
}

void turns_sleep(const void *p, uint64_t until)
{
	self()->asleep = p;
	self()->until = until;
	pick();
}

void turns_wake(const void *p, bool all)
{
	for (int i = 0; i < machine.count; i++) {
		struct thread *thread = &machine.threads[i];

		if (thread->asleep != p)
			continue;
		machine.woken++;
		thread->asleep = NULL;
		thread->time = self()->time + TURNS_WAKE;
		if (!all)
			return;
	}
}

/* ---- Threads' actions ---- */

static void note_domain(const struct thread *thread)
{
	if (machine.domain != thread->domain) {
		machine.overstays += machine.stay > machine.limit;
		machine.domain = thread->domain;
		machine.since = thread->time;
		machine.crossings++;
	}
	machine.stay = thread->time - machine.since;
	if (machine.longest < machine.stay)
		machine.longest = machine.stay;
}

static void lock_once(struct thread *thread)
{
	uint64_t begin;

	thread->passed = 0;
	machine.acquire();
	EXPECT(!machine.inside, "two threads are inside");
	machine.inside = true;
	note_domain(thread);
	begin = thread->time;
	for (int i = 0; i < machine.count; i++)
		machine.threads[i].passed++;
	thread->most_passed =
		thread->most_passed > thread->passed ? thread->most_passed : thread->passed;
	turns_spend(thread->hold);
	thread->held += thread->time - begin;
	machine.busy += thread->time - begin;
	if (begin >= machine.watched)
		thread->late += thread->time - begin;
	thread->turns++;
	machine.inside = false;
	EXPECT(machine.release());
}

static void live(void)
{
	struct thread *thread = self();

	while (thread->time < machine.end) {
		lock_once(thread);
		turns_spend(thread->think);
		if (thread->time >= thread->leaves && thread->time < thread->returns)
			turns_spend(thread->returns - thread->time);
	}
	thread->ended = true;
	pick();
}

static struct thread *add(uint64_t hold, uint64_t think)
{
	struct thread *thread = &machine.threads[machine.count++];

	/* With an id of its own, by which locks recognise their owner. */
	memset((void *)thread, 0, offsetof(struct thread, stack));
	*thread = (struct thread){.hold = hold, .think = think, .weight = 1024, .group = 0};
	thread->self.id = (uint32_t)machine.count;
	return thread;
}

static void clear_machine(void (*acquire)(void), bool (*release)(void))
{
	machine.count = 0;
	machine.busy = 0;
	machine.watched = 0;
	machine.woken = 0;
	machine.domain = -1;
	machine.since = machine.stay = machine.longest = 0;
	machine.limit = UINT64_MAX;
	machine.crossings = machine.overstays = 0;
	machine.acquire = acquire;
	machine.release = release;
}

/* Out of line: for the compiler, getcontext() may return twice. */
static __attribute__((noinline)) void make(struct thread *thread)
{
	getcontext(&thread->context);
	thread->context.uc_stack.ss_sp = thread->stack;
	thread->context.uc_stack.ss_size = STACK;
	makecontext(&thread->context, live, 0);
}

/* Runs until all threads are past @end. */
static void run_machine(uint64_t end)
{
	struct w_self *before = w_self();
	struct w_own own = w_own;

	machine.end = end;
	for (int i = 0; i < machine.count; i++) {
		struct thread *thread = &machine.threads[i];

		/* Staggered. */
		thread->time = thread->begin ? thread->begin : 1000 + (uint64_t)i * 137;
		thread->own = (struct w_own){.weight = thread->weight,
					     .group = thread->group + 1,
					     .random = 1 + (uint32_t)i};
		make(thread);
	}
	machine.running = 0;
	become(&machine.threads[0]);
	swapcontext(&machine.main, &machine.threads[0].context);
	w_self_or_null = before;
	w_own = own;
	machine.count = 0;
}

static inline double total(int first, int last)
{
	double sum = 0;

	for (int i = first; i < last; i++)
		sum += (double)machine.threads[i].held;
	return sum;
}

/* Jain's index: 1 if all have the same, 1/count if one has all. */
static inline double jain(int count)
{
	double sum = 0, squares = 0;

	for (int i = 0; i < count; i++) {
		double held = (double)machine.threads[i].held;

		sum += held;
		squares += held * held;
	}
	return sum * sum / (count * squares);
}

#endif
