/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The world of user space with threads that are coroutines of one thread. They take turns, with one
 * operation on a shared object per turn, so that all run at the same speed, as if each had a CPU,
 * and every run is the same. Counts read-modify-writes.
 */
#ifndef POUNDLOCK_COUNT_WORLD_H
#define POUNDLOCK_COUNT_WORLD_H

void count_step(void);
void count_update(void);

#define W_STEP() count_step()
#define W_UPDATE() count_update()

#include "../../../world/user/world.h"

uint32_t count_random(void);
uint64_t count_now(void);
uint32_t count_self(void);
/* Whether a wait continues after another read that did not end it. */
bool count_read_again(uint32_t *reads, enum w_how how);
void count_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline);
bool count_expired(const struct w_deadline *deadline);
void count_unpark(W_ATOMIC(uint32_t) *p);

#define COUNT_THREADS 4u
#define COUNT_DOMAINS 2u

#define w_random() count_random()
#define w_now() count_now()
#define w_cpu() count_self()
#define w_has_own_cpu() true
#define w_domain() ((int32_t)(count_self() % COUNT_DOMAINS))
#define w_domain_count() COUNT_DOMAINS
/* Two levels, as on most machines. */
#define w_domain_parents(level) ((void)(level), 0u)
#define w_route_position() count_self()
#define w_cpu_count() COUNT_THREADS
#define w_yield() count_step()
#define w_pause_for(pauses) ((void)(pauses), count_step())
#define w_park(p, expected, deadline) count_park(p, expected, deadline)
#define w_expired(deadline) count_expired(deadline)
#define w_unpark(p) count_unpark(p)
#define w_unpark_all(p) count_unpark(p)

#undef w_wait_acquire
#define w_wait_acquire(p, COND, how, deadline)                                    \
	({                                                                        \
		__auto_type w_p_ = (p);                                           \
		__typeof__(atomic_load_explicit(w_p_, memory_order_relaxed)) VAL; \
		uint32_t w_reads_ = 0;                                            \
		(void)(deadline);                                                 \
		do                                                                \
			VAL = w_load_acquire(w_p_);                               \
		while (!(COND) && count_read_again(&w_reads_, (how)));            \
		VAL;                                                              \
	})

#endif
