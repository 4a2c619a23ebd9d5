/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Asserts at build time that poundlock.h has the fast paths of core/shfl_mutex.h and core/cond.h.
 *
 * The two cannot share their text: a program that includes poundlock.h has no world.h, and the
 * model checker and its mutants need the core's operations. So both are compiled here with
 * operations that only record their arguments. The compiler evaluates the comparison, and reports
 * an error if the call of fast_paths_differ() remains, as the kernel's BUILD_BUG_ON() does.
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

/* The loads of one call, at most two, and what they return. */
struct load {
	const void *word;
	int order;
};

static struct look {
	uint32_t loads;
	struct load first, second;
} last_look;
static uintptr_t first_value, second_value;

static inline uintptr_t record_load(const void *word, int order)
{
	if (last_look.loads++) {
		last_look.second = (struct load){word, order};
		return second_value;
	}
	last_look.first = (struct load){word, order};
	return first_value;
}

#include "part/list_lock.h"
#undef w_load_acquire
#define w_load_acquire(word) record_load(word, __ATOMIC_ACQUIRE)
#include "cond.h"

#define __atomic_load_n(word, order) record_load(word, order)
#define __atomic_compare_exchange_n(word, seen, to, weak, order, failure) \
	record(word, *(seen), to, order)
#include "poundlock.h"

/* Only code that is optimised is evaluated. */
#ifdef __OPTIMIZE__

void fast_paths_differ(void)
	__attribute__((error("the fast paths of poundlock.h and of core differ")));

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

/* @pound's load of the variable at @pound_base is @core's of the one at @core_base. */
static inline void assert_same_load(struct load core, const struct cond *core_base,
				    struct load pound, const pound_cond_t *pound_base)
{
	if ((const char *)core.word - (const char *)core_base !=
		    (const char *)pound.word - (const char *)pound_base ||
	    core.order != pound.order)
		fast_paths_differ();
}

/* The same result and loads, of which the first returns @last and the second @list. */
__attribute__((always_inline)) static inline void assert_same_look(uintptr_t last, uintptr_t list)
{
	pound_cond_t pound;
	struct look core;
	struct cond cond;
	bool idle;

	first_value = last;
	second_value = list;
	last_look.loads = 0;
	idle = cond_idle(&cond);
	core = last_look;
	last_look.loads = 0;
	if (pound_cond_idle(&pound) != idle || last_look.loads != core.loads)
		fast_paths_differ();
	assert_same_load(core.first, &cond, last_look.first, &pound);
	if (core.loads > 1)
		assert_same_load(core.second, &cond, last_look.second, &pound);
}

__attribute__((used)) static void assert_same_looks(void)
{
	assert_same_look(0, 0);
	assert_same_look(0, 1);
	assert_same_look(1, 0);
}

#endif
