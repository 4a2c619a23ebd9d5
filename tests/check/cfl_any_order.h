/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * CFL's order in clients with any order.
 *
 * The functions of core/cfl/ that decide by the ledger's times are replaced: the explorer chooses
 * what they return. A newcomer may or may not overtake, and a shuffler may or may not bring forward
 * any waiter that it meets. So these clients have all executions of the lock, whatever the times,
 * and more, in fewer states: no thread reads or writes the times. Everything else is the lock's
 * own: the word, the thefts and their limit, the queue, the walks, and all that sleeps.
 */
#ifndef POUNDLOCK_CHECK_CFL_ANY_ORDER_H
#define POUNDLOCK_CHECK_CFL_ANY_ORDER_H

#include "choice.h"

#define cfl_arrive cfl_arrive_by_time
#define cfl_may_overtake cfl_may_overtake_by_time
#include "cfl/arrival.h"
#undef cfl_arrive
#undef cfl_may_overtake

static inline struct cfl_arrival cfl_arrive(struct cfl *lock, uint64_t now)
{
	(void)now;
	/* relaxed: as in the replaced function */
	return (struct cfl_arrival){.thefts = w_load_relaxed(&cfl_ledger(lock)->thefts)};
}

static inline bool cfl_may_overtake(struct cfl *lock, uint32_t group, uint32_t domain,
				    uint64_t time)
{
	(void)lock, (void)group, (void)domain, (void)time;
	return any_choice();
}

#define cfl_begin_group cfl_begin_group_by_time
#define cfl_charge_to cfl_charge_to_by_time
#define cfl_charge_since cfl_charge_since_by_time
#include "cfl/charge.h"
#undef cfl_begin_group
#undef cfl_charge_to
#undef cfl_charge_since

static inline void cfl_begin_group(struct cfl *lock, struct cfl_arrival arrival)
{
	(void)lock, (void)arrival;
}

static inline void cfl_charge_to(struct cfl *lock, struct cfl_payer payer, uint64_t time,
				 uint64_t now)
{
	(void)payer, (void)time, (void)now;
	/* relaxed: as in the replaced function */
	w_store_relaxed(&cfl_ledger(lock)->may_return, any_choice());
}

static inline uint64_t cfl_charge_since(struct cfl *lock, uint64_t start)
{
	cfl_charge_to(lock, (struct cfl_payer){0}, 0, start);
	return 0;
}

#define cfl_count cfl_count_by_time
#include "cfl/tally.h"
#undef cfl_count

/* Reads the node's fields, as the replaced functions do: a race is still found. */
static inline void any_read(const struct shfl_node *node)
{
	check_assert(!node->note && !cfl_group(node));
}

static inline void cfl_count(struct cfl *lock, struct cfl_tally *tally,
			     const struct shfl_node *node)
{
	(void)lock;
	any_read(node);
	tally->present = 1;
}

#define cfl_choose cfl_choose_by_time
#define cfl_choose_fallback cfl_choose_fallback_by_time
#define cfl_rank cfl_rank_by_time
#include "cfl/choose.h"
#undef cfl_choose
#undef cfl_choose_fallback
#undef cfl_rank

static inline struct cfl_target cfl_choose(struct cfl *lock, const struct cfl_tally *tally,
					   struct cfl_policy policy)
{
	(void)lock, (void)tally, (void)policy;
	/* The last choice was 0: the same, or another. */
	return (struct cfl_target){.where = any_choice()};
}

static inline struct cfl_target cfl_choose_fallback(struct cfl *lock, const struct cfl_tally *tally)
{
	(void)lock, (void)tally;
	return (struct cfl_target){0};
}

static inline uint32_t cfl_rank(const void *context, const struct shfl_node *shuffler,
				const struct shfl_node *waiter)
{
	(void)context, (void)shuffler;
	any_read(waiter);
	return any_choice() ? POLICY_STAY : 0;
}

/* The functions that are not replaced use these fields of @ledger for an order only. */
static inline void any_hints(struct cfl_ledger *ledger)
{
	check_hint(&ledger->may_return);
	check_hint(&ledger->yield_skips);
	check_hint(&ledger->yield_backoff);
	check_hint(&ledger->head);
	check_hint(&ledger->least_group);
	check_hint(&ledger->average[0]);
}

#endif
