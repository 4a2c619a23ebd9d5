/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CFL's tally of the waiters: how many there are by group and domain, their averages, and the least
 * of these. Each waiter keeps it on its stack, which is small in the kernel.
 */
#ifndef POUNDLOCK_CFL_TALLY_H
#define POUNDLOCK_CFL_TALLY_H

#include "cfl/ledger.h"

/* Some waiters: how many, and how far they are ahead of their group's average. */
struct cfl_cell {
	int64_t ahead;
	uint32_t count;
};

/*
 * The waiters by group, and those of the least group by domain. A group's time is read once, as the
 * first of its waiters is counted. So a group that is not the least will never be, and the domains
 * cover all waiters of the least.
 */
struct cfl_tally {
	struct cfl_cell groups[CFL_GROUPS]; /* undefined for a group without waiters */
	struct cfl_cell domains[CFL_DOMAINS];
	uint64_t averages[CFL_GROUPS]; /* as they were when the first of the group was counted */
	uint64_t time;                 /* of the least group */
	uint32_t least;                /* the group with the least time */
	uint32_t present;              /* groups with waiters, one bit each */
};

static inline void cfl_add(struct cfl_cell *cell, int64_t ahead)
{
	cell->count++;
	cell->ahead += ahead;
}

/* Counts @group, which has not been seen yet. */
static inline void cfl_count_group(struct cfl *lock, struct cfl_tally *tally, uint32_t group)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	/* relaxed: holders' times may be stale */
	uint64_t time = w_load_relaxed(&ledger->held[group]);

	if (!tally->present || time < tally->time ||
	    (time == tally->time && group < tally->least)) {
		tally->least = group;
		tally->time = time;
		for (uint32_t domain = 0; domain < CFL_DOMAINS; domain++)
			tally->domains[domain] = (struct cfl_cell){0};
	}
	tally->present |= 1u << group;
	tally->groups[group] = (struct cfl_cell){0};
	/* relaxed: written by shufflers, and the role is ours */
	tally->averages[group] = w_load_relaxed(&ledger->average[group]);
}

static inline void cfl_count(struct cfl *lock, struct cfl_tally *tally,
			     const struct shfl_node *node)
{
	uint32_t group = cfl_group(node);
	int64_t ahead;

	if (!(tally->present & 1u << group))
		cfl_count_group(lock, tally, group);
	ahead = cfl_ahead(node->note, cfl_units(tally->averages[group]));
	cfl_add(&tally->groups[group], ahead);
	if (group == tally->least)
		cfl_add(&tally->domains[cfl_domain(node)], ahead);
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
