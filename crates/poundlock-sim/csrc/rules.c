/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Not instrumented: calls take no simulated time. */
#include "rules.h"

#include "../../../bench/workloads/section.h"
#include "../../../world/sizes.h"
#include "locks.h"

const struct sim_rules sim_rules = {
	.spin_nanoseconds = W_SPIN_NANOSECONDS,
	.yield_nanoseconds = W_YIELD_NANOSECONDS,
	.sharing_nanoseconds = W_SHARING_NANOSECONDS,
	.spin_parts = W_SPIN_PARTS,
	.spins_whole = W_SPINS_WHOLE,
	.groups = W_GROUPS,
	.how_spin = W_SPIN,
	.how_yield = W_YIELD,
	.how_ordered = W_ORDERED,
	.how_polite = W_POLITE,
	.next_pause = W_NEXT_PAUSE,
	.next_sched_yield = W_NEXT_SCHED_YIELD,
	.next_sleep = W_NEXT_SLEEP,
};

struct sim_how sim_how(uint32_t how)
{
	return (struct sim_how){
		.spins = w_how_spins(how),
		.returns = w_how_returns(how),
		.adapts = w_spin_adapts(how),
		.backs_off = w_spin_longer(how, 1) > 1,
		.history = w_spin_adapts(how) ? w_spin_kind(how) : 0,
		.parts = w_spin_parts(how),
	};
}

uint32_t sim_spinners_limit(uint32_t cpus)
{
	return w_spinners_limit(cpus);
}

uint32_t sim_spin_rounds(uint32_t how, uint32_t cpus)
{
	return w_spin_rounds(how, w_spinners_limit(cpus));
}

uint32_t sim_first_pauses(uint32_t how, uint64_t pace, uint32_t pauses)
{
	return streak_first_pauses(how, pace, pauses);
}

uint32_t sim_spin_longer(uint32_t how, uint32_t pauses)
{
	return w_spin_longer(how, pauses);
}

uint32_t sim_spin_budget(struct w_spin_history *history)
{
	return w_spin_budget(history);
}

void sim_spin_learn(struct w_spin_history *history, bool failed)
{
	w_spin_learn(history, failed);
}

uint32_t sim_spin_next(uint32_t how, uint32_t turns)
{
	return w_spin_next(how, turns);
}

#define LAYOUT(type, member)                                                                      \
	{                                                                                         \
		.name = #type, .size = sizeof(struct type), .last = offsetof(struct type, member) \
	}

const struct sim_layout sim_layouts[] = {
	LAYOUT(sim_setting, names),
	LAYOUT(sim_ops, unlock_shared),
	LAYOUT(sim_lock, settings),
	LAYOUT(sim_rules, next_sleep),
	LAYOUT(sim_how, history),
	LAYOUT(w_spin_history, spins),
	LAYOUT(section_settings, writes),
	LAYOUT(section_operation, to),
	{.name = NULL},
};
