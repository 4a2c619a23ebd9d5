/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CFL's tally of the waiters: how many there are by group and domain, their averages, and the least
 * of these.
 */
#ifndef POUNDLOCK_CFL_TALLY_H
#define POUNDLOCK_CFL_TALLY_H

#include "cfl/ledger.h"

/* The waiters by group and domain: how many, and how far they are ahead of the group's average. */
struct cfl_tally {
	struct cfl_cell {
		int64_t ahead;
		uint32_t count;
	} cells[CFL_GROUPS][CFL_DOMAINS]; /* undefined for a group without waiters */
	uint64_t averages[CFL_GROUPS];    /* as they were when the first of the group was counted */
	uint32_t groups;                  /* groups with waiters, one bit each */
};

static inline void cfl_count(struct cfl *lock, struct cfl_tally *tally,
			     const struct shfl_node *node)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	struct cfl_cell *cell = &tally->cells[cfl_group(node)][cfl_domain(node)];

	if (!(tally->groups & 1u << cfl_group(node))) {
		tally->groups |= 1u << cfl_group(node);
		for (uint32_t domain = 0; domain < CFL_DOMAINS; domain++) {
			tally->cells[cfl_group(node)][domain].ahead = 0;
			tally->cells[cfl_group(node)][domain].count = 0;
		}
		/* relaxed: written by shufflers, and the role is ours */
		tally->averages[cfl_group(node)] =
			w_load_relaxed(&ledger->average[cfl_group(node)]);
	}
	cell->count++;
	cell->ahead += cfl_ahead(node->note, cfl_units(tally->averages[cfl_group(node)]));
}

static inline struct cfl_cell cfl_sum(const struct cfl_tally *tally, uint32_t group)
{
	struct cfl_cell sum = {0};

	for (uint32_t domain = 0; domain < CFL_DOMAINS; domain++) {
		sum.ahead += tally->cells[group][domain].ahead;
		sum.count += tally->cells[group][domain].count;
	}
	return sum;
}

/* Returns the group of @tally with the least time, and that time. @tally is not empty. */
static inline uint32_t cfl_least_group(struct cfl *lock, const struct cfl_tally *tally,
				       uint64_t *time)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint32_t least = CFL_GROUPS;
	uint64_t held;

	for (uint32_t group = 0; group < CFL_GROUPS; group++) {
		if (!(tally->groups & 1u << group))
			continue;
		/* relaxed: holders' times may be stale */
		held = w_load_relaxed(&ledger->held[group]);
		if (least < CFL_GROUPS && held >= *time)
			continue;
		least = group;
		*time = held;
	}
	return least;
}

/* Returns the domain of @cells with the lowest average. Some cell has waiters. */
static inline uint32_t cfl_least_domain(const struct cfl_cell *cells)
{
	uint32_t least = CFL_DOMAINS;

	for (uint32_t domain = 0; domain < CFL_DOMAINS; domain++)
		if (cells[domain].count &&
		    (least == CFL_DOMAINS || cells[domain].ahead / cells[domain].count <
						     cells[least].ahead / cells[least].count))
			least = domain;
	return least;
}

/* The mean of the waiters in @cell, rounded up to a unit, so that at least one is not above it. */
static inline uint64_t cfl_mean(uint64_t base, struct cfl_cell cell)
{
	int64_t mean = cell.ahead / (int64_t)cell.count + (cell.ahead % (int64_t)cell.count > 0);

	/* Intermediate results wrap as the nodes' units do. */
	return ((base >> CFL_UNIT) + (uint64_t)mean) << CFL_UNIT;
}

#endif
