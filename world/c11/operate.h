/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The model checker's operations (world/check/world.h) on plain objects, by the compiler's atomics:
 * for a client of another world's objects, which are plain (CHECK_OBJECTS). The compiler accepts
 * operations of different sizes on one object. ThreadSanitizer sees no order between operations at
 * different addresses in it.
 */
#ifndef POUNDLOCK_C11_OPERATE_H
#define POUNDLOCK_C11_OPERATE_H

#define C11_CHECK_RELAXED __ATOMIC_RELAXED
#define C11_CHECK_ACQUIRE __ATOMIC_ACQUIRE
#define C11_CHECK_RELEASE __ATOMIC_RELEASE
#define C11_CHECK_ACQ_REL __ATOMIC_ACQ_REL
#define C11_CHECK_SEQ_CST __ATOMIC_SEQ_CST

#define C11_CHECK_LOAD(p, v, old, order) __atomic_load_n(p, order)
#define C11_CHECK_STORE(p, v, old, order) __atomic_store_n(p, (__typeof__(*(p)))(v), order)
#define C11_CHECK_EXCHANGE(p, v, old, order) __atomic_exchange_n(p, (__typeof__(*(p)))(v), order)
#define C11_CHECK_FETCH_ADD(p, v, old, order) __atomic_fetch_add(p, v, order)
#define C11_CHECK_FETCH_OR(p, v, old, order) __atomic_fetch_or(p, v, order)
#define C11_CHECK_FETCH_AND(p, v, old, order) __atomic_fetch_and(p, v, order)
#define C11_CHECK_COMPARE_EXCHANGE(p, v, old, order)      \
	({                                                \
		__typeof__(*(p)) seen_ = (old);           \
		(void)C11_CAS_PLAIN(order, p, &seen_, v); \
		seen_;                                    \
	})

/* @kind and @order are names of the checker's, which are not defined here. */
#define CHECK_OPERATE(text, name, kind, order, p, operand, expected) \
	(C11_STEP, C11_##kind(p, operand, expected, C11_##order))

#define CHECK_CAS(text, name, order, p, old, new) \
	(C11_STEP, C11_CAS_PLAIN(C11_##order, p, old, new))
#define C11_CAS_PLAIN(order, p, old, new)                                            \
	__atomic_compare_exchange_n(p, old, (__typeof__(*(p)))(new), false, (order), \
				    __ATOMIC_RELAXED)

#define CHECK_WAIT_SITE(text, name, order, p, COND, how, deadline) \
	C11_WAIT_BY(C11_LOAD_PLAIN_##order, p, COND, how, deadline)
#define C11_LOAD_PLAIN_CHECK_RELAXED(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define C11_LOAD_PLAIN_CHECK_ACQUIRE(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)

#define C11_CHECK_CHOOSE(p, v, old, order) ((uint32_t)__VERIFIER_nondet_int() % (v))
#define C11_CHECK_FENCE(p, v, old, order) (c11_fence(), 0u)

#define CHECK_DO(name, kind, order, object, operand, expected) \
	C11_##kind(object, operand, expected, C11_##order)

#endif
