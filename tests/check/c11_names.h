/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The names of stdatomic.h that lib/ uses, for the model checker: the explorer chooses the result
 * of every operation.
 */
#ifndef POUNDLOCK_CHECK_STDATOMIC_H
#define POUNDLOCK_CHECK_STDATOMIC_H

#include "check.h"

#define W_HIDDEN

#define memory_order_relaxed CHECK_RELAXED
#define memory_order_acquire CHECK_ACQUIRE
#define memory_order_release CHECK_RELEASE
#define memory_order_acq_rel CHECK_ACQ_REL

#define atomic_load_explicit(p, order) CHECK_OPERATE(#p, "load", CHECK_LOAD, order, p, 0, 0)
#define atomic_store_explicit(p, v, order) \
	((void)CHECK_OPERATE(#p, "store", CHECK_STORE, order, p, v, 0))
#define atomic_exchange_explicit(p, v, order) \
	CHECK_OPERATE(#p, "exchange", CHECK_EXCHANGE, order, p, v, 0)
#define atomic_fetch_sub_explicit(p, v, order) \
	CHECK_OPERATE(#p, "fetch_sub", CHECK_FETCH_ADD, order, p, -(v), 0)
/* A failure is a relaxed load. One that has to acquire loads once more. */
#define atomic_compare_exchange_strong_explicit(p, old, new, order, failure)                    \
	({                                                                                      \
		__auto_type seen_p_ = (old);                                                    \
		bool did_ = CHECK_CAS(#p, "compare_exchange", order, p, seen_p_, new);          \
		if (!did_ && (failure) != CHECK_RELAXED)                                        \
			*seen_p_ = CHECK_OPERATE(#p, "compare_exchange that fails", CHECK_LOAD, \
						 failure, p, 0, 0);                             \
		did_;                                                                           \
	})
#define atomic_compare_exchange_weak_explicit atomic_compare_exchange_strong_explicit

#endif
