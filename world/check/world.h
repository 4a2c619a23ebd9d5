/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The world of the model checker: the explorer chooses the result of every operation. Each
 * operation guarantees exactly the contract in world/README.md, and no more. Plain accesses reach
 * the engine through the compiler's -fsanitize=thread.
 */
#ifndef POUNDLOCK_WORLD_CHECK_H
#define POUNDLOCK_WORLD_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "how.h"

#define check_self() check_engine->self()
#define CHECK_MEMORY ((char *)0x100000000000)

/* ---- Objects ---- */

#define CHECK_SITE(text, name, kind_, order_, size_)               \
	static const struct check_site site_ = {.file = __FILE__,  \
						.operation = name, \
						.object = text,    \
						.line = __LINE__,  \
						.kind = kind_,     \
						.order = order_,   \
						.size = size_}

#define CHECK_OPERATE(text, name, kind, order, p, operand, expected)                            \
	({                                                                                      \
		__auto_type p_ = (p);                                                           \
		CHECK_SITE(text, name, kind, order, sizeof(*p_));                               \
		(__typeof__(*p_))check_engine->operate(&site_, (void *)p_, (uint64_t)(operand), \
						       (uint64_t)(expected));                   \
	})

/* A compare-exchange; a failure is a relaxed load. */
#define CHECK_CAS(text, name, order, p, old, new)                                                \
	({                                                                                       \
		__auto_type old_ = (old);                                                        \
		__typeof__(*old_) seen_ =                                                        \
			CHECK_OPERATE(text, name, CHECK_COMPARE_EXCHANGE, order, p, new, *old_); \
		bool done_ = seen_ == *old_;                                                     \
		*old_ = seen_;                                                                   \
		done_;                                                                           \
	})

/* An operation without an object, or on one that it does not read. */
#define CHECK_DO(name, kind, order, object, operand, expected)                       \
	({                                                                           \
		CHECK_SITE(#object, name, kind, order, 0);                           \
		check_engine->operate(&site_, (void *)(object), (uint64_t)(operand), \
				      (uint64_t)(expected));                         \
	})

/* A client of another world's objects implements those by the macros above. */
#ifdef CHECK_OBJECTS
#include CHECK_OBJECTS
#else

#define W_ATOMIC(T) __typeof__(T)
#define W_TAIL(T) W_ATOMIC(T *)
#define W_SHORT uint32_t

#define w_init(p, v) ((void)(*(p) = (v)))
#define w_load_relaxed(p) CHECK_OPERATE(#p, "load_relaxed", CHECK_LOAD, CHECK_RELAXED, p, 0, 0)
#define w_load_acquire(p) CHECK_OPERATE(#p, "load_acquire", CHECK_LOAD, CHECK_ACQUIRE, p, 0, 0)
#define w_store_relaxed(p, v) \
	((void)CHECK_OPERATE(#p, "store_relaxed", CHECK_STORE, CHECK_RELAXED, p, v, 0))
#define w_store_release(p, v) \
	((void)CHECK_OPERATE(#p, "store_release", CHECK_STORE, CHECK_RELEASE, p, v, 0))
#define w_exchange_relaxed(p, v) \
	CHECK_OPERATE(#p, "exchange_relaxed", CHECK_EXCHANGE, CHECK_RELAXED, p, v, 0)
#define w_exchange_acquire(p, v) \
	CHECK_OPERATE(#p, "exchange_acquire", CHECK_EXCHANGE, CHECK_ACQUIRE, p, v, 0)
#define w_exchange_release(p, v) \
	CHECK_OPERATE(#p, "exchange_release", CHECK_EXCHANGE, CHECK_RELEASE, p, v, 0)
#define w_exchange_acq_rel(p, v) \
	CHECK_OPERATE(#p, "exchange_acq_rel", CHECK_EXCHANGE, CHECK_ACQ_REL, p, v, 0)
#define w_compare_exchange_relaxed(p, old, new) \
	CHECK_CAS(#p, "compare_exchange_relaxed", CHECK_RELAXED, p, old, new)
#define w_compare_exchange_acquire(p, old, new) \
	CHECK_CAS(#p, "compare_exchange_acquire", CHECK_ACQUIRE, p, old, new)
#define w_compare_exchange_release(p, old, new) \
	CHECK_CAS(#p, "compare_exchange_release", CHECK_RELEASE, p, old, new)
#define w_compare_exchange_acq_rel(p, old, new) \
	CHECK_CAS(#p, "compare_exchange_acq_rel", CHECK_ACQ_REL, p, old, new)
#define w_fetch_add_relaxed(p, v) \
	CHECK_OPERATE(#p, "fetch_add_relaxed", CHECK_FETCH_ADD, CHECK_RELAXED, p, v, 0)
#define w_fetch_add_acquire(p, v) \
	CHECK_OPERATE(#p, "fetch_add_acquire", CHECK_FETCH_ADD, CHECK_ACQUIRE, p, v, 0)
#define w_fetch_add_release(p, v) \
	CHECK_OPERATE(#p, "fetch_add_release", CHECK_FETCH_ADD, CHECK_RELEASE, p, v, 0)
#define w_fetch_add_acq_rel(p, v) \
	CHECK_OPERATE(#p, "fetch_add_acq_rel", CHECK_FETCH_ADD, CHECK_ACQ_REL, p, v, 0)
#define w_fetch_or_relaxed(p, v) \
	CHECK_OPERATE(#p, "fetch_or_relaxed", CHECK_FETCH_OR, CHECK_RELAXED, p, v, 0)
#define w_fetch_or_acquire(p, v) \
	CHECK_OPERATE(#p, "fetch_or_acquire", CHECK_FETCH_OR, CHECK_ACQUIRE, p, v, 0)
#define w_fetch_or_release(p, v) \
	CHECK_OPERATE(#p, "fetch_or_release", CHECK_FETCH_OR, CHECK_RELEASE, p, v, 0)
#define w_fetch_or_acq_rel(p, v) \
	CHECK_OPERATE(#p, "fetch_or_acq_rel", CHECK_FETCH_OR, CHECK_ACQ_REL, p, v, 0)
#define w_fetch_and_relaxed(p, v) \
	CHECK_OPERATE(#p, "fetch_and_relaxed", CHECK_FETCH_AND, CHECK_RELAXED, p, v, 0)
#define w_fetch_and_acquire(p, v) \
	CHECK_OPERATE(#p, "fetch_and_acquire", CHECK_FETCH_AND, CHECK_ACQUIRE, p, v, 0)
#define w_fetch_and_release(p, v) \
	CHECK_OPERATE(#p, "fetch_and_release", CHECK_FETCH_AND, CHECK_RELEASE, p, v, 0)
#define w_fetch_and_acq_rel(p, v) \
	CHECK_OPERATE(#p, "fetch_and_acq_rel", CHECK_FETCH_AND, CHECK_ACQ_REL, p, v, 0)

#define w_fence_seq_cst() ((void)CHECK_DO("fence_seq_cst", CHECK_FENCE, CHECK_SEQ_CST, NULL, 0, 0))

#endif

#include "worlds.h"

/* Only for mutants of locks and litmus tests. */
#define w_fence_acq_rel() ((void)CHECK_DO("fence_acq_rel", CHECK_FENCE, CHECK_ACQ_REL, NULL, 0, 0))

/* ---- Waiting ---- */

/*
 * The engine passes each value that the thread could read to COND, and then chooses one for which
 * COND holds. So a wait is one step of the execution, and blocks while no readable value ends it.
 */
#define CHECK_WAIT_SITE(text, name, order_, p, COND, how, deadline)                                \
	({                                                                                         \
		__auto_type p_ = (p);                                                              \
		CHECK_SITE(text, name, CHECK_WAIT, order_, sizeof(*p_));                           \
		const enum w_how how_ = (how);                                                     \
		const bool brief_ = how_ >= W_BRIEF;                                               \
		const struct w_deadline *deadline_ = (deadline);                                   \
		struct check_wait wait_ =                                                          \
			check_engine->wait(&site_, (void *)p_, brief_, deadline_, false);          \
		__typeof__(*p_) VAL = (__typeof__(*p_))wait_.value;                                \
		while (wait_.more) {                                                               \
			wait_ = check_engine->wait(&site_, (void *)p_, brief_, deadline_, (COND)); \
			VAL = (__typeof__(*p_))wait_.value;                                        \
		}                                                                                  \
		VAL;                                                                               \
	})

#define w_wait_acquire(p, COND, how, deadline) \
	CHECK_WAIT_SITE(#p, "wait_acquire (" #COND ")", CHECK_ACQUIRE, p, COND, how, deadline)
#define w_await_acquire(p, COND) \
	CHECK_WAIT_SITE(#p, "await_acquire (" #COND ")", CHECK_ACQUIRE, p, COND, W_SPIN, NULL)
/* Only for mutants of locks. */
#define w_wait_relaxed(p, COND, how, deadline) \
	CHECK_WAIT_SITE(#p, "wait_relaxed (" #COND ")", CHECK_RELAXED, p, COND, how, deadline)
#define w_await_relaxed(p, COND) \
	CHECK_WAIT_SITE(#p, "await_relaxed (" #COND ")", CHECK_RELAXED, p, COND, W_SPIN, NULL)

#define w_has_own_cpu() ((bool)CHECK_DO("has_own_cpu", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0))

/*
 * There are no caches here, so variables need no lines of their own. What only a prefetch reads is
 * not kept: it would add states.
 */
#define W_OWN_LINE
#define w_prefetch(p) ((void)(p))
#define tour_remember(tour, place, next) ((void)(tour), (void)(place), (void)(next))
#define w_pause_for(pauses) ((void)(pauses), check_engine->yield())
#define w_yield() check_engine->yield()
/* No repetitions: each value of a counter would be a state of its own. */
#define W_SPIN_ROW 1u
#define w_expired(deadline) \
	((bool)CHECK_DO("expired", CHECK_EXPIRED, CHECK_RELAXED, deadline, 0, 0))
#define w_park(p, expected, deadline)                                            \
	((void)CHECK_OPERATE(#p, "park", CHECK_PARK, CHECK_RELAXED, p, expected, \
			     (uintptr_t)(deadline)))
#define w_unpark(p) ((void)CHECK_DO("unpark", CHECK_UNPARK, CHECK_RELAXED, p, 0, 0))
#define w_unpark_all(p) ((void)CHECK_DO("unpark_all", CHECK_UNPARK_ALL, CHECK_RELAXED, p, 0, 0))

/* ---- Place, time and thread ---- */

enum w_event {
#define EVENT(name, meaning) W_EVENT_##name,
#include "events.def"
#undef EVENT
	W_EVENTS
};

#define w_event(name) check_engine->event(W_EVENT_##name)

/* The thread may migrate at each of these calls, up to .moves times per execution. */
#define CHECK_WHERE(what) \
	((void)CHECK_DO("move", CHECK_MOVE, CHECK_RELAXED, NULL, 0, 0), check_engine->what())

#define w_cpu() CHECK_WHERE(cpu)
#define w_domain_at(position) ((int32_t)check_engine->domain_of(position))
#define w_domain() w_domain_at(CHECK_WHERE(cpu))
#define w_route_position() CHECK_WHERE(cpu)
#define w_cpu_count() check_engine->cpu_count()
/* The extremes represent all random numbers. */
#define w_random() (CHECK_DO("random", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) ? UINT32_MAX : 0)
/*
 * The extremes represent all times, in any order: a lock must also work if the clock appears to run
 * backwards.
 */
#ifndef CHECK_NOW
#define CHECK_NOW() \
	(CHECK_DO("now", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) ? UINT64_C(1) << 60 : UINT64_C(0))
#endif
#define w_now() CHECK_NOW()
#define w_fork_generation() check_engine->generation()

/* A thread's hold time is constant, and differs between threads. */
#ifndef CHECK_HELD
#define CHECK_HELD() ((uint64_t)check_self() << 8)
#endif
struct w_account {
	const void *lock;
	uint64_t held, until, since;
	uint32_t recent;
};

#define w_account(lock)       \
	(&(struct w_account){ \
		.lock = (lock), .held = CHECK_HELD(), .until = 1, .recent = check_self()})

/* The program's own policy may return any rank: first, second, or none. */
#define w_own_policy_rank(number, shuffler, waiter) \
	((void)(number), (void)(shuffler), (void)(waiter), check_any_rank())
#define check_any_rank()                                                                    \
	({                                                                                  \
		uint64_t rank_ = CHECK_DO("rank", CHECK_CHOOSE, CHECK_RELAXED, NULL, 3, 0); \
		rank_ == 2 ? UINT32_MAX : (uint32_t)rank_;                                  \
	})

/* It may be a strict order. */
#define w_own_policy_strict(number, note) \
	((void)(number), (void)(note),    \
	 CHECK_DO("strict", CHECK_CHOOSE, CHECK_RELAXED, NULL, 2, 0) != 0)

/* A client may have threads of several processes. */
#ifndef CHECK_PROCESS
#define CHECK_PROCESS() 1u
#endif
#define w_process() (CHECK_PROCESS() + 8 * check_engine->generation())

#endif
