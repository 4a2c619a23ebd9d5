/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The counting that the fast paths of count.h leave out: waits, hand-overs, timed holds, stacks. */
#include "count.h"

#include <string.h>

#include "item.h"

bool stats_profile;

static inline void raise_to(uint64_t *most, uint64_t value)
{
	if (*most < value)
		*most = value;
}

void stats_hear(enum w_event event)
{
	stats_check_fork();
	if (stats_self.own)
		stats_self.own->events[event]++;
	if (!stats_self.observed)
		return;
	if (event == W_EVENT_park)
		stats_self.observed->counts[STATS_parks]++;
	else if (event == W_EVENT_wake_in_cs)
		stats_self.observed->counts[STATS_wakeups_in_section]++;
}

W_SLOW int stats_begin_hold(struct stats_row *row)
{
	row->since_taken = row->counts[STATS_acquisitions];
	row->until_timed = row->since_taken < row->first ? 1 : stats_next_timed();
	row->since = stats_seen_at(w_now());
	return 0;
}

/* ---- Waiting ---- */

/*
 * Keeps @stack until the release of the lock that the thread waits for: stats_release_slow() counts
 * it.
 */
static void remember(struct stats_pending *pending, const struct stats_frames *stack)
{
	if (pending->key)
		return;
	pending->stack.depth = stack->depth;
	memcpy(pending->stack.frames, stack->frames, stack->depth * sizeof(stack->frames[0]));
}

/*
 * Records the stack of a waiter where it is wanted: a lock is named by that of its first one; a
 * profile has all.
 */
static void note_waiter(struct stats_thread *table, struct stats_row *row, void *caller)
{
	struct stats_lock *item = row->item;
	struct stats_frames stack;
	uint32_t none = 0, name;

	if (!row->lock) {
		/* There may be room for a contended lock. */
		row->lock = stats_item_of(w_load_relaxed(&row->key), row->readers_writer, true);
		item = row->item = stats_lock_item(row->lock);
	}
	if (!stats_profile && (w_load_relaxed(&item->stack) || !row->lock))
		return;
	stats_stack_capture(&stack, caller);
	if (row->lock && !w_load_relaxed(&item->stack)) {
		name = stats_stack_count(&stack, STATS_FIRST, row->lock, 0);
		/* UINT32_MAX: contended, but there is no room for the stack. */
		(void)w_compare_exchange_relaxed(&item->stack, &none, name ? name : UINT32_MAX);
	}
	if (stats_profile)
		remember(stats_pending_of(table), &stack);
}

/* Counts a hand-over, if the lock was handed over: whether the last holder was in this domain. */
static void count_handover(struct stats_lock *item, struct stats_row *row)
{
	/* relaxed, both: only holders write it */
	uint32_t from = w_load_relaxed(&item->domain);

	if (!from)
		return;
	w_store_relaxed(&item->domain, 0);
	row->counts[from == (uint32_t)w_domain() + 1 ? STATS_handovers_local
						     : STATS_handovers_remote]++;
}

static void count_arrival(struct stats_lock *item, struct stats_row *row)
{
	uint32_t queue;

	row->counts[STATS_contended]++;
	if (!row->lock)
		return;
	queue = w_fetch_add_relaxed(&item->waiting, 1) + 1;
	row->counts[STATS_queue_sum] += queue;
	raise_to(&row->counts[STATS_queue_max], queue);
}

/* Counts a wait of @ns that has @taken the lock or not. */
static void count_wait(struct stats_row *row, uint64_t ns, bool taken)
{
	if (row->lock)
		(void)w_fetch_add_relaxed(&row->item->waiting, (uint32_t)-1);
	if (taken && row->lock)
		count_handover(row->item, row);
	row->counts[STATS_wait_ns] += ns;
	raise_to(&row->counts[STATS_wait_max_ns], ns);
	if (taken)
		(void)stats_count_acquisition(row, row->readers_writer);
	else
		row->counts[STATS_timeouts]++;
}

W_SLOW bool stats_wait(struct stats_row *row, const struct stats_wait *wait)
{
	struct stats_thread *table = stats_self.table;
	struct stats_pending *pending;
	uint64_t from, took;
	bool taken;

	if (row == stats_scratch_row())
		return wait->wait(wait);
	stats_suspend();
	note_waiter(table, row, wait->caller);
	count_arrival(row->item, row);
	stats_self.observed = row;
	from = w_now();
	taken = wait->wait(wait);
	took = stats_seen_at(w_now()) - from;
	stats_self.observed = NULL;
	count_wait(row, took, taken);
	pending = stats_pending_of(table);
	if (stats_profile && taken && !pending->key) {
		pending->ns = took;
		pending->key = w_load_relaxed(&row->key);
	}
	stats_resume(table);
	return taken;
}

/* ---- Releasing ---- */

/*
 * After a release, in a profile: counts the stack of the holder, if it was @waited_for, and that of
 * its own wait.
 */
static void note_stacks(struct stats_row *row, uint64_t key, uint64_t ns, bool waited_for)
{
	struct stats_thread *table = stats_self.table;
	struct stats_pending *pending = stats_pending_of(table);
	struct stats_frames stack;

	stats_suspend();
	if (pending->key == key) {
		stats_stack_count(&pending->stack, STATS_WAITER, row->lock, pending->ns);
		pending->key = 0;
	}
	if (waited_for) {
		stats_stack_capture(&stack, __builtin_return_address(0));
		stats_stack_count(&stack, STATS_HOLDER, row->lock, ns);
	}
	stats_resume(table);
}

/* Leaves the holder's domain to the waiter that gets the lock next. */
static void leave_domain(struct stats_lock *item)
{
	uint32_t domain = (uint32_t)w_domain() + 1;

	if (w_load_relaxed(&item->domain) != domain)
		w_store_relaxed(&item->domain, domain);
}

static void count_hold(struct stats_row *row, uint64_t ns)
{
	row->counts[STATS_holds_timed]++;
	row->counts[STATS_hold_timed_ns] += ns;
	raise_to(&row->counts[STATS_hold_timed_max_ns], ns);
	if (row->since_taken <= row->first) {
		row->counts[STATS_holds_first]++;
		row->counts[STATS_hold_first_ns] += ns;
	}
}

W_SLOW bool stats_release_slow(struct stats_row *row, uint64_t key, bool (*unlock)(void *lock),
			       void *lock)
{
	/* A lock that another thread released has left its start behind. */
	uint64_t since = row->since_taken == row->counts[STATS_acquisitions] ? row->since : 0,
		 took = 0;
	bool waited_for = w_load_relaxed(&row->item->waiting), released;

	row->since = 0;
	if (waited_for && row->lock)
		leave_domain(row->item);
	if (since)
		took = w_now() - since;
	stats_self.observed = row;
	released = unlock(lock);
	stats_self.observed = NULL;
	if (since)
		count_hold(row, took);
	if (stats_profile && (waited_for || stats_pending_of(stats_self.own)->key))
		note_stacks(row, key, took, waited_for);
	return released;
}
