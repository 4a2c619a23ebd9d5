/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clients of cfl_spin and cfl_mutex with any order. The includer defines LOCK, LOCK_HEADER and
 * MORE_CLIENTS, further entries.
 *
 * The functions of core/cfl/ that decide by the ledger's times are replaced: the explorer chooses
 * what they return. A newcomer may or may not overtake, and a shuffler may or may not bring forward
 * any waiter that it meets. So these clients have all executions of the lock, whatever the times,
 * and more, in fewer states: no thread reads or writes the times. Everything else is the lock's
 * own: the word, the thefts and their limit, the queue, the walks, and all that sleeps.
 */
#define LOCK_TRAITS "none.h"
#define LOCK_BOXED_BARE
#define ARRIVAL cfl.tail
#define CHECK_NOW() UINT64_C(0)
/* As in adapter.h, which comes later than the queue here. */
#define SHFL_MAX_BATCH 3

#include "check.h"

#define cfl_arrive cfl_arrive_by_time
#define cfl_may_overtake cfl_may_overtake_by_time
#include "cfl/arrival.h"
#undef cfl_arrive
#undef cfl_may_overtake

static inline bool any_choice(void)
{
	return CHECK_DO("choice", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0);
}

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
#define cfl_charge_since cfl_charge_since_by_time
#include "cfl/charge.h"
#undef cfl_begin_group
#undef cfl_charge_since

static inline void cfl_begin_group(struct cfl *lock, struct cfl_arrival arrival)
{
	(void)lock, (void)arrival;
}

static inline uint64_t cfl_charge_since(struct cfl *lock, uint64_t start)
{
	(void)start;
	/* relaxed: as in cfl_charge_to() */
	w_store_relaxed(&cfl_ledger(lock)->may_return, any_choice());
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

static void prepare_any(void);

#define COMPOSED .flags = CHECK_CLIENT_COMPOSED | CHECK_CLIENT_COMPLETE
/* These clients use only some of lock.c's functions. */
#pragma GCC diagnostic ignored "-Wunused-function"
#define CLIENTS                                                                                  \
	ENTRY("2x1/spin", lock_1_spin, 2, "contended shuffle", "2", prepare_any, finish,         \
	      .flags = CHECK_CLIENT_PROMISES),                                                   \
		ENTRY("2x1/park", lock_1_park, 2, "contended shuffle", "2", prepare_any, finish, \
		      .spurious = 1),                                                            \
		ENTRY("2x2/spin", lock_2_spin, 2, "contended shuffle steal", "4", prepare_any,   \
		      finish, .flags = CHECK_CLIENT_PROMISES),                                   \
		ENTRY("3x1/spin", lock_1_spin, 3, "contended shuffle look_back steal", "3",      \
		      prepare_any, finish),                                                      \
		ENTRY("composed/3x1/park", lock_1_park, 3,                                       \
		      "contended shuffle look_back steal park", "3", prepare_any, finish,        \
		      COMPOSED),                                                                 \
		ENTRY("trylock/3/spin", try_spin, 3, "steal", "1 2 3", prepare_any, finish),     \
		ENTRY("timed/3/yield", timed_yield, 3, "abandon", "2 3", prepare_any, finish),   \
		ENTRY("timed/two_of_3/yield", timed_both_yield, 3, "abandon", "1 2 3",           \
		      prepare_any, finish),                                                      \
		ENTRY("composed/timed/3/park", timed_park, 3, "abandon", "2 3", prepare_any,     \
		      finish, COMPOSED),                                                         \
		ENTRY("composed/timed/two_of_3/park", timed_both_park, 3, "abandon", "1 2 3",    \
		      prepare_any, finish, COMPOSED),                                            \
		MORE_CLIENTS

#include "lock.c"

static void prepare_any(void)
{
	struct cfl_ledger *ledger = &M->lock.cfl.ledger;

	prepare();
	/* The lock's other functions use these fields of the ledger for an order only. */
	check_hint(&ledger->may_return);
	check_hint(&ledger->yield_skips);
	check_hint(&ledger->yield_backoff);
	check_hint(&ledger->head);
	check_hint(&ledger->least_group);
	check_hint(&ledger->average[0]);
}
