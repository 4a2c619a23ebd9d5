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

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../sanitizer.h"
#include "how.h"

/* The pause between two reads of a wait. Programs that run define it to yield the CPU. */
#ifndef C11_PAUSE
#define C11_PAUSE ((void)0)
#endif

int __VERIFIER_nondet_int(void);

#define w_likely(x) (x)
#define w_unlikely(x) (x)
#define W_SLOW __attribute__((unused))

/* ---- Objects ---- */

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
#ifdef W_THREAD_SANITIZER
/*
 * ThreadSanitizer does not support fences. A read-modify-write of one common object orders as much.
 */
static W_ATOMIC(uint32_t) c11_fence_word __attribute__((unused));
#define w_fence_seq_cst() ((void)atomic_fetch_add(&c11_fence_word, 1))
#else
#define w_fence_seq_cst() atomic_thread_fence(memory_order_seq_cst)
#endif

/* ---- Waiting ---- */

/* Expires at any time, and stays expired for the thread until check_renew_deadline(). */
struct w_deadline {
	char unused;
};

#define w_deadline_at(time) ((void)(time), (struct w_deadline){0})

extern _Thread_local bool c11_expired;

static inline bool c11_choose(void)
{
	return __VERIFIER_nondet_int() & 1;
}

static inline bool w_expired(const struct w_deadline *deadline)
{
	if (deadline && !c11_expired)
		c11_expired = c11_choose();
	return deadline && c11_expired;
}

static inline bool c11_gives_up(enum w_how how, const struct w_deadline *deadline)
{
	return (how >= W_BRIEF && c11_choose()) || w_expired(deadline);
}

/* The loop of every wait. */
#define C11_WAIT(p, COND, how, deadline, order)                       \
	({                                                            \
		__auto_type c11_p_ = (p);                             \
		__typeof__(atomic_load_explicit(c11_p_, order)) VAL = \
			atomic_load_explicit(c11_p_, order);          \
		while (!(COND) && !c11_gives_up((how), (deadline))) { \
			C11_PAUSE;                                    \
			VAL = atomic_load_explicit(c11_p_, order);    \
		}                                                     \
		VAL;                                                  \
	})

#define w_wait_acquire(p, COND, how, deadline) \
	C11_WAIT(p, COND, how, deadline, memory_order_acquire)
#define w_await_acquire(p, COND) w_wait_acquire(p, COND, W_SPIN, NULL)
#define w_has_own_cpu() c11_choose()

#define W_OWN_LINE _Alignas(64)
#define w_prefetch(p) ((void)(p))
#define w_pause_for(pauses) ((void)(pauses))
#define w_yield() C11_PAUSE
#define W_SPIN_ROW 1u

static inline void w_park(W_ATOMIC(uint32_t) *p, uint32_t expected,
			  const struct w_deadline *deadline)
{
	(void)C11_WAIT(p, VAL != expected, W_YIELD, deadline, memory_order_relaxed);
}

#define w_unpark(p) ((void)(p))
#define w_unpark_all(p) ((void)(p))

/* ---- Place, time and thread ---- */

#define C11_THREADS 8
#define C11_DOMAINS 2u

extern _Thread_local uint32_t c11_self;

#define w_event(name) ((void)0)
#define w_cpu() c11_self
#define w_cpu_count() ((uint32_t)C11_THREADS)
#define W_CONTEXTS 1u
/* No waiter is urgent, and bounds on bypassing are counts. */
#define W_URGENCY 0
#define w_urgent() false
#define W_THRESHOLD 0u
#define w_route_position() c11_self
#define w_domain() ((int32_t)(c11_self % C11_DOMAINS))
#define w_domain_count() C11_DOMAINS
#define W_LEVELS 2
#define w_domain_parents(level) ((void)(level), 1u)
#define w_domain_parent(level, domain) ((void)(level), (void)(domain), 0u)
#define w_now() ((uint64_t)(uint32_t)__VERIFIER_nondet_int())
#define w_random() ((uint32_t)__VERIFIER_nondet_int())
#define w_fork_generation() 0u

/* A thread's account of its use of a lock is constant, and differs between threads. */
struct w_account {
	const void *lock;
	uint64_t held, until, since;
	uint32_t recent;
};

#define w_account(lock) (&(struct w_account){(lock), (uint64_t)c11_self << 8, 0, 0, c11_self})
#define w_self_id() (c11_self + 1)
#define w_weight() 1024u
#define W_GROUPS 2
#define w_group() (c11_self % 2)
#define w_group_weight(group) ((void)(group), 1024u)
#define w_own_policy_note(number, lock) ((void)(number), (void)(lock), 0u)
#define w_own_policy_rank(number, shuffler, waiter) \
	((void)(number), (void)(shuffler), (void)(waiter), (uint32_t)__VERIFIER_nondet_int())

/* A waiter's node; free if its status is 0. */
struct w_node {
	_Alignas(64) W_ATOMIC(uint32_t) status;
	char rest[60];
};

#define W_NODES 5

void *w_node_get(void);

#define w_node_choose() w_node_get()
#define w_node_settle(node) ((void)(node))
#define w_waiter_node(on_stack, may_leave) ((may_leave) ? w_node_get() : (void *)(on_stack))

/* The offset of the locks' common block, after the client's own data, as in world/check. */
#ifndef CHECK_COMMON
#define CHECK_COMMON 512
#endif
extern _Alignas(64) char c11_shared[];
#define w_common(bytes) ((void)(bytes), (void *)(c11_shared + CHECK_COMMON))

/*
 * The common block contains the only slot, and the count of unique numbers that each thread has
 * drawn.
 */
#define w_slot(number) ((void)(number), (W_ATOMIC(uint32_t) *)w_common(0))
#define w_unique() ((uint64_t)c11_self << 32 | ++((uint32_t *)w_common(0))[1 + c11_self])

/*
 * The entry of a visible reader. A client with readers keeps the start of its memory free for them.
 */
struct w_visible {
	W_ATOMIC(uint64_t) bias;
	W_ATOMIC(uint32_t) reader;
	uint32_t depth;
};

#define W_VISIBLE 2u
#define w_visible(i) (&((struct w_visible *)(void *)c11_shared)[i])

/* Also at the start of the common block: no lock uses both. */
#define W_QUEUE_NODES 3u
#define w_queue_node(i) (&((struct w_node *)(c11_shared + CHECK_COMMON))[i])
#define w_process() 1u

#endif
