/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Asserts at build time that poundlock.h and core/shfl_mutex.h have the same fast path.
 *
 * The two cannot share their text: a program that includes poundlock.h has no world.h, and the
 * model checker and its mutants need the core's operations. So both are compiled here with
 * compare-exchanges that only record their arguments. The compiler evaluates the comparison, and
 * reports an error if the call of fast_paths_differ() remains, as the kernel's BUILD_BUG_ON() does.
 */
#include "part/disguise.h"
#include "part/generation.h"
#include "part/shuffle.h"
#include "world.h"

struct change {
	const void *word;
	uint32_t from, to;
	int order;
};

static struct change last_change;

static inline bool record(const void *word, uint32_t from, uint32_t to, int order)
{
	last_change = (struct change){word, from, to, order};
	return true;
}

#undef w_compare_exchange_acquire
#undef w_compare_exchange_release
#define w_compare_exchange_acquire(word, seen, to) record(word, *(seen), to, __ATOMIC_ACQUIRE)
#define w_compare_exchange_release(word, seen, to) record(word, *(seen), to, __ATOMIC_RELEASE)
#include "shfl_mutex.h"

#define __atomic_compare_exchange_n(word, seen, to, weak, order, failure) \
	record(word, *(seen), to, order)
#include "poundlock.h"

/* Only code that is optimised is evaluated. */
#ifdef __OPTIMIZE__

void fast_paths_differ(void)
	__attribute__((error("the fast paths of poundlock.h and core/shfl_mutex.h differ")));

/* The last change, of a word of @mutex, is @core's of @lock. */
static inline void assert_same(struct change core, const struct shfl_mutex *lock,
			       const pound_mutex_t *mutex)
{
	size_t place = (const char *)core.word - (const char *)lock;

	if ((size_t)((const char *)last_change.word - (const char *)mutex) != place ||
	    last_change.from != core.from || last_change.to != core.to ||
	    last_change.order != core.order)
		fast_paths_differ();
}

__attribute__((used)) static void assert_same_fast_path(void)
{
	const struct shfl_mutex_policy any = {0};
	struct shfl_mutex lock;
	pound_mutex_t mutex;
	struct change core;
	uint32_t seen;

	(void)shfl_mutex_take_free(&lock, &seen);
	core = last_change;
	(void)pound_mutex_take_free(&mutex, &seen, false);
	assert_same(core, &lock, &mutex);

	(void)shfl_mutex_release(&lock, any);
	core = last_change;
	(void)pound_mutex_release_alone(&mutex, false);
	assert_same(core, &lock, &mutex);
}

#endif
