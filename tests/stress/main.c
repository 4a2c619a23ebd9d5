/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * stress SPEC [SCENARIO]: runs one lock, chosen as in any.h, through all scenarios or one. Silent,
 * with status 0, on success; else one line on stderr describes the failure.
 */
#include "poundlock.h"
#include "stress.h"

const struct any_ops *ops;

static const struct scenario scenarios[] = {
	{"exclusion", scenario_exclusion}, {"trylock", scenario_trylock},
	{"nesting", scenario_nesting},     {"timeout", scenario_timeout},
	{"straddle", scenario_straddle},   {"destroy", scenario_destroy},
	{"threads", scenario_threads},     {"handoff", scenario_handoff},
	{"fork", scenario_fork},           {NULL, NULL},
};

/* A hostile policy of the program's own: a random order. */
static uint32_t any_answer(void)
{
	static _Thread_local uint32_t random = 1;

	return next_random(&random) % 4 ? random : random % 2 ? POUND_STAY : 0;
}

static uint32_t any_note(void *context, const void *lock)
{
	(void)context, (void)lock;
	return any_answer();
}

static uint32_t any_rank(void *context, uint32_t shuffler, uint32_t waiter)
{
	(void)context, (void)shuffler, (void)waiter;
	return any_answer();
}

int main(int count, char **arguments)
{
	static const struct pound_policy hostile = {.note = any_note, .rank = any_rank};
	char error[256];

	if (count != 2 && count != 3) {
		fprintf(stderr, "Usage: stress SPEC [SCENARIO]\n");
		return 2;
	}
	EXPECT(!pound_policy_register("own", &hostile));
	ops = any_find(arguments[1], error, sizeof(error));
	if (!ops) {
		fprintf(stderr, "stress: %s\n", error);
		return 2;
	}
	way = ops->wait;
	return run_scenarios(scenarios, arguments[2]);
}
