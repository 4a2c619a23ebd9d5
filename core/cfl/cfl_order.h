/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Who is next under CFL: the time for which each has held the lock, by thread and by group, who may pass whom for it, and the
 * shuffling of the queue by that. It knows nothing of the lock's word: cfl.h has that, of locks that have room for it.
 *
 * From: Park and Eom, "Locks as a resource: fairly scheduling lock occupation with CFL", PPoPP'24, section 3.
 * What the paper leaves open, and what is changed, and why:
 *  - Virtual lock hold time (vLHT) is kept by thread and lock, in the thread's record (w_account); the paper shares one
 *    variable among all locks, so that who holds one for long is kept from others.
 *  - The stamp at which a hold began lies in the lock and is its holder's (`start`): nesting would overwrite a thread's.
 *  - A hold is charged if somebody waits when it ends, and to the thread that ends it. Nobody is hurt by any other, which
 *    then costs one reading of the clock instead of two, and an uncontended thread runs up no debt.
 *  - The reverse walk (section 3.2.2) pins each node before it looks at it (`before`, below): a node that has gone is
 *    freed by the walker, and nobody waits for it.
 *  - The averages are of all that wait, taken before anybody is moved by them, not after; only the moving goes on
 *    where the last shuffler stopped.
 *  - When no waiter meets all criteria, the head places one: of the group with the least time among those behind it,
 *    the domain with the least average there, and below that average.
 *  - A newcomer begins at its group's average, as in section 3.4.3. "Much lower" is said exactly: a thread's clock runs on
 *    while it is away from the lock, in real time, until it is no more than CFL_BEHIND of its own holding behind the
 *    average. Up to there it is owed what others had meanwhile: to come back, to wake another one and to be preempted
 *    take time, which must not cost it its share.
 *  - A group's time is the sum of its holds, kept in the lock, and runs on like that; the sum over those that happen to
 *    wait would count a group's threads, not its holds.
 *  - Bypasses are counted (`bypass`): moves by node (shuffle.h), thefts since the last head entered that was not moved
 *    before others: one that was would let more pass those.
 *  - Where all sleep, nobody is awake to shuffle: a head that slept does once it has the lock.
 *  - Under grace_period the chosen domain's waiters are measured by its own average: they are soon above that of all.
 *  - A newcomer that has had less than the head of the queue may pass it, too: the averages are old when nobody that waits
 *    is awake to take them.
 *  - Nobody passes a group that wants the lock, too, and has had less (`due`): the head's may be another one.
 *  - A head gives way to the last holder, if that is still owed more, for a moment, as long as that makes use of it.
 *  - A newcomer of another domain than the chosen one may steal the lock if it is below that one's average: its own would
 *    be the chosen one if it waited.
 *
 * A node's `before`: the node before it in the shuffled part of the queue.
 *
 *   NULL ──shuffler, placing it──▶ n ──walker──▶ n|1 pinned ──walker──▶ n
 *                                  │                │
 *                                  └──n, leaving────┴──▶ NULL   (from n: n frees its node; from n|1: the walker does)
 */
#ifndef POUNDLOCK_CFL_ORDER_H
#define POUNDLOCK_CFL_ORDER_H

#include "part/hold.h"
#include "part/shuffle.h"

/* Groups and domains are taken modulo these: those that share a place are as one to the lock. */
#define CFL_GROUPS 8
#define CFL_DOMAINS 8

/* Of `domain`: this one's grace lasts, and no other is let in. */
#define CFL_STAYS CFL_DOMAINS

/* Of a node's `where`: it was brought forward over others. */
#define CFL_BROUGHT (CFL_GROUPS * CFL_DOMAINS)

/* How far behind the average a thread stays that comes back: as in CFS, half a sched_latency. Section 3.4.3. */
#define CFL_BEHIND 3000000

/* The longest idling of a thread that has had too much: CFS's sched_latency, for one CPU. Section 3.4.4. */
#define CFL_IDLE 6000000

/* Nodes know times in units of 256 ns, so that those of threads less than 9 minutes apart compare. */
#define CFL_UNIT 8

/* Less than that above the average is not above it: an average of notes is that much too low, at most. */
#define CFL_EVEN (4u << CFL_UNIT)

/*
 * What is known of those who come, wait and go. Nothing but their order depends on it, and how often they are passed on
 * `thefts` alone: locks may share a ledger, and are then as one to it; what two write at once may be lost.
 */
struct cfl_ledger {
	W_ATOMIC(uint32_t) thefts; /* so far */
	W_ATOMIC(uint32_t) back;   /* whether the last holder may pass the head; the holder's */
	W_ATOMIC(uint32_t) vain,
		skip; /* how long heads do not give way any more, and for how many releases; the head's */
	/* The shuffler's, for newcomers to read. */
	W_ATOMIC(uint64_t) head;                /* its note, and where; of who makes it the head */
	W_ATOMIC(uint32_t) group;               /* whose turn it is, and within that */
	W_ATOMIC(uint32_t) domain;              /* which one's (and CFL_STAYS), whose average is */
	W_ATOMIC(uint32_t) due;                 /* the group that has had least of those that came, about */
	W_ATOMIC(uint64_t) least;               /* this */
	W_ATOMIC(uint64_t) group_time;          /* the time of the group that had least; never less than before */
	W_ATOMIC(uint64_t) grace_until;         /* until when the domain stays */
	W_ATOMIC(uint64_t) average[CFL_GROUPS]; /* vLHT of the group's waiters */
	/* The holder's. */
	W_ATOMIC(uint64_t) held[CFL_GROUPS]; /* the group's virtual time */
	W_ATOMIC(uint64_t) seen[CFL_GROUPS]; /* when a thread of the group was last here, about; 0: never */
};

/* Whoever has a lock by this order says what it is, and where its ledger is. */
struct cfl;
static inline struct cfl_ledger *cfl_ledger(struct cfl *lock);

/* Its note is its vLHT, in units; where: domain and group, and CFL_BROUGHT, which the shuffler sets. */
struct cfl_node {
	struct shfl_node node; /* first: a queue's node is this one */
	W_ATOMIC(struct cfl_node *) before;
};

struct cfl_policy {
	enum wait wait;
	bool sleeps;               /* whether the head may */
	uint32_t bypass;           /* how often a waiter may be passed */
	uint32_t grace_period;     /* for how long a domain stays chosen, in microseconds */
	uint32_t strict_guarantee; /* whether a thread that has had too much idles */
};

#define CFL_SETTINGS(S, name)                          \
	S(name, bypass, SHFL_MAX_BATCH, 1, 1000000, 4) \
	S(name, grace_period, 0, 0, 1000000000, 0)     \
	S(name, strict_guarantee, 0, 0, 1, 0, "off on")

#define CFL_SETTLED(policy, head_sleeps)                                            \
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

/* ---- Who comes ---- */

/* A thread as it comes to the lock. */
struct cfl_arrival {
	uint32_t group, domain;
	uint64_t held;   /* its vLHT */
	uint64_t away;   /* for how long no thread of its group was here */
	uint32_t thefts; /* so far */
};

/* A time that runs on while its owner, of @weight, is @away, until it is not much below @reference. Section 3.4.3. */
static inline uint64_t cfl_run_on(uint64_t held, uint64_t away, uint64_t reference, uint32_t weight)
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
	uint32_t group = w_group() % CFL_GROUPS, due;
	/* relaxed, all: times and places that may be a little old; nothing but the order depends on them */
	uint64_t average = w_load_relaxed(&ledger->average[group]);

	if (account->until)
		account->held = cfl_run_on(account->held, hold_time(account->until, now), average, w_weight());
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
	due = w_load_relaxed(&ledger->due);
	if (due != group && w_load_relaxed(&ledger->held[group]) < w_load_relaxed(&ledger->held[due]))
		w_store_relaxed(&ledger->due, group);
	return arrival;
}

/* Whether a newcomer that has held the lock for @time may pass those who wait. Section 3.3. */
static inline bool cfl_is_owed(struct cfl *lock, uint32_t group, uint32_t domain, uint64_t time)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	/* relaxed, all: as in cfl_arrive */
	uint64_t head = w_load_relaxed(&ledger->head);
	uint32_t due = w_load_relaxed(&ledger->due), turn = (uint32_t)(head >> 32) / CFL_DOMAINS % CFL_GROUPS, chosen;

	if (group != due && w_load_relaxed(&ledger->held[group]) >= w_load_relaxed(&ledger->held[due]))
		return false;
	if (group != turn)
		return w_load_relaxed(&ledger->held[group]) < w_load_relaxed(&ledger->held[turn]);
	chosen = w_load_relaxed(&ledger->domain);
	if (chosen & CFL_STAYS && domain != chosen % CFL_DOMAINS)
		return false;
	return cfl_ahead((uint32_t)head, cfl_units(time)) > 0 ||
	       time < (domain == chosen % CFL_DOMAINS ? w_load_relaxed(&ledger->average[group])
						      : w_load_relaxed(&ledger->least));
}

/* ---- What a hold costs its thread ---- */

/* As the new holder that had to wait or to steal, lets the group's time run on. */
static inline void cfl_begin_group(struct cfl *lock, struct cfl_arrival arrival)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	W_ATOMIC(uint64_t) *held = &ledger->held[arrival.group];

	/* relaxed, all: only holders write it; the reference may be a little old */
	w_store_relaxed(held, cfl_run_on(w_load_relaxed(held), arrival.away, w_load_relaxed(&ledger->group_time),
					 w_group_weight(w_group())));
}

/* Who held the lock: the number and the weight of its group, its domain, and its vLHT with that hold. */
struct cfl_payer {
	uint32_t group, weight, domain;
	uint64_t held;
};

/* Charges @payer's group a hold of @time that ends @now: by the holder, or by the head after it, where a release cannot. */
static inline void cfl_charge_to(struct cfl *lock, struct cfl_payer payer, uint64_t time, uint64_t now)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint32_t group = payer.group % CFL_GROUPS;
	/* relaxed, all: only who charges writes them */
	uint64_t held = w_load_relaxed(&ledger->held[group]) + hold_virtual(time, payer.weight);

	w_store_relaxed(&ledger->held[group], held);
	w_store_relaxed(&ledger->seen[group], now);
	w_store_relaxed(&ledger->back, cfl_is_owed(lock, group, payer.domain % CFL_DOMAINS, payer.held));
}

/* As the holder, before the release, charges the hold, which began at @start: what it cost the thread. */
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
 * As the holder under strict_guarantee, while nobody waits: newcomers are measured by those who were here last, and will
 * have held the lock once more when they ask. By what they have so far, who holds it for as long as the others would be above
 * that average after every hold, and all would idle at the same time.
 */
static inline void cfl_follow(struct cfl *lock, uint64_t cost)
{
	W_ATOMIC(uint64_t) *average = &cfl_ledger(lock)->average[w_group() % CFL_GROUPS];
	/* relaxed, both: as in cfl_arrive */
	uint64_t seen = w_load_relaxed(average), held = w_account(lock)->held + cost;

	w_store_relaxed(average, seen / 2 + held / 2 + (seen & held & 1));
}

static inline bool cfl_is_above_average(struct cfl *lock)
{
	/* relaxed: as in cfl_arrive */
	return w_account(lock)->held > w_load_relaxed(&cfl_ledger(lock)->average[w_group() % CFL_GROUPS]) + CFL_EVEN;
}

/* Under strict_guarantee, idles while the thread is above the average, for so long at most. Section 3.4.4. */
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

/* ---- Giving way ---- */

/* As the head, whether it does not give way this time, since that was in vain before. */
static inline bool cfl_skips(struct cfl_ledger *ledger)
{
	/* relaxed, both: hints, which may be wrong */
	uint32_t skip = w_load_relaxed(&ledger->skip);

	if (skip)
		w_store_relaxed(&ledger->skip, skip - 1);
	return skip;
}

/* As the head that gave way: more seldom each time that nobody @came. */
static inline void cfl_gave_way(struct cfl_ledger *ledger, bool came)
{
	uint32_t vain;

	/* relaxed, all: as in cfl_skips */
	if (came) {
		w_store_relaxed(&ledger->vain, 0);
		return;
	}
	vain = w_load_relaxed(&ledger->vain);
	vain = vain < 64 ? 2 * vain + 1 : vain;
	w_store_relaxed(&ledger->vain, vain);
	w_store_relaxed(&ledger->skip, vain);
}

/* ---- The walk back ---- */

static inline struct cfl_node *cfl_tagged(struct cfl_node *node)
{
	return (struct cfl_node *)((uintptr_t)node | 1);
}

/* The node before @at, which stays readable until cfl_unpin(); NULL if there is none, or it is going. */
static inline struct cfl_node *cfl_pin(struct cfl_node *at)
{
	/* relaxed: the compare-exchange decides */
	struct cfl_node *before = w_load_relaxed(&at->before), *seen = before;

	if (!before)
		return NULL;
	/* relaxed: what it leads to was published by who placed @at, before we got the role. A failure: it has gone */
	return w_compare_exchange_relaxed(&at->before, &seen, cfl_tagged(before)) ? before : NULL;
}

/* Ends the pin of @before by @at; if that has gone meanwhile, its node is ours to free. */
static inline void cfl_unpin(struct cfl_node *at, struct cfl_node *before)
{
	struct cfl_node *seen = cfl_tagged(before);

	/* [CFL_ORDER-1] release: pairs with [CFL_ORDER-3]; our reads of the node come before its
	 * next use */
	if (w_compare_exchange_release(&at->before, &seen, before))
		return;
	/* [CFL_ORDER-2] acquire: pairs with [CFL_ORDER-3]; its thread is done with the node, or who
	 * acted for that */
	(void)w_load_acquire(&at->before);
	w_event(free_for);
	node_free(&before->node.status);
}

/* Tells newcomers of @node, the head. Its time is a sample of its group's, should nobody be awake to take averages. */
static inline void cfl_announce(struct cfl *lock, const struct shfl_node *node)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	W_ATOMIC(uint64_t) *average = &ledger->average[cfl_group(node)];
	/* relaxed, all: as in cfl_arrive */
	uint64_t units = w_load_relaxed(average) >> CFL_UNIT;

	units += (uint64_t)(int64_t)(cfl_ahead(node->note, (uint32_t)units) / 2);
	w_store_relaxed(average, units << CFL_UNIT);
	w_store_relaxed(&ledger->head, (uint64_t)node->where << 32 | node->note);
}

/* As cfl_announce, of a head behind which nobody waits. */
static inline void cfl_announce_alone(struct cfl *lock, const struct shfl_node *node)
{
	cfl_announce(lock, node);
	/* relaxed: as in cfl_arrive */
	w_store_relaxed(&cfl_ledger(lock)->due, cfl_group(node));
}

/* As a node leaves the queue and @next becomes the head: whether it is to free itself, or a walker does. */
static inline bool cfl_part(void *lock, struct shfl_node *next)
{
	cfl_announce(lock, next);
	/* [CFL_ORDER-3] acq_rel: release pairs with [CFL_ORDER-2]: we are done with our node;
	 * acquire pairs with [CFL_ORDER-1]: so is the walker */
	return !((uintptr_t)w_exchange_acq_rel(&cfl_node(next)->before, NULL) & 1);
}

/* ---- The shuffler ---- */

/* What is known of those who wait, by group and domain: how many, and by how much they are ahead of the group's average. */
struct cfl_tally {
	struct cfl_cell {
		int64_t ahead;
		uint32_t count;
	} cells[CFL_GROUPS][CFL_DOMAINS]; /* of a group that has no waiters: anything */
	uint64_t averages[CFL_GROUPS];    /* as they were when the first of the group was counted */
	uint32_t groups;                  /* those that have waiters, a bit for each */
};

/* Whose turn it is. */
struct cfl_aim {
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
		/* relaxed: shufflers write it, and the role is ours */
		tally->averages[cfl_group(node)] = w_load_relaxed(&ledger->average[cfl_group(node)]);
	}
	cell->count++;
	cell->ahead += cfl_ahead(node->note, cfl_units(tally->averages[cfl_group(node)]));
}

/* Counts @node and those before it, up to the head or to where they are going. */
static inline void cfl_look_back(struct cfl *lock, struct cfl_node *node, struct cfl_tally *tally)
{
	struct cfl_node *at = node, *before, *next;

	cfl_count(lock, tally, &node->node);
	for (; (before = cfl_pin(at)); at = before) {
		w_event(look_back);
		cfl_count(lock, tally, &before->node);
	}
	for (; at != node; at = next) {
		/* relaxed: a link of the shuffled part, which nobody changes any more */
		next = cfl_node(w_load_relaxed(&at->node.next));
		cfl_unpin(next, at);
	}
}

/* Counts those behind @node. */
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

/* The group of @tally, which is not empty, that has the least time, and that. */
static inline uint32_t cfl_least_group(struct cfl *lock, const struct cfl_tally *tally, uint64_t *time)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint32_t least = CFL_GROUPS;
	uint64_t held;

	for (uint32_t group = 0; group < CFL_GROUPS; group++) {
		if (!(tally->groups & 1u << group))
			continue;
		/* relaxed: holders' times may be a little old */
		held = w_load_relaxed(&ledger->held[group]);
		if (least < CFL_GROUPS && held >= *time)
			continue;
		least = group;
		*time = held;
	}
	return least;
}

/* The domain of @cells, some of which have waiters, whose average is least. */
static inline uint32_t cfl_least_domain(const struct cfl_cell *cells)
{
	uint32_t least = CFL_DOMAINS;

	for (uint32_t domain = 0; domain < CFL_DOMAINS; domain++)
		if (cells[domain].count && (least == CFL_DOMAINS || cells[domain].ahead / cells[domain].count <
									    cells[least].ahead / cells[least].count))
			least = domain;
	return least;
}

/* The mean of the waiters of @cell, some, rounded up to a unit: one of them at least is not above it. */
static inline uint64_t cfl_mean(uint64_t base, struct cfl_cell cell)
{
	int64_t mean = cell.ahead / (int64_t)cell.count + (cell.ahead % (int64_t)cell.count > 0);

	/* What wraps in between does so in nodes' units, too. */
	return ((base >> CFL_UNIT) + (uint64_t)mean) << CFL_UNIT;
}

/* The domain to choose: the last one while its grace lasts and it has waiters; then CFL_STAYS is set. Section 3.4.5. */
static inline uint32_t cfl_choose_domain(struct cfl *lock, const struct cfl_cell *cells, struct cfl_policy policy)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	/* relaxed, all: the shuffler's */
	uint32_t last = w_load_relaxed(&ledger->domain) % CFL_DOMAINS;
	uint64_t now;

	if (!policy.grace_period)
		return cfl_least_domain(cells);
	now = w_now();
	if (now >= w_load_relaxed(&ledger->grace_until) || !cells[last].count) {
		last = cfl_least_domain(cells);
		w_store_relaxed(&ledger->grace_until, now + policy.grace_period * UINT64_C(1000));
	}
	return last | CFL_STAYS;
}

/* As the shuffler, notes what @tally says of the waiters' averages, for newcomers. */
static inline void cfl_note_averages(struct cfl *lock, const struct cfl_tally *tally)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	for (uint32_t group = 0; group < CFL_GROUPS; group++)
		if (tally->groups & 1u << group)
			/* relaxed: they may see it late */
			w_store_relaxed(&ledger->average[group],
					cfl_mean(tally->averages[group], cfl_sum(tally, group)));
}

/* As the shuffler, says whose turn it is, by @tally of all who wait, and notes it in the lock. */
static inline struct cfl_aim cfl_take_aim(struct cfl *lock, const struct cfl_tally *tally, struct cfl_policy policy)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint64_t time = 0;
	uint32_t group = cfl_least_group(lock, tally, &time);
	uint32_t choice = cfl_choose_domain(lock, tally->cells[group], policy), domain = choice % CFL_DOMAINS;
	struct cfl_cell cell = tally->cells[group][domain];
	uint64_t base = tally->averages[group];

	cfl_note_averages(lock, tally);
	/* relaxed, all: newcomers and holders may see them late */
	w_store_relaxed(&ledger->least, cfl_mean(base, cell));
	if (time > w_load_relaxed(&ledger->group_time))
		w_store_relaxed(&ledger->group_time, time);
	w_store_relaxed(&ledger->due, group);
	w_store_relaxed(&ledger->group, group);
	w_store_relaxed(&ledger->domain, choice);
	/* One that stays is soon above the average of all: some of it are always at or below its own. */
	return (struct cfl_aim){.where = group * CFL_DOMAINS + domain,
				.most = cfl_units(cfl_mean(base, choice & CFL_STAYS ? cell : cfl_sum(tally, group)))};
}

/* The best that @tally of those behind the head has: one of them at least meets it. */
static inline struct cfl_aim cfl_settle_for(struct cfl *lock, const struct cfl_tally *tally)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint64_t time = 0;
	/* relaxed: the shuffler's */
	uint32_t group = cfl_least_group(lock, tally, &time), chosen = w_load_relaxed(&ledger->domain);
	const struct cfl_cell *cells = tally->cells[group];
	bool stays = chosen & CFL_STAYS && cells[chosen % CFL_DOMAINS].count;
	uint32_t domain = stays ? chosen % CFL_DOMAINS : cfl_least_domain(cells);

	return (struct cfl_aim){.where = group * CFL_DOMAINS + domain,
				.most = cfl_units(cfl_mean(tally->averages[group], cells[domain]))};
}

static inline uint32_t cfl_rank(const void *context, const struct shfl_node *shuffler, const struct shfl_node *waiter)
{
	const struct cfl_aim *aim = context;

	(void)shuffler;
	return waiter->where == aim->where && cfl_ahead(waiter->note, aim->most) <= 0 ? 0 : POLICY_STAY;
}

/* Remembers for the walk back who is before whom from @node to @last, and who was brought there over others. */
static inline void cfl_link_back(struct shfl_node *node, struct shfl_node *last)
{
	struct shfl_node *next;

	for (; node != last; node = next) {
		/* relaxed, both: the shuffler's; [SHUFFLE-1] publishes them */
		next = w_load_relaxed(&node->next);
		w_store_relaxed(&cfl_node(next)->before, cfl_node(node));
		if (next->moves != node->moves)
			next->where |= CFL_BROUGHT;
	}
}

/* As the head, with nobody to bring forward for certain, brings one forward of those that are there; anew fills @tally. */
static inline struct shfl_node *cfl_place_one(struct cfl *lock, struct shfl_node *node, struct shfl_stop stop,
					      bool wake, struct cfl_policy policy, struct cfl_tally *tally)
{
	struct shfl_order order = {.rank = cfl_rank, .bound = node->batch + 1};
	struct cfl_aim aim;

	tally->groups = 0;
	cfl_look_ahead(lock, node, tally);
	if (node->batch >= policy.bypass || !tally->groups)
		return node;
	aim = cfl_settle_for(lock, tally);
	order.context = &aim;
	node->seen = NULL;
	return shfl_walk(node, stop, wake, order);
}

/* As the shuffler, does its work. Section 3.2.2, figure 4. */
static inline void cfl_shuffle(struct cfl *lock, struct cfl_node *self, struct shfl_stop stop, bool head, bool wake,
			       struct cfl_policy policy)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	struct shfl_node *node = &self->node, *last = node;
	struct cfl_tally tally;
	struct cfl_aim aim;
	struct shfl_order order = {.rank = cfl_rank, .context = &aim, .bound = policy.bypass};
	/* relaxed, both: the shuffler's */
	uint32_t where = w_load_relaxed(&ledger->group) * CFL_DOMAINS + w_load_relaxed(&ledger->domain) % CFL_DOMAINS;

	tally.groups = 0;
	shfl_begin(node);
	cfl_look_back(lock, self, &tally);
	cfl_look_ahead(lock, node, &tally);
	aim = cfl_take_aim(lock, &tally, policy);
	if (aim.where != where)
		node->seen = NULL;
	last = shfl_walk(node, stop, wake, order);
	if (head && last == node)
		last = cfl_place_one(lock, node, stop, wake, policy, &tally);
	cfl_link_back(node, last);
	shfl_end(node, last, order);
}

/* Waits until @node is the head, shuffling when it is to: true. False at the deadline. */
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
