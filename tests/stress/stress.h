/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the scenarios of the stress clients share, of locks (main.c) and of readers-writer locks (rw.c): threads, what a
 * lock protects, and random numbers that are the same in each run. All sizes are counts; nothing here depends on how
 * fast the machine is.
 */
#ifndef POUNDLOCK_STRESS_H
#define POUNDLOCK_STRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "../expect.h"
#include "any.h"

/* Per cent of the full number of rounds; builds whose every operation is slow make fewer. */
#ifndef STRESS_PERCENT
#define STRESS_PERCENT 100
#endif

/* Whether the platform lets the child of a process with threads start threads of its own. */
#ifndef STRESS_FORK
#define STRESS_FORK 1
#endif

/* How the waiters of the lock under test wait. */
extern enum wait way;

/* Whether waiters only spin: then as few threads as make a test, since more of them than CPUs hardly move. */
static inline int only_spins(void)
{
	return way == WAIT_SPIN;
}

static inline int rounds(int full)
{
	int scaled = full * STRESS_PERCENT / 100;

	scaled = only_spins() ? scaled / 8 : scaled;
	return scaled > 2 ? scaled : 2;
}

#define MAX_THREADS 128

/* For how long the calling thread sleeps where stress/world has it give the CPU up; 0, as it begins: it yields there. */
extern _Thread_local struct timespec stress_nap;
void stress_give_way(void);

/* How many threads contend. */
static inline int contenders(void)
{
	return only_spins() ? 2 : 4;
}

static inline uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Now and @nanoseconds on @clock. */
static inline struct w_deadline after(clockid_t clock, uint64_t nanoseconds)
{
	struct w_deadline deadline = {.clock = clock};

	clock_gettime(clock, &deadline.at);
	nanoseconds += (uint64_t)deadline.at.tv_nsec;
	deadline.at.tv_sec += (time_t)(nanoseconds / 1000000000);
	deadline.at.tv_nsec = (long)(nanoseconds % 1000000000);
	return deadline;
}

#define HOUR UINT64_C(3600000000000)

/* Starts @count threads that each get their number, waits for them. */
struct crew {
	pthread_t threads[MAX_THREADS];
	struct crew_member {
		void (*run)(int number, void *shared);
		int number;
		void *shared;
	} members[MAX_THREADS];
	int count;
};

void crew_start(struct crew *crew, int count, void (*run)(int number, void *shared), void *shared);
void crew_join(struct crew *crew);

static inline void crew_run(int count, void (*run)(int number, void *shared), void *shared)
{
	struct crew crew;

	crew_start(&crew, count, run, shared);
	crew_join(&crew);
}

/* While the caller holds a lock: threads that wait until the deadline, and others without one. */
struct straddle {
	struct crew straddling, patient;
	struct w_deadline deadline;
};

/* Starts them, @straddling with the deadline, and returns when it has passed. */
void straddle_begin(struct straddle *straddle, void (*straddling)(int number, void *deadline), int patient_count,
		    void (*patient)(int number, void *unused));
void straddle_end(struct straddle *straddle);

/* The numbers from 0 to @count - 1 in any order. */
void random_order(int *order, int count, uint32_t *random);

/* How often a thread had to wait since pound_events_start(). */
uint64_t contended_so_far(void);

/* ---- What a lock protects ---- */

/* Words on three cache lines that only ever change together: who is not alone inside finds, or leaves, them different. */
struct cell {
	struct {
		_Alignas(64) uint64_t word;
	} lines[3];
};

/* Alone inside: counts up. */
void cell_write(struct cell *cell, uint32_t random);
/* Inside beside nobody who writes: the count. */
uint64_t cell_read(const struct cell *cell, uint32_t random);
void cell_expect(const struct cell *cell, uint64_t expected);

/* ---- Scenarios ---- */

struct scenario {
	const char *name; /* NULL: behind the last */
	void (*run)(void);
};

/* Runs those of @scenarios whose name is @only, or all if that is NULL. What main() is to return. */
int run_scenarios(const struct scenario *scenarios, const char *only);

/* ---- The scenarios of locks ---- */

/* A lock's memory, as any.h wants it. */
struct stress_lock {
	_Alignas(8) char bytes[ANY_LOCK_SIZE];
};

/* The lock under test. */
extern const struct any_ops *ops;

/* The lock is free: it can be taken at once, and only once. */
void expect_free(struct stress_lock *lock);

/* contenders() threads take @lock @turns times each; afterwards it is free. */
void contend(struct stress_lock *lock, int turns);

void scenario_exclusion(void);
void scenario_trylock(void);
void scenario_nesting(void);
void scenario_timeout(void);
void scenario_straddle(void);
void scenario_destroy(void);
void scenario_threads(void);
void scenario_handoff(void);
void scenario_fork(void);

#endif
