/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The choice of CFL's shuffler: which waiters are next. Section 3.2.2.
 */
#ifndef POUNDLOCK_CFL_CHOOSE_H
#define POUNDLOCK_CFL_CHOOSE_H

#include "cfl/tally.h"

/* The choice: which waiters are next. */
struct cfl_target {
	uint32_t where; /* domain and group */
	uint32_t most;  /* the highest vLHT */
};

/*
 * Returns the domain to choose. Under grace_period, that is the last one while its grace period
 * lasts and it has waiters, and CFL_GRACE is set. Section 3.4.5.
 */
static inline uint32_t cfl_choose_domain(struct cfl *lock, const struct cfl_cell *cells,
					 struct cfl_policy policy)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	/* relaxed, all: written by the shuffler */
	uint32_t last = w_load_relaxed(&ledger->domain) % CFL_DOMAINS;
	uint64_t now;

	if (!policy.grace_period)
		return cfl_least_domain(cells);
	now = w_now();
	if (now >= w_load_relaxed(&ledger->grace_until) || !cells[last].count) {
		last = cfl_least_domain(cells);
		w_store_relaxed(&ledger->grace_until, now + policy.grace_period * UINT64_C(1000));
	}
	return last | CFL_GRACE;
}

/* As the shuffler, publishes the averages of @tally to newcomers. */
static inline void cfl_publish_averages(struct cfl *lock, const struct cfl_tally *tally)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	for (uint32_t group = 0; group < CFL_GROUPS; group++)
		if (tally->present & 1u << group)
			/* relaxed: they may be read late */
			w_store_relaxed(&ledger->average[group],
					cfl_mean(tally->averages[group], tally->groups[group]));
}

/* As the shuffler, chooses by @tally, which covers all waiters, and publishes the choice. */
static inline struct cfl_target cfl_choose(struct cfl *lock, const struct cfl_tally *tally,
					   struct cfl_policy policy)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint32_t group = tally->least, choice = cfl_choose_domain(lock, tally->domains, policy),
		 domain = choice % CFL_DOMAINS;
	struct cfl_cell cell = tally->domains[domain];
	uint64_t base = tally->averages[group];

	cfl_publish_averages(lock, tally);
	/* relaxed, all: newcomers and holders may read them late */
	w_store_relaxed(&ledger->domain_average, cfl_mean(base, cell));
	if (tally->time > w_load_relaxed(&ledger->group_time))
		w_store_relaxed(&ledger->group_time, tally->time);
	w_store_relaxed(&ledger->least_group, group);
	w_store_relaxed(&ledger->group, group);
	w_store_relaxed(&ledger->domain, choice);
	/*
	 * Waiters in a grace period soon exceed the average of all; some do not exceed their
	 * domain's.
	 */
	return (struct cfl_target){
		.where = group * CFL_DOMAINS + domain,
		.most = cfl_units(
			cfl_mean(base, choice & CFL_GRACE ? cell : tally->groups[group]))};
}

/* Returns the best choice by @tally, which covers those behind the head. At least one meets it. */
static inline struct cfl_target cfl_choose_fallback(struct cfl *lock, const struct cfl_tally *tally)
{
	/* relaxed: written by the shuffler */
	uint32_t group = tally->least, chosen = w_load_relaxed(&cfl_ledger(lock)->domain);
	const struct cfl_cell *cells = tally->domains;
	bool stays = chosen & CFL_GRACE && cells[chosen % CFL_DOMAINS].count;
	uint32_t domain = stays ? chosen % CFL_DOMAINS : cfl_least_domain(cells);

	return (struct cfl_target){.where = group * CFL_DOMAINS + domain,
				   .most = cfl_units(
					   cfl_mean(tally->averages[group], cells[domain]))};
}

static inline uint32_t cfl_rank(const void *context, const struct shfl_node *shuffler,
				const struct shfl_node *waiter)
{
	const struct cfl_target *target = context;

	(void)shuffler;
	return waiter->where == target->where && cfl_ahead(waiter->note, target->most) <= 0
		       ? 0
		       : POLICY_STAY;
}

#endif
