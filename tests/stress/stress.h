/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Helpers of the stress clients of locks (main.c) and readers-writer locks (rw.c): threads,
 * protected data, and random numbers that repeat in each run. All sizes are counts; nothing depends
 * on the machine's speed.
 */
#ifndef POUNDLOCK_STRESS_H
#define POUNDLOCK_STRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "../expect.h"
#include "any.h"

/* The percentage of the full number of rounds; slow builds run fewer. */
#ifndef STRESS_PERCENT
#define STRESS_PERCENT 100
#endif

/* Whether the child of a multi-threaded process can start threads. */
#ifndef STRESS_FORK
#define STRESS_FORK 1
#endif

/* How waiters of the lock under test wait. */
extern enum wait way;

/*
 * Whether waiters only spin. Then few threads contend, since more threads than CPUs hardly
 * progress.
 */
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

/* The time for which the calling thread sleeps at an injected yield; 0, the default: it yields. */
extern _Thread_local struct timespec stress_nap;
void stress_give_way(void);

/* The number of contending threads. */
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

/* The time on @clock in @nanoseconds. */
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

/* Starts @count threads, passes each its index, and waits for them. */
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

/*
 * While the caller holds a lock: threads that wait until the deadline, and threads that wait
 * without one.
 */
struct straddle {
	struct crew straddling, patient;
	struct w_deadline deadline;
};

/* Starts them, @straddling with the deadline, and returns when it has passed. */
void straddle_begin(struct straddle *straddle, void (*straddling)(int number, void *deadline),
		    int patient_count, void (*patient)(int number, void *unused));
void straddle_end(struct straddle *straddle);

/* The numbers 0 to @count - 1 in random order. */
void random_order(int *order, int count, uint32_t *random);

/* The number of waits since pound_events_start(). */
uint64_t contended_so_far(void);

/* ---- The protected data ---- */

/*
 * Words on three cache lines that only change together: a thread that is not alone sees them
 * differ.
 */
struct cell {
	struct {
		_Alignas(64) uint64_t word;
	} lines[3];
};

/* Alone inside: increments. */
void cell_write(struct cell *cell, uint32_t random);
/* Inside, without a writer: returns the count. */
uint64_t cell_read(const struct cell *cell, uint32_t random);
void cell_expect(const struct cell *cell, uint64_t expected);

/* ---- Scenarios ---- */

struct scenario {
	const char *name; /* NULL: end of the list */
	void (*run)(void);
};

/* Runs the scenario named @only, or all if it is NULL. Returns main()'s result. */
int run_scenarios(const struct scenario *scenarios, const char *only);

/* ---- The scenarios of locks ---- */

/* A lock's memory, as any.h requires it. */
struct stress_lock {
	_Alignas(8) char bytes[ANY_LOCK_SIZE];
};

/* The lock under test. */
extern const struct any_ops *ops;

/* Checks that the lock is free: it can be taken at once, and only once. */
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
