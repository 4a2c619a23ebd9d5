/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The world of plain C11: stdatomic.h without system calls, so that other model checkers (GenMC,
 * Dartagnan) and sanitizers can process the locks unchanged. world/README.md is the contract of
 * each operation.
 *
 * Results that the environment decides come from __VERIFIER_nondet_int(), which those checkers
 * implement; nondet.c has a version for programs that run. Every wait is the loop of C11_WAIT. A
 * sleep is a wait for the value to change, so this world cannot detect a lost wake-up; world/check
 * does.
 */
#ifndef POUNDLOCK_WORLD_C11_H
#define POUNDLOCK_WORLD_C11_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../sanitizer.h"
#include "how.h"

extern _Thread_local uint32_t c11_self;
extern _Alignas(64) char c11_shared[];

#define check_self() c11_self
#define CHECK_MEMORY c11_shared

/* The pause between two reads of a wait. Programs that run define it to yield the CPU. */
#ifndef C11_PAUSE
#define C11_PAUSE ((void)0)
#endif

/* Before each operation of operate.h. Programs that run define it to yield the CPU at random. */
#ifndef C11_STEP
#define C11_STEP ((void)0)
#endif
void c11_step(void);

int __VERIFIER_nondet_int(void);

/* ---- Objects ---- */

#ifdef W_THREAD_SANITIZER
/*
 * ThreadSanitizer does not support fences. A read-modify-write of one common object orders as much.
 */
static uint32_t c11_fence_word __attribute__((unused));
#define c11_fence() ((void)__atomic_fetch_add(&c11_fence_word, 1, __ATOMIC_SEQ_CST))
#else
#define c11_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/*
 * A client of another world's objects implements those by the operations of operate.h. The kernel's
 * have names of stdatomic.h.
 */
#ifdef CHECK_OBJECTS
#include "operate.h"
#include CHECK_OBJECTS
#else

#include <stdatomic.h>

#define W_ATOMIC(T) _Atomic(T)
#define W_TAIL(T) W_ATOMIC(T *)
#define W_SHORT uint32_t

#define w_init(p, v) atomic_init(p, v)
#define w_load_relaxed(p) atomic_load_explicit(p, memory_order_relaxed)
#define w_load_acquire(p) atomic_load_explicit(p, memory_order_acquire)
#define w_store_relaxed(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define w_store_release(p, v) atomic_store_explicit(p, v, memory_order_release)
#define w_exchange_relaxed(p, v) atomic_exchange_explicit(p, v, memory_order_relaxed)
#define w_exchange_acquire(p, v) atomic_exchange_explicit(p, v, memory_order_acquire)
#define w_exchange_release(p, v) atomic_exchange_explicit(p, v, memory_order_release)
#define w_exchange_acq_rel(p, v) atomic_exchange_explicit(p, v, memory_order_acq_rel)
#define C11_CAS(p, old, new, order) \
	atomic_compare_exchange_strong_explicit(p, old, new, order, memory_order_relaxed)
#define w_compare_exchange_relaxed(p, old, new) C11_CAS(p, old, new, memory_order_relaxed)
#define w_compare_exchange_acquire(p, old, new) C11_CAS(p, old, new, memory_order_acquire)
#define w_compare_exchange_release(p, old, new) C11_CAS(p, old, new, memory_order_release)
#define w_compare_exchange_acq_rel(p, old, new) C11_CAS(p, old, new, memory_order_acq_rel)
#define w_fetch_add_relaxed(p, v) atomic_fetch_add_explicit(p, v, memory_order_relaxed)
#define w_fetch_add_acquire(p, v) atomic_fetch_add_explicit(p, v, memory_order_acquire)
#define w_fetch_add_release(p, v) atomic_fetch_add_explicit(p, v, memory_order_release)
#define w_fetch_add_acq_rel(p, v) atomic_fetch_add_explicit(p, v, memory_order_acq_rel)
#define w_fetch_or_relaxed(p, v) atomic_fetch_or_explicit(p, v, memory_order_relaxed)
#define w_fetch_or_acquire(p, v) atomic_fetch_or_explicit(p, v, memory_order_acquire)
#define w_fetch_or_release(p, v) atomic_fetch_or_explicit(p, v, memory_order_release)
#define w_fetch_or_acq_rel(p, v) atomic_fetch_or_explicit(p, v, memory_order_acq_rel)
#define w_fetch_and_relaxed(p, v) atomic_fetch_and_explicit(p, v, memory_order_relaxed)
#define w_fetch_and_acquire(p, v) atomic_fetch_and_explicit(p, v, memory_order_acquire)
#define w_fetch_and_release(p, v) atomic_fetch_and_explicit(p, v, memory_order_release)
#define w_fetch_and_acq_rel(p, v) atomic_fetch_and_explicit(p, v, memory_order_acq_rel)
#define w_fence_seq_cst() c11_fence()

#endif

#include "worlds.h"

/* ---- Waiting ---- */

/* Whether the thread's deadlines have expired: at any time, and until check_renew_deadline(). */
extern _Thread_local bool c11_expired;

static inline bool c11_choose(void)
{
	return __VERIFIER_nondet_int() & 1;
}

/* A client may have deadlines of its own type. */
static inline bool w_expired(const void *deadline)
{
	if (deadline && !c11_expired)
		c11_expired = c11_choose();
	return deadline && c11_expired;
}

static inline bool c11_gives_up(enum w_how how, const void *deadline)
{
	return (how >= W_BRIEF && c11_choose()) || w_expired(deadline);
}

/* The loop of every wait, which reads by @load. */
#define C11_WAIT_BY(load, p, COND, how, deadline)                     \
	({                                                            \
		__auto_type c11_p_ = (p);                             \
		__typeof__(load(c11_p_)) VAL = load(c11_p_);          \
		while (!(COND) && !c11_gives_up((how), (deadline))) { \
			C11_PAUSE;                                    \
			VAL = load(c11_p_);                           \
		}                                                     \
		VAL;                                                  \
	})

#define w_wait_acquire(p, COND, how, deadline) C11_WAIT_BY(w_load_acquire, p, COND, how, deadline)
#define w_await_acquire(p, COND) w_wait_acquire(p, COND, W_SPIN, NULL)
#define w_has_own_cpu() c11_choose()

#define W_OWN_LINE _Alignas(64)
#define w_prefetch(p) ((void)(p))
#define w_pause_for(pauses) ((void)(pauses))
#define w_yield() C11_PAUSE
#define W_SPIN_ROW 1u

static inline void c11_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const void *deadline)
{
	(void)C11_WAIT_BY(w_load_relaxed, p, VAL != expected, W_YIELD, deadline);
}

#define w_park(p, expected, deadline) c11_park(p, expected, deadline)
#define w_unpark(p) ((void)(p))
#define w_unpark_all(p) ((void)(p))

/* ---- Place, time and thread ---- */

#define C11_THREADS 8

#define w_event(name) ((void)0)
#define w_cpu() c11_self
#define w_cpu_count() ((uint32_t)C11_THREADS)
#define w_route_position() c11_self
#define w_domain_at(position) ((int32_t)((position) % w_domain_count()))
#define w_domain() w_domain_at(c11_self)
#ifndef CHECK_NOW
#define CHECK_NOW() ((uint64_t)(uint32_t)__VERIFIER_nondet_int())
#endif
#define w_now() CHECK_NOW()
#define w_random() ((uint32_t)__VERIFIER_nondet_int())
#define w_fork_generation() 0u

/* A thread's account of its use of a lock is constant, and differs between threads. */
struct w_account {
	const void *lock;
	uint64_t held, until, since;
	uint32_t recent;
};

#define w_account(lock) (&(struct w_account){(lock), (uint64_t)c11_self << 8, 0, 0, c11_self})
#define w_own_policy_rank(number, shuffler, waiter) \
	((void)(number), (void)(shuffler), (void)(waiter), (uint32_t)__VERIFIER_nondet_int())

#define w_process() 1u

#endif
