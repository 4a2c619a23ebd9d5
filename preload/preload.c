/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Initialisation: once, by the first call of an interposed function, or by our constructor.
 *
 * The lock is chosen first, without allocating: looking up glibc's functions may allocate, and a
 * malloc replacement that locks meanwhile must get the lock that it will unlock later.
 */
#include "preload.h"

#include <errno.h>

#include "config.h"
#include "control.h"
#include "debug.h"
#include "layout.h"
#include "real.h"
#include "realtime.h"
#include "rules.h"
#include "spin.h"
#include "stats/stats.h"

static const signed char by_table = WAY_TABLE;

W_ATOMIC(const struct any_ops *) chosen_ops;
W_ATOMIC(const char *) chosen_inlined;
W_ATOMIC(bool) chosen_owners;
W_ATOMIC(const struct any_rw_ops *) chosen_rw_ops;
W_ATOMIC(const signed char *) chosen_rw_way = &by_table;
W_ATOMIC(bool) native_counted;
W_ATOMIC(uint32_t) initialised;

/* The pthread_self() of the thread that initialises the library; 0 before. */
static W_ATOMIC(uintptr_t) initialiser;

static void choose(const struct config *config)
{
	const char *alone = alone_place();
	bool owners = tid_offset && config->ops && config->ops->leaves_middle;
	const struct any_ops *unruled = rules_unruled(config->ops);

	/*
	 * release, all: pair with the acquire of each fast path; settings, w_spin_calibrate()'s
	 * result
	 */
	w_store_release(&chosen_ops, config->ops);
	w_store_release(&chosen_owners, owners);
	w_store_release(&chosen_inlined, owners && any_is_inlined(unruled) ? alone : NULL);
	w_store_release(&chosen_rw_ops, config->rw_ops);
	w_store_release(&chosen_rw_way, any_rw_is_default(rules_rw_unruled(config->rw_ops))
						? (const signed char *)alone
						: &by_table);
	spin_enable(config->spin);
}

/* Calls to the C library's own locks, which nothing counts, need no look into the tables. */
static void call_natively(const struct config *config)
{
	if (!config->ops) {
		CALLS_SET(mutex_calls, lock, real.pthread_mutex_lock);
		CALLS_SET(mutex_calls, trylock, real.pthread_mutex_trylock);
		CALLS_SET(mutex_calls, unlock, real.pthread_mutex_unlock);
	}
	if (!config->rw_ops) {
		CALLS_SET(rwlock_calls, rdlock, real.pthread_rwlock_rdlock);
		CALLS_SET(rwlock_calls, wrlock, real.pthread_rwlock_wrlock);
		CALLS_SET(rwlock_calls, unlock, real.pthread_rwlock_unlock);
	}
}

/* Replaces the tables by those that wait by the settings of each lock. */
static void replace_all(struct config *config)
{
	rules_replace(&config->ops);
	if (config->rw_ops)
		rules_rw_replace(&config->rw_ops);
}

/* Lets others change the settings of locks, and @observed: counts. */
static void observe(struct config *config, bool observed)
{
	bool wanted = config->control && (config->ops || config->native);

	if (wanted && control_start(config->control, rules_unruled(config->ops)))
		replace_all(config);
	if (observed)
		stats_start(config->stats, config->profile, &config->ops, &config->rw_ops);
}

static void initialise_once(void)
{
	struct config config = config_read();
	const char *missing, *unknown;
	bool observed;

	if (!any_start()) {
		config.native = false;
		config.ops = NULL;
		config.rw_ops = NULL;
		config.spin = false;
	}
	/*
	 * Before the first lock: a rule applies to all waits. ThreadSanitizer may not be ready for
	 * the calls.
	 */
	if (config.ops && config.rules && !real_has_sanitizer())
		rules_start(config.rules, config.verbose, &config.ops, &config.rw_ops);
	choose(&config);
	observed = config.stats && (config.ops || config.native);
	missing = real_resolve();
	if (missing)
		config_refuse(&config, missing, "is missing from the C library");
	else if ((unknown = layout_probe()))
		config_refuse(&config, unknown, "has an unknown layout in this C library");
	else if ((config.ops || observed) && real_has_sanitizer())
		config_refuse(&config, "ThreadSanitizer", "needs glibc's own locks");
	else
		observe(&config, observed);
	if (config.ops)
		debug_wrap(&config.ops, &config.rw_ops);
	choose(&config);
	if (stats_on)
		stats_shorten(config.ops, config.rw_ops);
	else if (!missing)
		call_natively(&config);
	/* release: pairs with the acquire of is_native_counted() */
	w_store_release(&native_counted, stats_on && !config.ops);
	if (config.rw_ops)
		realtime_start();
	config_announce(&config);
}

__attribute__((constructor)) void initialise_slow(void)
{
	int saved = errno;
	uintptr_t self = (uintptr_t)pthread_self(), other = 0;

	if (w_load_acquire(&initialised))
		return;
	if (w_compare_exchange_relaxed(&initialiser, &other, self)) {
		initialise_once();
		/* release: pairs with the acquire of initialise() */
		w_store_release(&initialised, 1);
	} else if (other == self) {
		/* A function of the C library that initialise_once() called uses a lock. */
		return;
	}
	while (!w_load_acquire(&initialised))
		w_yield();
	errno = saved;
}
