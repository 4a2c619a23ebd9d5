/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Objects that several threads access: C11 atomics, and plain accesses while the process has one
 * thread.
 */
#ifndef POUNDLOCK_WORLD_ATOMIC_H
#define POUNDLOCK_WORLD_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../sanitizer.h"

/* Stress tests define this to give up the CPU at random before an operation. */
#ifndef W_STEP
#define W_STEP() ((void)0)
#endif
/* Counting tests define this to count read-modify-writes. */
#ifndef W_UPDATE
#define W_UPDATE() W_STEP()
#endif

#define w_likely(x) __builtin_expect(!!(x), 1)
#define w_unlikely(x) __builtin_expect(!!(x), 0)
#define W_HIDDEN __attribute__((visibility("hidden")))
/* A path that uncontended operations do not take: out of line, so that the others stay small. */
#define W_SLOW __attribute__((noinline, cold, unused))

#define W_ATOMIC(T) _Atomic(T)
#define W_TAIL(T) W_ATOMIC(T *)
#define W_SHORT uint32_t

/* glibc's, since 2.32. */
extern char __libc_single_threaded __attribute__((weak));

/*
 * Returns whether the calling thread is the only one of the process, and so the only user of its
 * objects. A file whose objects other processes or signal handlers may use defines W_NEVER_ALONE.
 */
static inline bool w_alone(void)
{
#ifdef W_NEVER_ALONE
	return false;
#else
	return &__libc_single_threaded && __libc_single_threaded;
#endif
}

#define W_AFTER(step, operation) \
	({                       \
		step();          \
		operation;       \
	})
#define W_DO(operation) W_AFTER(W_STEP, operation)

#define w_init(p, v) atomic_init(p, v)
#define w_load_relaxed(p) W_DO(atomic_load_explicit(p, memory_order_relaxed))
#define w_load_acquire(p) W_DO(atomic_load_explicit(p, memory_order_acquire))
#define w_store_relaxed(p, v) W_DO(atomic_store_explicit(p, v, memory_order_relaxed))
#define w_store_release(p, v) W_DO(atomic_store_explicit(p, v, memory_order_release))
/*
 * In a process with one thread, nothing has to be atomic: as in glibc, a read and a write suffice,
 * at a third of the cost. The creation of the next thread orders them.
 */
#define W_READ(p) atomic_load_explicit(p, memory_order_relaxed)
#define W_WRITE(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define W_ALONE_BECOMES(p, value)                               \
	({                                                      \
		__auto_type w_p_ = (p);                         \
		__typeof__(W_READ(w_p_)) w_was_ = W_READ(w_p_); \
		W_WRITE(w_p_, value);                           \
		w_was_;                                         \
	})
#define W_ALONE_CAS(p, old, new)                                \
	({                                                      \
		__auto_type w_p_ = (p);                         \
		__auto_type w_old_ = (old);                     \
		__typeof__(W_READ(w_p_)) w_was_ = W_READ(w_p_); \
		bool w_same_ = w_was_ == *w_old_;               \
		if (w_same_)                                    \
			W_WRITE(w_p_, new);                     \
		else                                            \
			*w_old_ = w_was_;                       \
		w_same_;                                        \
	})
#define W_EITHER(alone, atomic) W_AFTER(W_UPDATE, w_alone() ? (alone) : (atomic))

#define W_EXCHANGE(p, v, order) \
	W_EITHER(W_ALONE_BECOMES(p, v), atomic_exchange_explicit(p, v, order))
#define W_FETCH_ADD(p, v, order) \
	W_EITHER(W_ALONE_BECOMES(p, w_was_ + (v)), atomic_fetch_add_explicit(p, v, order))
#define W_FETCH_OR(p, v, order) \
	W_EITHER(W_ALONE_BECOMES(p, w_was_ | (v)), atomic_fetch_or_explicit(p, v, order))
#define W_FETCH_AND(p, v, order) \
	W_EITHER(W_ALONE_BECOMES(p, w_was_ &(v)), atomic_fetch_and_explicit(p, v, order))
#define W_CAS(p, old, new, order)                                            \
	W_EITHER(W_ALONE_CAS(p, old, new),                                   \
		 atomic_compare_exchange_strong_explicit(p, old, new, order, \
							 memory_order_relaxed))
#define w_exchange_relaxed(p, v) W_EXCHANGE(p, v, memory_order_relaxed)
#define w_exchange_acquire(p, v) W_EXCHANGE(p, v, memory_order_acquire)
#define w_exchange_release(p, v) W_EXCHANGE(p, v, memory_order_release)
#define w_exchange_acq_rel(p, v) W_EXCHANGE(p, v, memory_order_acq_rel)
#define w_compare_exchange_relaxed(p, old, new) W_CAS(p, old, new, memory_order_relaxed)
#define w_compare_exchange_acquire(p, old, new) W_CAS(p, old, new, memory_order_acquire)
#define w_compare_exchange_release(p, old, new) W_CAS(p, old, new, memory_order_release)
#define w_compare_exchange_acq_rel(p, old, new) W_CAS(p, old, new, memory_order_acq_rel)
#define w_fetch_add_relaxed(p, v) W_FETCH_ADD(p, v, memory_order_relaxed)
#define w_fetch_add_acquire(p, v) W_FETCH_ADD(p, v, memory_order_acquire)
#define w_fetch_add_release(p, v) W_FETCH_ADD(p, v, memory_order_release)
#define w_fetch_add_acq_rel(p, v) W_FETCH_ADD(p, v, memory_order_acq_rel)
#define w_fetch_or_relaxed(p, v) W_FETCH_OR(p, v, memory_order_relaxed)
#define w_fetch_or_acquire(p, v) W_FETCH_OR(p, v, memory_order_acquire)
#define w_fetch_or_release(p, v) W_FETCH_OR(p, v, memory_order_release)
#define w_fetch_or_acq_rel(p, v) W_FETCH_OR(p, v, memory_order_acq_rel)
#define w_fetch_and_relaxed(p, v) W_FETCH_AND(p, v, memory_order_relaxed)
#define w_fetch_and_acquire(p, v) W_FETCH_AND(p, v, memory_order_acquire)
#define w_fetch_and_release(p, v) W_FETCH_AND(p, v, memory_order_release)
#define w_fetch_and_acq_rel(p, v) W_FETCH_AND(p, v, memory_order_acq_rel)
#ifdef W_THREAD_SANITIZER
/* ThreadSanitizer does not support fences; an object that all fences modify orders as much. */
extern W_HIDDEN W_ATOMIC(uint32_t) w_fence_word;
#define w_fence_seq_cst() ((void)atomic_fetch_add(&w_fence_word, 1))
#else
#define w_fence_seq_cst() atomic_thread_fence(memory_order_seq_cst)
#endif

#endif
