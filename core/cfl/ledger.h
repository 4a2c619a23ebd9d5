/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * CFL's ledger: the times of threads and groups that a lock keeps, and what its shuffler has
 * chosen. cfl/order.h describes the whole.
 */
#ifndef POUNDLOCK_CFL_LEDGER_H
#define POUNDLOCK_CFL_LEDGER_H

#include "part/hold.h"
#include "part/shuffle.h"

/* Groups and domains are taken modulo these: those that share a place count as one. */
#define CFL_GROUPS 8
#define CFL_DOMAINS 8

/* Flag in `domain`: it is in its grace period, and newcomers of no other domain are let in. */
#define CFL_GRACE CFL_DOMAINS

/* Flag in a node's `where`: it was moved forward over others. */
#define CFL_MOVED (CFL_GROUPS * CFL_DOMAINS)

/*
 * How far behind the average a returning thread may be: half of CFS's sched_latency. Section 3.4.3.
 */
#define CFL_BEHIND 3000000

/* Longest idling of a thread over its share: CFS's sched_latency, for one CPU. Section 3.4.4. */
#define CFL_IDLE 6000000

/* log2 of the nodes' unit of time, 256 ns: times less than 9 minutes apart compare correctly. */
#define CFL_UNIT 8

/* Rounding tolerance: the average of notes is at most this much too low. */
#define CFL_ROUNDING (4u << CFL_UNIT)

/*
 * The times of threads and groups that arrive, wait and leave. Only the order depends on them, and
 * the bound on bypass depends on `thefts` alone. So locks may share a ledger, and then count as one
 * lock to it; concurrent updates may be lost.
 */
struct cfl_ledger {
	W_ATOMIC(uint32_t) thefts; /* so far */
	/* whether the last holder may overtake the head; written by the holder */
	W_ATOMIC(uint32_t) may_return;
	/* interval and countdown of the head's back-off from yielding */
	W_ATOMIC(uint32_t) yield_backoff, yield_skips;
	/* Written by the shuffler, read by newcomers. */
	/* the head's note and where; written by the thread that makes it the head */
	W_ATOMIC(uint64_t) head;
	W_ATOMIC(uint32_t) group;  /* chosen group */
	W_ATOMIC(uint32_t) domain; /* its chosen domain, and CFL_GRACE */
	/* group with the least time of those that arrived lately; approximate */
	W_ATOMIC(uint32_t) least_group;
	W_ATOMIC(uint64_t) domain_average; /* average of the chosen domain */
	/* time of the group with the least time; never decreases */
	W_ATOMIC(uint64_t) group_time;
	W_ATOMIC(uint64_t) grace_until;         /* end of the chosen domain's grace period */
	W_ATOMIC(uint64_t) average[CFL_GROUPS]; /* average vLHT of each group's waiters */
	/* Written by the holder. */
	W_ATOMIC(uint64_t) held[CFL_GROUPS]; /* virtual time of each group */
	/* when a thread of each group last arrived or was charged, approximately; 0: never */
	W_ATOMIC(uint64_t) seen[CFL_GROUPS];
};

/* A lock with this order defines struct cfl and where its ledger is. */
struct cfl;
static inline struct cfl_ledger *cfl_ledger(struct cfl *lock);

/* Its note is its vLHT in units; `where` is its domain, its group and CFL_MOVED. */
struct cfl_node {
	struct shfl_node node; /* first, so that the queue's node is this one */
	W_ATOMIC(struct cfl_node *) before;
};

struct cfl_policy {
	enum wait wait;
	bool sleeps;               /* whether the head may sleep */
	uint32_t bypass;           /* most times that a waiter is bypassed */
	uint32_t grace_period;     /* how long a domain remains chosen, in microseconds */
	uint32_t strict_guarantee; /* whether a thread over its share idles */
};

#define CFL_SETTINGS(S, name)                       \
	S(name, bypass, SHFL_MAX_BATCH, 1, 1000000) \
	S(name, grace_period, 0, 0, 1000000000)     \
	S(name, strict_guarantee, 0, 0, 1, "off on")

#define CFL_POLICY(policy, head_sleeps)                                             \
	((struct cfl_policy){.wait = (policy).wait,                                 \
			     .sleeps = (head_sleeps) && (policy).wait == WAIT_PARK, \
			     .bypass = (policy).bypass,                             \
			     .grace_period = (policy).grace_period,                 \
			     .strict_guarantee = (policy).strict_guarantee})

static inline struct cfl_node *cfl_node(struct shfl_node *node)
{
	return (struct cfl_node *)node;
}

/* How many units @a is ahead of @b. */
static inline int32_t cfl_ahead(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static inline uint32_t cfl_units(uint64_t time)
{
	return (uint32_t)(time >> CFL_UNIT);
}

static inline uint32_t cfl_group(const struct shfl_node *node)
{
	return node->where / CFL_DOMAINS % CFL_GROUPS;
}

static inline uint32_t cfl_domain(const struct shfl_node *node)
{
	return node->where % CFL_DOMAINS;
}

/* ---- Yielding to the last holder ---- */

/* As the head, returns whether it skips yielding this time, because it failed before. */
static inline bool cfl_skips_yield(struct cfl_ledger *ledger)
{
	/* relaxed, both: hints; they may be wrong */
	uint32_t skips = w_load_relaxed(&ledger->yield_skips);

	if (skips)
		w_store_relaxed(&ledger->yield_skips, skips - 1);
	return skips;
}

/* As the head that has yielded: doubles the back-off unless the last holder @came. */
static inline void cfl_record_yield(struct cfl_ledger *ledger, bool came)
{
	uint32_t backoff;

	/* relaxed, all: as in cfl_skips_yield() */
	if (came) {
		w_store_relaxed(&ledger->yield_backoff, 0);
		return;
	}
	backoff = w_load_relaxed(&ledger->yield_backoff);
	backoff = backoff < 64 ? 2 * backoff + 1 : backoff;
	w_store_relaxed(&ledger->yield_backoff, backoff);
	w_store_relaxed(&ledger->yield_skips, backoff);
}

#endif
