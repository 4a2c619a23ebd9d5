/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A world of one thread that simulates all others: a script of actions, each done directly before
 * the n-th operation that a lock performs on a shared object. Time is the number of operations. An
 * action or a deadline ends a wait; a wait without either fails the test, as the thread would wait
 * indefinitely.
 *
 * Objects, the thread's record and events are those of the user-space world.
 */
#ifndef POUNDLOCK_UNIT_WORLD_H
#define POUNDLOCK_UNIT_WORLD_H

void script_step(void);

#define W_STEP() script_step()

#include "../../../world/user/world.h"

extern int32_t script_domain;
extern uint32_t script_parents[W_LEVELS];
extern uint32_t script_position;
extern uint32_t script_places;
extern uint32_t script_cpus;
extern long script_time;
extern bool script_own_cpu;           /* false after script_clear() */
extern uint64_t script_paused;        /* the number of pause instructions since script_clear() */
extern const void *script_prefetched; /* the last address since script_clear(), or NULL */

#define w_pause_for(pauses) ((void)(script_paused += (pauses)))
#undef w_prefetch
#define w_prefetch(p) ((void)(script_prefetched = (p)))
#define w_has_own_cpu() script_own_cpu
#define w_domain() script_domain
/* Each domain has script_places places; 0: one domain has all. */
#define w_domain_at(position) ((int32_t)(script_places ? (position) / script_places : 0))
#define w_route_position() script_position
#define w_cpu_count() script_cpus
#define w_domain_count() 2u
#define w_domain_parents(level) (script_parents[level])
#define w_domain_parent(level, domain) ((uint32_t)(domain) % script_parents[level])

/* Forgets the script and restarts the time. */
void script_clear(void);

/*
 * Does @action before operation @step (counted from 1, in rising order), or when a sleep reaches
 * that time. Returns whether the action was possible; if not, it is retried before the next
 * operation.
 */
void script_at(long step, bool (*action)(void *argument), void *argument);

/* Does the rest of the script. */
void script_finish(void);

/* The number of wake-ups of @status since script_clear(). */
int script_unparks(const void *status);

/* A deadline at operation @step. */
struct w_deadline script_deadline(long step);

bool script_expired(const struct w_deadline *deadline);
bool script_read_again(uint32_t *reads, enum w_how how, const struct w_deadline *deadline);
void script_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline);
void script_unpark(W_ATOMIC(uint32_t) *p);

#define w_expired(deadline) script_expired(deadline)
#define w_park(p, expected, deadline) script_park(p, expected, deadline)
#define w_unpark(p) script_unpark(p)
#define w_unpark_all(p) script_unpark(p)

#undef w_wait_acquire
#define w_wait_acquire(p, COND, how, deadline)                                      \
	({                                                                          \
		__auto_type w_p_ = (p);                                             \
		__typeof__(atomic_load_explicit(w_p_, memory_order_relaxed)) VAL;   \
		uint32_t w_reads_ = 0;                                              \
		do                                                                  \
			VAL = w_load_acquire(w_p_);                                 \
		while (!(COND) && script_read_again(&w_reads_, (how), (deadline))); \
		VAL;                                                                \
	})

#endif
