/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Settings of the kernel's ShflLocks that change while they are used: `policy`, the order of the
 * waiters, and `batch`, the bound on bypasses; for all spin locks, all mutexes and all rwsems, and
 * for up to TUNED_MOST single locks by their address. tuning.c has the files that show and set
 * them; the model checker's client is tests/check/kernel_tuning.c.
 *
 * A waiter reads the settings once, in the slow path before it queues, and keeps them until it has
 * left the queue. Waiters of one queue may thus differ. The order is then a mixture, and a waiter
 * is bypassed at most twice as often as the largest of their batches (part/shuffle.h).
 *
 * RCU cannot protect the table of locks: spin locks are taken where RCU does not watch, on idle and
 * departing CPUs, and by RCU itself. So the table is static, and has two copies, as with the
 * kernel's seqcount_latch_t. The writer fills the copy that is not in use, then increments the
 * version. A reader that finds another version after its lookup repeats it, and never waits for a
 * writer that it may have interrupted.
 */
#ifndef POUNDLOCK_KERNEL_TUNING_H
#define POUNDLOCK_KERNEL_TUNING_H

#include "policy/policy.h"

enum tuned { TUNED_SPIN, TUNED_MUTEX, TUNED_RWSEM, TUNED_KINDS };

/* The settings of one waiter. */
struct tuning {
	enum policy policy;
	u32 batch;
	/* Under a loaded policy: the beginning of the wait, and the policy's period then. */
	u64 since;
	u32 period;
};

/* A pair of settings in a word: policy + 1 in the lowest byte, batch above it. 0: not set. */
#define TUNING_BATCH_SHIFT 8
#define TUNING_POLICY_MASK ((1u << TUNING_BATCH_SHIFT) - 1)

static inline u32 tuning_policy_bits(enum policy policy)
{
	return (u32)policy + 1;
}

static inline u32 tuning_batch_bits(u32 batch)
{
	return batch << TUNING_BATCH_SHIFT;
}

/* The settings of @own, and of @otherwise, which has both, where @own has none. */
static inline struct tuning tuning_from(u32 own, u32 otherwise)
{
	u32 policy = own & TUNING_POLICY_MASK ? own : otherwise;
	u32 batch = own >> TUNING_BATCH_SHIFT ? own : otherwise;

	return (struct tuning){.policy = (enum policy)((policy & TUNING_POLICY_MASK) - 1),
			       .batch = batch >> TUNING_BATCH_SHIFT};
}

/* ---- The table of single locks ---- */

#define TUNED_MOST 256u
/* Places of a copy: a power of two and more than TUNED_MOST, so that a search meets a free one. */
#ifndef TUNED_PLACE_BITS
#define TUNED_PLACE_BITS 9
#endif
#define TUNED_PLACES (1u << TUNED_PLACE_BITS)

struct tuned_lock {
	W_ATOMIC(unsigned long) address; /* 0: free */
	W_ATOMIC(u32) word;
};

struct tuned_table {
	W_ATOMIC(u32) version; /* its lowest bit is the copy in use */
	W_ATOMIC(u32) used;    /* whether it has locks */
	struct tuned_lock copies[2][TUNED_PLACES];
};

/* The place of @address in @copy, or a free one; NULL if a change of @copy hides both. */
static inline struct tuned_lock *tuned_place(struct tuned_lock *copy, unsigned long address)
{
	u32 at = (u32)hash_long(address, TUNED_PLACE_BITS), i;
	unsigned long seen;

	for (i = 0; i < TUNED_PLACES; i++, at = (at + 1) % TUNED_PLACES) {
		/* acquire: pairs with the release of tuned_publish(); see there */
		seen = w_load_acquire(&copy[at].address);
		if (!seen || seen == address)
			return &copy[at];
	}
	return NULL;
}

/* The settings of the lock at @address; 0 if it has none of its own. */
static W_SLOW u32 tuned_find(struct tuned_table *table, unsigned long address)
{
	struct tuned_lock *place;
	u32 version, word;

	do {
		/* acquire: pairs with the release of tuned_publish(); the copy in use */
		version = w_load_acquire(&table->version);
		place = tuned_place(table->copies[version % 2], address);
		/*
		 * acquire: pairs with the release of tuned_publish(). The word of a free place is 0
		 */
		word = place ? w_load_acquire(&place->word) : 0;
		/* relaxed: behind acquires, with which a change of the copy becomes visible */
	} while (w_load_relaxed(&table->version) != version);
	return word;
}

/*
 * Makes @list, of @count locks, the table. One caller at a time. The stores to a copy are releases:
 * a reader that finds one of them in what was the copy in use also finds the version that was
 * incremented before.
 */
static inline void tuned_publish(struct tuned_table *table, const struct tuned_lock *list,
				 u32 count)
{
	/* relaxed: only the caller writes it */
	const u32 version = w_load_relaxed(&table->version);
	struct tuned_lock *copy = table->copies[(version + 1) % 2], *place;
	u32 i;

	for (i = 0; i < TUNED_PLACES; i++) {
		w_store_release(&copy[i].address, 0ul);
		w_store_release(&copy[i].word, 0u);
	}
	for (i = 0; i < count; i++) {
		place = tuned_place(copy, list[i].address);
		w_store_release(&place->word, list[i].word);
		w_store_release(&place->address, list[i].address);
	}
	/* release: pairs with the acquire of tuned_find(); the copy */
	w_store_release(&table->version, version + 1);
	/* relaxed: a hint, of which a waiter that has just come may see the value before */
	w_store_relaxed(&table->used, count);
}

/* ---- A waiter's settings ---- */

#ifndef tuning_of /* the model checker's clients have their own */
extern u32 tunings[TUNED_KINDS];
extern struct tuned_table tuned_locks;

/* @by, or with numa if its policy has no program (own_policy.h). */
static inline struct tuning tuning_loaded(struct tuning by)
{
#ifdef OWN_POLICIES
	if (by.policy < POLICY_OWN)
		return by;
	if (!own_policy_is_loaded(by.policy - POLICY_OWN)) {
		by.policy = POLICY_NUMA;
		return by;
	}
	by.since = w_now();
	by.period = own_policy_wait(by.policy - POLICY_OWN);
#endif
	return by;
}

/* The settings of the lock of kind @kind at @lock. */
static inline struct tuning tuning_of(enum tuned kind, const void *lock)
{
	u32 own = w_load_relaxed(&tuned_locks.used) ? tuned_find(&tuned_locks, (unsigned long)lock)
						    : 0;

	return tuning_loaded(tuning_from(own, READ_ONCE(tunings[kind])));
}
#endif

/* Called by a waiter after its wait by the settings @by. */
static inline void tuning_end(struct tuning by)
{
#ifdef OWN_POLICIES
	if (by.policy >= POLICY_OWN)
		own_policy_waited(by.policy - POLICY_OWN, by.period, by.since);
#endif
}

#endif
