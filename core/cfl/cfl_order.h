/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The order of CFL: hold times by thread and by group, who may overtake whom because of them, and
 * the shuffling of the queue by them. It is independent of the lock's word: cfl.h has the word of
 * locks that have room for it.
 *
 * From: Park and Eom, "Locks as a resource: fairly scheduling lock occupation with CFL", PPoPP'24,
 * section 3.
 *
 * What the paper leaves open, and departures from it:
 *  - Virtual lock hold time (vLHT) is kept per thread and lock, in the thread's account
 *    (w_account). The paper shares one variable among all locks, so a thread that holds one for
 *    long is kept from the others.
 *  - The start of a hold is stored in the lock and written by its holder (`start`): nested locks
 *    would overwrite a variable of the thread.
 *  - A hold is charged if a thread waits when it ends, to the thread that ends it. Nobody is hurt
 *    by other holds. They cost one reading of the clock instead of two, and an uncontended thread
 *    accumulates no debt.
 *  - The reverse walk (section 3.2.2) pins each node before it reads it (`before`, below). The
 *    walker frees a node that has left in the meantime, and nobody waits for the walker.
 *  - The averages cover all waiters, and are computed before anybody is moved by them, not after.
 *    Only the moving resumes where the previous shuffler stopped.
 *  - If no waiter meets all criteria, the head places one: of the group with the least time behind
 *    it, in that group's domain with the lowest average, and at or below that average.
 *  - A newcomer starts at its group's average, as in section 3.4.3. "Much lower" is defined as
 *    follows. A thread's vLHT advances in real time while it is away from the lock, until it is no
 *    more than CFL_BEHIND behind the average. Up to that it is owed what others had in the
 *    meantime: to return, to wake another thread and to be preempted take time, which must not cost
 *    it its share.
 *  - A group's time is the sum of its holds, kept in the lock, and advances likewise. The sum over
 *    the current waiters would measure the number of a group's threads, not its holds.
 *  - Bypasses are counted against `bypass`: moves per node (shuffle.h), and thefts since the last
 *    head entered the queue that was not moved forward. A head that was would allow more overtaking
 *    of the waiters that it overtook.
 *  - If all waiters sleep, none can shuffle: a head that slept does it once it has the lock.
 *  - Under grace_period, the waiters of the chosen domain are compared with its own average: they
 *    soon exceed the average of all.
 *  - A newcomer that has had less than the head may overtake it as well: the averages are old when
 *    no waiter is awake to compute them.
 *  - Nobody overtakes a group that wants the lock and has had less (`least_group`), which may not
 *    be the head's.
 *  - A head briefly yields to the last holder if that is still owed more, and backs off if it does
 *    not come back.
 *  - A newcomer of another domain than the chosen one may steal the lock if it is below that
 *    domain's average: its own domain would be the chosen one if it waited.
 *
 * A node's `before`: the node before it in the shuffled part of the queue.
 *
 *   NULL ──shuffler, placing it──▶ n ──walker──▶ n|1 pinned ──walker──▶ n
 *                                  │                │
 *                                  └──n, leaving────┴──▶ NULL
 *                                     (from n: n frees its node; from n|1: the walker does)
 */
#ifndef POUNDLOCK_CFL_ORDER_H
#define POUNDLOCK_CFL_ORDER_H

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

#define CFL_SETTINGS(S, name)                          \
	S(name, bypass, SHFL_MAX_BATCH, 1, 1000000, 4) \
	S(name, grace_period, 0, 0, 1000000000, 0)     \
	S(name, strict_guarantee, 0, 0, 1, 0, "off on")

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

/* ---- Arrival ---- */

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
static inline uint64_t cfl_catch_up(uint64_t held, uint64_t away, uint64_t reference, uint32_t weight)
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
		account->held = cfl_catch_up(account->held, hold_time(account->until, now), average, w_weight());
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
	if (least != group && w_load_relaxed(&ledger->held[group]) < w_load_relaxed(&ledger->held[least]))
		w_store_relaxed(&ledger->least_group, group);
	return arrival;
}

/*
 * Returns whether a newcomer with vLHT @time, of @group and @domain, may overtake the waiters.
 * Section 3.3.
 */
static inline bool cfl_may_overtake(struct cfl *lock, uint32_t group, uint32_t domain, uint64_t time)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	/* relaxed, all: as in cfl_arrive() */
	uint64_t head = w_load_relaxed(&ledger->head);
	uint32_t least = w_load_relaxed(&ledger->least_group), turn = (uint32_t)(head >> 32) / CFL_DOMAINS % CFL_GROUPS,
		 chosen;

	if (group != least && w_load_relaxed(&ledger->held[group]) >= w_load_relaxed(&ledger->held[least]))
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

/* ---- The price of a hold ---- */

/* As the new holder, after having waited or stolen the lock, advances the group's time. */
static inline void cfl_begin_group(struct cfl *lock, struct cfl_arrival arrival)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	W_ATOMIC(uint64_t) *held = &ledger->held[arrival.group];

	/* relaxed, all: only holders write it; the reference may be stale */
	w_store_relaxed(held, cfl_catch_up(w_load_relaxed(held), arrival.away, w_load_relaxed(&ledger->group_time),
					   w_group_weight(w_group())));
}

/*
 * The thread that held the lock: its group and that group's weight, its domain, and its vLHT
 * including that hold.
 */
struct cfl_payer {
	uint32_t group, weight, domain;
	uint64_t held;
};

/*
 * Charges @payer's group for a hold of @time that ended at @now. Called by the holder, or by the
 * next head if the release cannot.
 */
static inline void cfl_charge_to(struct cfl *lock, struct cfl_payer payer, uint64_t time, uint64_t now)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint32_t group = payer.group % CFL_GROUPS;
	/* relaxed, all: only the charging thread writes them */
	uint64_t held = w_load_relaxed(&ledger->held[group]) + hold_virtual(time, payer.weight);

	w_store_relaxed(&ledger->held[group], held);
	w_store_relaxed(&ledger->seen[group], now);
	w_store_relaxed(&ledger->may_return, cfl_may_overtake(lock, group, payer.domain % CFL_DOMAINS, payer.held));
}

/*
 * As the holder, before the release, charges the hold, which began at @start. Returns what it cost
 * the thread.
 */
static inline uint64_t cfl_charge_since(struct cfl *lock, uint64_t start)
{
	struct w_account *account = w_account(lock);
	uint64_t before = account->held;
	uint32_t group = w_group();
	uint64_t now = w_now(), time = hold_time(start, now);

	hold_charge(account, time);
	account->until = now;
	cfl_charge_to(lock,
		      (struct cfl_payer){.group = group,
					 .weight = w_group_weight(group),
					 .domain = (uint32_t)w_domain(),
					 .held = account->held},
		      time, now);
	return account->held - before;
}

/*
 * As the holder under strict_guarantee, while nobody waits: moves the group's average towards the
 * vLHT that the recent holders will have after their next hold, because newcomers are compared with
 * it. By their current vLHT, a thread whose holds are as long as theirs would be above the average
 * after every hold, and all threads would idle at the same time.
 */
static inline void cfl_track_average(struct cfl *lock, uint64_t cost)
{
	W_ATOMIC(uint64_t) *average = &cfl_ledger(lock)->average[w_group() % CFL_GROUPS];
	/* relaxed, both: as in cfl_arrive() */
	uint64_t seen = w_load_relaxed(average), held = w_account(lock)->held + cost;

	w_store_relaxed(average, seen / 2 + held / 2 + (seen & held & 1));
}

static inline bool cfl_is_above_average(struct cfl *lock)
{
	/* relaxed: as in cfl_arrive() */
	return w_account(lock)->held >
	       w_load_relaxed(&cfl_ledger(lock)->average[w_group() % CFL_GROUPS]) + CFL_ROUNDING;
}

/*
 * Under strict_guarantee, idles while the thread is above the average, up to a bound. Section
 * 3.4.4.
 */
static W_SLOW void cfl_idle(struct cfl *lock)
{
	uint64_t begin = w_now(), now = begin, most = CFL_IDLE;

	if (!cfl_is_above_average(lock))
		return;
	for (uint32_t cpus = w_cpu_count(); cpus > 1; cpus /= 2)
		most += CFL_IDLE;
	w_event(idle);
	while (cfl_is_above_average(lock) && hold_time(begin, now) < most) {
		w_yield();
		now = w_now();
	}
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

/* ---- The reverse walk ---- */

static inline struct cfl_node *cfl_tagged(struct cfl_node *node)
{
	return (struct cfl_node *)((uintptr_t)node | 1);
}

/*
 * n -> n|1: pins the node before @at, which stays readable until cfl_unpin(). Returns NULL if there
 * is none or it is leaving.
 */
static inline struct cfl_node *cfl_pin(struct cfl_node *at)
{
	/* relaxed: the compare-exchange decides */
	struct cfl_node *before = w_load_relaxed(&at->before), *seen = before;

	if (!before)
		return NULL;
	/*
	 * relaxed: the thread that placed @at published that node before we got the role. A failure
	 * means that it has left
	 */
	return w_compare_exchange_relaxed(&at->before, &seen, cfl_tagged(before)) ? before : NULL;
}

/* n|1 -> n: unpins @before. If its waiter has left in the meantime, frees the node. */
static inline void cfl_unpin(struct cfl_node *at, struct cfl_node *before)
{
	struct cfl_node *seen = cfl_tagged(before);

	/*
	 * [CFL_ORDER-1] release: pairs with [CFL_ORDER-3]; our reads of the node come before its
	 * next use
	 */
	if (w_compare_exchange_release(&at->before, &seen, before))
		return;
	/*
	 * [CFL_ORDER-2] acquire: pairs with [CFL_ORDER-3]; the last accesses to the node by its
	 * thread, or by the thread that acted for it
	 */
	(void)w_load_acquire(&at->before);
	w_event(free_for);
	node_free(&before->node.status);
}

/*
 * Publishes @node, the head, to newcomers. Its time is a sample for its group's average, in case no
 * waiter is awake to compute averages.
 */
static inline void cfl_announce(struct cfl *lock, const struct shfl_node *node)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	W_ATOMIC(uint64_t) *average = &ledger->average[cfl_group(node)];
	/* relaxed, all: as in cfl_arrive() */
	uint64_t units = w_load_relaxed(average) >> CFL_UNIT;

	units += (uint64_t)(int64_t)(cfl_ahead(node->note, (uint32_t)units) / 2);
	w_store_relaxed(average, units << CFL_UNIT);
	w_store_relaxed(&ledger->head, (uint64_t)node->where << 32 | node->note);
}

/* As cfl_announce(), for a head behind which nobody waits. */
static inline void cfl_announce_alone(struct cfl *lock, const struct shfl_node *node)
{
	cfl_announce(lock, node);
	/* relaxed: as in cfl_arrive() */
	w_store_relaxed(&cfl_ledger(lock)->least_group, cfl_group(node));
}

/*
 * n or n|1 -> NULL: a node leaves the queue and @next becomes the head. Returns whether the node is
 * to be freed by the caller rather than by a walker.
 */
static inline bool cfl_retire(void *lock, struct shfl_node *next)
{
	cfl_announce(lock, next);
	/*
	 * [CFL_ORDER-3] acq_rel: release pairs with [CFL_ORDER-2]: our last accesses to our node;
	 * acquire pairs with [CFL_ORDER-1]: the walker's
	 */
	return !((uintptr_t)w_exchange_acq_rel(&cfl_node(next)->before, NULL) & 1);
}

/* ---- The shuffler ---- */

/* The waiters by group and domain: how many, and how far they are ahead of the group's average. */
struct cfl_tally {
	struct cfl_cell {
		int64_t ahead;
		uint32_t count;
	} cells[CFL_GROUPS][CFL_DOMAINS]; /* undefined for a group without waiters */
	uint64_t averages[CFL_GROUPS];    /* as they were when the first of the group was counted */
	uint32_t groups;                  /* groups with waiters, one bit each */
};

/* The choice: which waiters are next. */
struct cfl_target {
	uint32_t where; /* domain and group */
	uint32_t most;  /* the highest vLHT */
};

static inline void cfl_count(struct cfl *lock, struct cfl_tally *tally, const struct shfl_node *node)
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
		tally->averages[cfl_group(node)] = w_load_relaxed(&ledger->average[cfl_group(node)]);
	}
	cell->count++;
	cell->ahead += cfl_ahead(node->note, cfl_units(tally->averages[cfl_group(node)]));
}

/* Counts @node and those before it, back to the head or to a node that is leaving. */
static inline void cfl_look_back(struct cfl *lock, struct cfl_node *node, struct cfl_tally *tally)
{
	struct cfl_node *at = node, *before, *next;

	cfl_count(lock, tally, &node->node);
	for (; (before = cfl_pin(at)); at = before) {
		w_event(look_back);
		cfl_count(lock, tally, &before->node);
	}
	for (; at != node; at = next) {
		/* relaxed: a link of the shuffled part, which no longer changes */
		next = cfl_node(w_load_relaxed(&at->node.next));
		cfl_unpin(next, at);
	}
}

/* Counts the waiters behind @node. */
static inline void cfl_look_ahead(struct cfl *lock, struct shfl_node *node, struct cfl_tally *tally)
{
	/* [CFL_ORDER-4] acquire: pairs with [SHUFFLE-7], [SHUFFLE-4]; the node there */
	while ((node = w_load_acquire(&node->next)))
		cfl_count(lock, tally, node);
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
static inline uint32_t cfl_least_group(struct cfl *lock, const struct cfl_tally *tally, uint64_t *time)
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
		if (cells[domain].count && (least == CFL_DOMAINS || cells[domain].ahead / cells[domain].count <
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

/*
 * Returns the domain to choose. Under grace_period, that is the last one while its grace period
 * lasts and it has waiters, and CFL_GRACE is set. Section 3.4.5.
 */
static inline uint32_t cfl_choose_domain(struct cfl *lock, const struct cfl_cell *cells, struct cfl_policy policy)
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
		if (tally->groups & 1u << group)
			/* relaxed: they may be read late */
			w_store_relaxed(&ledger->average[group],
					cfl_mean(tally->averages[group], cfl_sum(tally, group)));
}

/* As the shuffler, chooses by @tally, which covers all waiters, and publishes the choice. */
static inline struct cfl_target cfl_choose(struct cfl *lock, const struct cfl_tally *tally, struct cfl_policy policy)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint64_t time = 0;
	uint32_t group = cfl_least_group(lock, tally, &time);
	uint32_t choice = cfl_choose_domain(lock, tally->cells[group], policy), domain = choice % CFL_DOMAINS;
	struct cfl_cell cell = tally->cells[group][domain];
	uint64_t base = tally->averages[group];

	cfl_publish_averages(lock, tally);
	/* relaxed, all: newcomers and holders may read them late */
	w_store_relaxed(&ledger->domain_average, cfl_mean(base, cell));
	if (time > w_load_relaxed(&ledger->group_time))
		w_store_relaxed(&ledger->group_time, time);
	w_store_relaxed(&ledger->least_group, group);
	w_store_relaxed(&ledger->group, group);
	w_store_relaxed(&ledger->domain, choice);
	/*
	 * Waiters in a grace period soon exceed the average of all; some do not exceed their
	 * domain's.
	 */
	return (struct cfl_target){.where = group * CFL_DOMAINS + domain,
				   .most = cfl_units(
					   cfl_mean(base, choice & CFL_GRACE ? cell : cfl_sum(tally, group)))};
}

/* Returns the best choice by @tally, which covers those behind the head. At least one meets it. */
static inline struct cfl_target cfl_choose_fallback(struct cfl *lock, const struct cfl_tally *tally)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint64_t time = 0;
	/* relaxed: written by the shuffler */
	uint32_t group = cfl_least_group(lock, tally, &time), chosen = w_load_relaxed(&ledger->domain);
	const struct cfl_cell *cells = tally->cells[group];
	bool stays = chosen & CFL_GRACE && cells[chosen % CFL_DOMAINS].count;
	uint32_t domain = stays ? chosen % CFL_DOMAINS : cfl_least_domain(cells);

	return (struct cfl_target){.where = group * CFL_DOMAINS + domain,
				   .most = cfl_units(cfl_mean(tally->averages[group], cells[domain]))};
}

static inline uint32_t cfl_rank(const void *context, const struct shfl_node *shuffler, const struct shfl_node *waiter)
{
	const struct cfl_target *target = context;

	(void)shuffler;
	return waiter->where == target->where && cfl_ahead(waiter->note, target->most) <= 0 ? 0 : POLICY_STAY;
}

/*
 * Records, from @node to @last, the node before each, for the reverse walk, and which were moved
 * forward.
 */
static inline void cfl_link_back(struct shfl_node *node, struct shfl_node *last)
{
	struct shfl_node *next;

	for (; node != last; node = next) {
		/* relaxed, both: written by the shuffler; [SHUFFLE-1] publishes them */
		next = w_load_relaxed(&node->next);
		w_store_relaxed(&cfl_node(next)->before, cfl_node(node));
		if (next->moves != node->moves)
			next->where |= CFL_MOVED;
	}
}

/*
 * As the head, if nobody meets all criteria, brings the best one of the others forward. Fills
 * @tally again.
 */
static inline struct shfl_node *cfl_place_one(struct cfl *lock, struct shfl_node *node, struct shfl_stop stop,
					      bool wake, struct cfl_policy policy, struct cfl_tally *tally)
{
	struct shfl_order order = {.rank = cfl_rank, .bound = node->batch + 1};
	struct cfl_target target;

	tally->groups = 0;
	cfl_look_ahead(lock, node, tally);
	if (node->batch >= policy.bypass || !tally->groups)
		return node;
	target = cfl_choose_fallback(lock, tally);
	order.context = &target;
	node->seen = NULL;
	return shfl_walk(node, stop, wake, order);
}

/* As the shuffler, does one turn of its work. Section 3.2.2, figure 4. */
static inline void cfl_shuffle(struct cfl *lock, struct cfl_node *self, struct shfl_stop stop, bool head, bool wake,
			       struct cfl_policy policy)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	struct shfl_node *node = &self->node, *last = node;
	struct cfl_tally tally;
	struct cfl_target target;
	struct shfl_order order = {.rank = cfl_rank, .context = &target, .bound = policy.bypass};
	/* relaxed, both: written by the shuffler */
	uint32_t where = w_load_relaxed(&ledger->group) * CFL_DOMAINS + w_load_relaxed(&ledger->domain) % CFL_DOMAINS;

	tally.groups = 0;
	shfl_begin(node);
	cfl_look_back(lock, self, &tally);
	cfl_look_ahead(lock, node, &tally);
	target = cfl_choose(lock, &tally, policy);
	if (target.where != where)
		node->seen = NULL;
	last = shfl_walk(node, stop, wake, order);
	if (head && last == node)
		last = cfl_place_one(lock, node, stop, wake, policy, &tally);
	cfl_link_back(node, last);
	shfl_end(node, last, order);
}

/* Waits until @node is the head, and shuffles when it has the role. Returns false at @deadline. */
static inline bool cfl_wait_turn(struct cfl *lock, struct cfl_node *node, struct cfl_policy policy,
				 const struct w_deadline *deadline, bool *slept)
{
	struct shfl_stop stop = {.word = &node->node.status, .mask = ~0u, .value = SHFL_READY};
	uint32_t seen = SHFL_WAITING;
	enum shfl_turn turn;

	while ((turn = shfl_wait(&node->node, &seen, policy.wait, deadline, slept)) == SHFL_TURN_SHUFFLER)
		cfl_shuffle(lock, node, stop, false, false, policy);
	return turn == SHFL_TURN_HEAD;
}

#endif
