/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The price of a hold under CFL: what the thread and its group are charged, and the idling of
 * threads over their share (strict_guarantee).
 */
#ifndef POUNDLOCK_CFL_CHARGE_H
#define POUNDLOCK_CFL_CHARGE_H

#include "cfl/arrival.h"

/* As the new holder, after having waited or stolen the lock, advances the group's time. */
static inline void cfl_begin_group(struct cfl *lock, struct cfl_arrival arrival)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	W_ATOMIC(uint64_t) *held = &ledger->held[arrival.group];

	/* relaxed, all: only holders write it; the reference may be stale */
	w_store_relaxed(held, cfl_catch_up(w_load_relaxed(held), arrival.away,
					   w_load_relaxed(&ledger->group_time),
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
static inline void cfl_charge_to(struct cfl *lock, struct cfl_payer payer, uint64_t time,
				 uint64_t now)
{
	struct cfl_ledger *ledger = cfl_ledger(lock);
	uint32_t group = payer.group % CFL_GROUPS;
	/* relaxed, all: only the charging thread writes them */
	uint64_t held = w_load_relaxed(&ledger->held[group]) + hold_virtual(time, payer.weight);

	w_store_relaxed(&ledger->held[group], held);
	w_store_relaxed(&ledger->seen[group], now);
	w_store_relaxed(&ledger->may_return,
			cfl_may_overtake(lock, group, payer.domain % CFL_DOMAINS, payer.held));
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

#endif
