/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shares of a lock's time: a thread's accounts with locks, its weight and its group. Implemented by
 * shares.c.
 */
#ifndef POUNDLOCK_WORLD_SHARES_H
#define POUNDLOCK_WORLD_SHARES_H

#include "thread.h"

W_HIDDEN struct w_account *w_account_open(const void *lock);

static inline struct w_account *w_account(const void *lock)
{
	struct w_block *block = w_block();

	for (int i = 0; i < W_ACCOUNTS; i++) {
		if (block->accounts[i].lock == lock) {
			block->accounts[i].used = ++block->account_uses;
			return &block->accounts[i];
		}
	}
	return w_account_open(lock);
}

W_HIDDEN uint32_t w_weight_read(void);
W_HIDDEN uint32_t w_group_read(void);

static inline uint32_t w_weight(void)
{
	return w_likely(w_own.weight) ? w_own.weight : w_weight_read();
}

static inline uint32_t w_group(void)
{
	return w_likely(w_own.group) ? w_own.group - 1u : w_group_read();
}

/* By group; set before a thread belongs to the group. */
extern W_HIDDEN W_ATOMIC(uint32_t) w_group_weights[W_GROUPS];

static inline uint32_t w_group_weight(uint32_t group)
{
	/* relaxed: set before any thread belongs to the group, and may be set again */
	return atomic_load_explicit(&w_group_weights[group], memory_order_relaxed);
}

/* Sets the thread's weight; 0: reads that of its nice value again. */
W_HIDDEN void w_weight_set(uint32_t weight);
/*
 * Sets the thread's group to tenant @id with @weight. Returns false if there are too many groups.
 * w_tenant_clear() returns it to its cgroup.
 */
W_HIDDEN bool w_tenant_set(uint64_t id, uint32_t weight);
W_HIDDEN void w_tenant_clear(void);
/* The thread's group, for w_group_restore(). 0: its cgroup, which is not read yet. */
W_HIDDEN uint32_t w_group_save(void);
W_HIDDEN void w_group_restore(uint32_t saved);

/* A policy of the program, as those in core/policy/policy.h. */
struct w_own_policy {
	uint32_t (*note)(void *context, const void *lock);
	uint32_t (*rank)(void *context, uint32_t shuffler, uint32_t waiter);
	void *context;
};

#define W_OWN_POLICIES 32

/* By number. They do not change while a lock has them: lib/policies.h. */
extern W_HIDDEN struct w_own_policy w_own_policies[W_OWN_POLICIES];

static inline uint32_t w_own_policy_note(uint32_t number, const void *lock)
{
	const struct w_own_policy *own = &w_own_policies[number];

	return own->note(own->context, lock);
}

static inline uint32_t w_own_policy_asked(uint32_t number, uint32_t shuffler, uint32_t waiter)
{
	const struct w_own_policy *own = &w_own_policies[number];

	return own->rank(own->context, shuffler, waiter);
}

/*
 * A waiter that ranks behind the shuffler, by an order that ignores who shuffles, stays. Otherwise
 * each shuffler would gather all waiters and pass its role to one that ranks last.
 */
static inline uint32_t w_own_policy_rank(uint32_t number, uint32_t shuffler, uint32_t waiter)
{
	const uint32_t rank = w_own_policy_asked(number, shuffler, waiter);

	if (rank > w_own_policy_asked(number, shuffler, shuffler) &&
	    rank == w_own_policy_asked(number, waiter, waiter))
		return UINT32_MAX;
	return rank;
}

/* Waiters of the shuffler's rank come forward only if none ranks before it; before 0, none does. */
static inline bool w_own_policy_strict(uint32_t number, uint32_t note)
{
	return w_own_policy_asked(number, note, note) != 0;
}
#define w_own_policy_strict w_own_policy_strict

/* ---- For the process, and for tests ---- */

/* A thread's cgroup: in version 1, that of the cpu controller; otherwise in version 2. */
struct w_cgroup {
	const char *path;
	const char *v1_controllers; /* the name of the hierarchy; NULL: version 2 */
};

/* Parses @text, the content of /proc/thread-self/cgroup, in place. Returns false if it has none. */
W_HIDDEN bool w_cgroup_parse(char *text, struct w_cgroup *found);

/*
 * From now on, threads that have not read their weight and group have the calling thread's; neither
 * is read again.
 */
W_HIDDEN void w_shares_of_process(void);

/*
 * The same, for a process that is about to enter a sandbox, without a system call if no thread has
 * read its own: then they have no effect on each other. Returns false if nothing has changed.
 * w_shares_of_threads() reverts it.
 */
W_HIDDEN bool w_shares_keep(void);
W_HIDDEN void w_shares_of_threads(void);

/* The weight of a nice value. */
W_HIDDEN uint32_t w_weight_of_nice(int nice);

#endif
