/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rules of waiting of world/spin.h and world/streak.h, and the layouts of shared types, as the
 * crate's abi.rs declares them: change both together.
 */
#ifndef POUNDLOCK_SIM_RULES_H
#define POUNDLOCK_SIM_RULES_H

#include <stddef.h>

#include "../../../world/streak.h"

/* Constants, so that the crate has no copies. */
struct sim_rules {
	uint32_t spin_nanoseconds, yield_nanoseconds;
	uint32_t sharing_nanoseconds;
	uint32_t spin_parts, spins_whole, groups;
	uint32_t how_spin, how_yield, how_ordered, how_polite;
	uint32_t next_pause, next_sched_yield, next_sleep;
};
extern const struct sim_rules sim_rules;

/* The properties of an enum w_how. */
struct sim_how {
	bool spins, returns, adapts, backs_off;
	uint32_t history, parts;
};
struct sim_how sim_how(uint32_t how);

uint32_t sim_spinners_limit(uint32_t cpus);
uint32_t sim_spin_rounds(uint32_t how, uint32_t cpus);
uint32_t sim_first_pauses(uint32_t how, uint64_t pace, uint32_t pauses);
uint32_t sim_spin_longer(uint32_t how, uint32_t pauses);
uint32_t sim_spin_budget(struct w_spin_history *history);
void sim_spin_learn(struct w_spin_history *history, bool failed);
uint32_t sim_spin_next(uint32_t how, uint32_t turns);

/* Of each type that the crate mirrors: its size, and the offset of its last member. */
struct sim_layout {
	const char *name; /* NULL: the end */
	size_t size, last;
};
extern const struct sim_layout sim_layouts[];

#endif
