/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Threads agree by a word per policy, its state, and never wait for each other:
 *
 *   ABSENT     -> CHANGING     registered: one thread writes the policy
 *   IDLE       -> CHANGING     replaced
 *   CHANGING   -> IDLE         written
 *   IDLE       -> ABSENT       unregistered
 *   IDLE + n   -> IDLE + n+1   a lock is initialised with it
 *   IDLE + n+1 -> IDLE + n     such a lock is destroyed
 *
 * CHANGING contains the fork generation of its thread's process: in a child that was forked
 * meanwhile the thread does not exist, and the policy is absent.
 */
#include "policies.h"

#include <errno.h>
#include <string.h>

#include "intern.h"
#include "policy/policy.h"
#include "poundlock.h"

_Static_assert(POUND_STAY == POLICY_STAY, "one and the same");

#define ABSENT 0u
#define IDLE 1u
#define CHANGING 0x80000000u

#define NAME_SIZE 32

struct name {
	char text[NAME_SIZE];
};

/* By number, from POLICY_OWN. */
static struct {
	W_ATOMIC(const void *) name; /* interned; NULL: free */
	W_ATOMIC(uint32_t) state;
} policies[W_OWN_POLICIES];

/* Twice as many: threads that register at the same time may each take one for a moment. */
INTERN(names, struct name, 2 * W_OWN_POLICIES);

static uint32_t changing(void)
{
	return CHANGING | w_fork_generation();
}

static bool is_absent(uint32_t state)
{
	return state == ABSENT || (state & CHANGING && state != changing());
}

/* Whether locks can have the policy of @state. */
static bool is_usable(uint32_t state)
{
	return state >= IDLE && !(state & CHANGING);
}

/* Whether a specification can contain @name, and no policy of core/policy/ is called so. */
static bool is_possible(const char *name)
{
	size_t length = strlen(name);
	const char *builtin;

	if (!length || length >= NAME_SIZE || strpbrk(name, ",= "))
		return false;
	for (builtin = POLICY_NAMES; *builtin;
	     builtin += strcspn(builtin, " "), builtin += !!*builtin)
		if (strcspn(builtin, " ") == length && !memcmp(builtin, name, length))
			return false;
	return true;
}

/* Returns the index of @name; W_OWN_POLICIES if it was never registered. */
static uint32_t index_of(const char *name)
{
	for (uint32_t i = 0; i < W_OWN_POLICIES; i++) {
		/* acquire: pairs with the release in index_for(); the name */
		const struct name *seen =
			atomic_load_explicit(&policies[i].name, memory_order_acquire);

		if (seen && !strcmp(seen->text, name))
			return i;
	}
	return W_OWN_POLICIES;
}

/* The same, but takes a free one. W_OWN_POLICIES: there is none. */
static uint32_t index_for(const char *name)
{
	struct name block = {{0}};
	const void *interned;

	strncpy(block.text, name, NAME_SIZE - 1);
	interned = intern(&names, &block);
	for (uint32_t i = 0; interned && i < W_OWN_POLICIES; i++) {
		const void *seen = NULL;

		/* release: pairs with the acquire in index_of(); the name */
		if (atomic_compare_exchange_strong_explicit(&policies[i].name, &seen, interned,
							    memory_order_acq_rel,
							    memory_order_acquire) ||
		    seen == interned)
			return i;
	}
	return W_OWN_POLICIES;
}

bool policies_find(const char *name, uint32_t *number)
{
	uint32_t index = index_of(name);

	*number = POLICY_OWN + index;
	/* relaxed: policies_hold() decides */
	return index < W_OWN_POLICIES &&
	       is_usable(atomic_load_explicit(&policies[index].state, memory_order_relaxed));
}

bool policies_hold(uint32_t number)
{
	W_ATOMIC(uint32_t) *state;
	uint32_t seen;

	if (number < POLICY_OWN)
		return true;
	state = &policies[number - POLICY_OWN].state;
	/* relaxed: the compare-exchange decides */
	seen = atomic_load_explicit(state, memory_order_relaxed);
	do
		if (!is_usable(seen))
			return false;
	/* acquire: pairs with the release in pound_policy_register(); the policy */
	while (!atomic_compare_exchange_weak_explicit(state, &seen, seen + 1, memory_order_acquire,
						      memory_order_relaxed));
	return true;
}

void policies_drop(uint32_t number)
{
	/* release: pairs with the acquires below; the lock's use of the policy */
	if (number >= POLICY_OWN)
		atomic_fetch_sub_explicit(&policies[number - POLICY_OWN].state, 1,
					  memory_order_release);
}

int pound_policy_register(const char *name, const struct pound_policy *policy)
{
	W_ATOMIC(uint32_t) *state;
	uint32_t index, seen;

	if (!is_possible(name))
		return EINVAL;
	index = index_for(name);
	if (index == W_OWN_POLICIES)
		return ENOSPC;
	state = &policies[index].state;
	/* relaxed: the compare-exchange decides */
	seen = atomic_load_explicit(state, memory_order_relaxed);
	/* acquire: pairs with the release in policies_drop(); the uses by locks */
	if ((!is_absent(seen) && seen != IDLE) ||
	    !atomic_compare_exchange_strong_explicit(state, &seen, changing(), memory_order_acquire,
						     memory_order_relaxed))
		return EBUSY;
	w_own_policies[index] = (struct w_own_policy){.note = policy->note,
						      .rank = policy->rank,
						      .context = policy->context};
	/* release: pairs with the acquire in policies_hold() */
	atomic_store_explicit(state, IDLE, memory_order_release);
	return 0;
}

int pound_policy_unregister(const char *name)
{
	uint32_t index = index_of(name), seen = IDLE;

	if (index == W_OWN_POLICIES)
		return ENOENT;
	/*
	 * acquire: pairs with the release in policies_drop(); the caller may free what the policy
	 * used. It continues that release, for the acquire in pound_policy_register()
	 */
	if (atomic_compare_exchange_strong_explicit(&policies[index].state, &seen, ABSENT,
						    memory_order_acquire, memory_order_relaxed))
		return 0;
	return is_absent(seen) ? ENOENT : EBUSY;
}
