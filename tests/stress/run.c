/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>

#include "../events.h"
#include "poundlock.h"
#include "stress.h"

enum wait way;

/* ---- Yields injected by stress/world ---- */

_Thread_local struct timespec stress_nap;

void stress_give_way(void)
{
	if (stress_nap.tv_nsec)
		nanosleep(&stress_nap, NULL);
	else
		sched_yield();
}

/* ---- Threads ---- */

static void *member_main(void *argument)
{
	struct crew_member *member = argument;

	member->run(member->number, member->shared);
	return NULL;
}

void crew_start(struct crew *crew, int count, void (*run)(int number, void *shared), void *shared)
{
	crew->count = count;
	for (int i = 0; i < count; i++) {
		crew->members[i] = (struct crew_member){.run = run, .number = i, .shared = shared};
		EXPECT(!pthread_create(&crew->threads[i], NULL, member_main, &crew->members[i]));
	}
}

void crew_join(struct crew *crew)
{
	for (int i = 0; i < crew->count; i++)
		EXPECT(!pthread_join(crew->threads[i], NULL));
}

void straddle_begin(struct straddle *straddle, void (*straddling)(int number, void *deadline),
		    int patient_count, void (*patient)(int number, void *unused))
{
	crew_start(&straddle->straddling, contenders(), straddling, &straddle->deadline);
	crew_start(&straddle->patient, patient_count, patient, NULL);
	while (!w_expired(&straddle->deadline))
		sched_yield();
}

void straddle_end(struct straddle *straddle)
{
	crew_join(&straddle->straddling);
	crew_join(&straddle->patient);
}

void random_order(int *order, int count, uint32_t *random)
{
	for (int i = 0; i < count; i++)
		order[i] = i;
	for (int i = count - 1; i > 0; i--) {
		int j = (int)(next_random(random) % (uint32_t)(i + 1)), swapped = order[i];

		order[i] = order[j];
		order[j] = swapped;
	}
}

uint64_t contended_so_far(void)
{
	return count_of("contended");
}

/* ---- The protected data ---- */

void cell_write(struct cell *cell, uint32_t random)
{
	uint64_t before = cell->lines[0].word;

	for (int i = 0; i < 3; i++) {
		EXPECT(cell->lines[i].word == before, "who wrote was not alone inside");
		cell->lines[i].word = before + 1;
		if (random % 64 == (uint32_t)i)
			sched_yield();
	}
	for (int i = 0; i < 3; i++)
		EXPECT(cell->lines[i].word == before + 1, "who wrote was not alone inside");
}

uint64_t cell_read(const struct cell *cell, uint32_t random)
{
	uint64_t count = cell->lines[0].word;

	for (int i = 1; i < 3; i++) {
		if (random % 64 == (uint32_t)i)
			sched_yield();
		EXPECT(cell->lines[i].word == count, "who read was beside one who wrote");
	}
	return count;
}

void cell_expect(const struct cell *cell, uint64_t expected)
{
	EXPECT(cell_read(cell, 0) == expected, "%llu instead of %llu turns",
	       (unsigned long long)cell->lines[0].word, (unsigned long long)expected);
}

/* ---- Scenarios ---- */

int run_scenarios(const struct scenario *scenarios, const char *only)
{
	int ran = 0;

	for (; scenarios->name; scenarios++) {
		if (only && strcmp(only, scenarios->name))
			continue;
		expect_part = scenarios->name;
		limit();
		scenarios->run();
		ran++;
	}
	if (!ran)
		fprintf(stderr, "stress: there is no scenario '%s'\n", only);
	return ran ? 0 : 2;
}
