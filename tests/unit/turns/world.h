/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A world of many simulated threads in one, each on a CPU of its own, in simulated time: an
 * operation on a shared object takes STEP; a wake-up takes WAKE, of which the waker spends UNPARK.
 * The earliest thread runs next, so every run is the same on any machine.
 */
#ifndef POUNDLOCK_TURNS_WORLD_H
#define POUNDLOCK_TURNS_WORLD_H

void turns_step(void);

#define W_STEP() turns_step()

#include "../../../world/user/world.h"

#define TURNS_STEP 10
#define TURNS_LOOK 100 /* between two reads of a waiter */
#define TURNS_WAKE 5000
#define TURNS_UNPARK 4000 /* the waker's part of it */
#define TURNS_BRIEF 20    /* reads of a bounded spin */

extern uint64_t turns_readings; /* of the clock */

/* Advances the thread's time by the given duration. */
uint64_t turns_time(void);
void turns_spend(uint64_t nanoseconds);
int32_t turns_domain(void);
uint32_t turns_position(void); /* on the route */
/* Sleeps until it is woken or the time is @until (0: never). */
void turns_sleep(const void *p, uint64_t until);
void turns_wake(const void *p, bool all);

/* The time of a deadline; 0: never. */
static inline uint64_t turns_end(const struct w_deadline *deadline)
{
	return deadline
		       ? (uint64_t)deadline->at.tv_sec * 1000000000 + (uint64_t)deadline->at.tv_nsec
		       : 0;
}

static inline bool turns_expired(const struct w_deadline *deadline)
{
	return deadline && turns_time() >= turns_end(deadline);
}

#define w_now() (turns_readings++, turns_time())
#define w_has_own_cpu() true
#define w_domain() turns_domain()
#define w_domain_at(position) ((int32_t)((position) % 2))
#define w_domain_count() 2u
#define w_cpu_count() 4u
#define w_route_position() turns_position()
#define w_expired(deadline) turns_expired(deadline)
#define w_yield() turns_spend(TURNS_LOOK)
#define TURNS_UNPARKED(p, all)                        \
	do {                                          \
		w_event(unpark);                      \
		turns_wake((const void *)(p), (all)); \
		turns_spend(TURNS_UNPARK);            \
	} while (0)
#define w_unpark(p) TURNS_UNPARKED(p, false)
#define w_unpark_all(p) TURNS_UNPARKED(p, true)
#define w_park(p, expected, deadline)                                          \
	do {                                                                   \
		const struct w_deadline *w_end_ = (deadline);                  \
		if (w_load_relaxed(p) == (expected) && !turns_expired(w_end_)) \
			turns_sleep((const void *)(p), turns_end(w_end_));     \
	} while (0)

#undef w_wait_acquire
#define w_wait_acquire(p, COND, how, deadline)                                    \
	({                                                                        \
		__auto_type w_p_ = (p);                                           \
		__typeof__(atomic_load_explicit(w_p_, memory_order_relaxed)) VAL; \
		uint32_t w_looks_ = 0;                                            \
		const struct w_deadline *w_end_ = (deadline);                     \
		while (VAL = w_load_acquire(w_p_), !(COND)) {                     \
			if ((how) >= W_BRIEF && w_looks_++ == TURNS_BRIEF)        \
				break;                                            \
			if (turns_expired(w_end_))                                \
				break;                                            \
			turns_spend(TURNS_LOOK);                                  \
		}                                                                 \
		VAL;                                                              \
	})

#endif
