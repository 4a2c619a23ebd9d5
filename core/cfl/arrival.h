/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A thread as it arrives at a lock under CFL, and whether it may overtake the waiters.
 */
#ifndef POUNDLOCK_CFL_ARRIVAL_H
#define POUNDLOCK_CFL_ARRIVAL_H

#include "cfl/ledger.h"

/* A thread as it arrives at the lock. */
struct cfl_arrival {
	uint32_t group, domain;
	uint64_t held;   /* its vLHT */
	uint64_t away;   /* time since a thread of its group was here */
	uint32_t thefts; /* so far */
};

/*
 * @held after an absence of @away, of an owner of @weight: it advances until it is not much below
 * @reference. Section 3.4.3.
 */
static inline uint64_t cfl_catch_up(uint64_t held, uint64_t away, uint64_t reference,
				    uint32_t weight)
{
	uint64_t behind = hold_virtual(CFL_BEHIND, weight);

	if (reference < behind || held >= reference - behind)
		return held;
	return reference - behind - held < away ? reference - behind : held + away;
}

static inline struct cfl_arrival cfl_arrive(struct cfl *lock, uint64_t now)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	struct w_account *account = w_account(lock);
	uint32_t group = w_group() % CFL_GROUPS, least;
	/* relaxed, all: times and places that may be stale; only the order depends on them */
	uint64_t average = w_load_relaxed(&ledger->average[group]);

	if (account->until)
		account->held = cfl_catch_up(account->held, hold_time(account->until, now), average,
					     w_weight());
	else
		account->held = average;
	struct cfl_arrival arrival = {
		.group = group,
		.domain = (uint32_t)w_domain() % CFL_DOMAINS,
		.held = account->held,
		.away = hold_time(w_load_relaxed(&ledger->seen[group]), now),
		.thefts = w_load_relaxed(&ledger->thefts),
	};
	w_store_relaxed(&ledger->seen[group], now);
	least = w_load_relaxed(&ledger->least_group);
	if (least != group &&
	    w_load_relaxed(&ledger->held[group]) < w_load_relaxed(&ledger->held[least]))
		w_store_relaxed(&ledger->least_group, group);
	return arrival;
}

/*
 * Returns whether a newcomer with vLHT @time, of @group and @domain, may overtake the waiters.
 * Section 3.3.
 */
static inline bool cfl_may_overtake(struct cfl *lock, uint32_t group, uint32_t domain,
				    uint64_t time)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	/* relaxed, all: as in cfl_arrive() */
	uint64_t head = w_load_relaxed(&ledger->head);
	uint32_t least = w_load_relaxed(&ledger->least_group),
		 turn = (uint32_t)(head >> 32) / CFL_DOMAINS % CFL_GROUPS, chosen;

	if (group != least &&
	    w_load_relaxed(&ledger->held[group]) >= w_load_relaxed(&ledger->held[least]))
		return false;
	if (group != turn)
		return w_load_relaxed(&ledger->held[group]) < w_load_relaxed(&ledger->held[turn]);
	chosen = w_load_relaxed(&ledger->domain);
	if (chosen & CFL_GRACE && domain != chosen % CFL_DOMAINS)
		return false;
	return cfl_ahead((uint32_t)head, cfl_units(time)) > 0 ||
	       time < (domain == chosen % CFL_DOMAINS ? w_load_relaxed(&ledger->average[group])
						      : w_load_relaxed(&ledger->domain_average));
}

#endif
