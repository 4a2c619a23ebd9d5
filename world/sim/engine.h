/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The functions of the simulator (crates/poundlock-sim) for the C code that runs on its machine,
 * defined in the crate's hooks.rs: change both together. Each call takes the simulated time of the
 * operation.
 */
#ifndef POUNDLOCK_SIM_ENGINE_H
#define POUNDLOCK_SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Atomic objects of 4 or 8 bytes. */
uint64_t sim_load(const void *object, uint32_t size);
void sim_store(void *object, uint32_t size, uint64_t value);
uint64_t sim_exchange(void *object, uint32_t size, uint64_t value);
/* Returns the old value. Stores @value if the old value was @expected. */
uint64_t sim_compare_exchange(void *object, uint32_t size, uint64_t expected, uint64_t value);
uint64_t sim_fetch_add(void *object, uint32_t size, uint64_t value);
uint64_t sim_fetch_or(void *object, uint32_t size, uint64_t value);
uint64_t sim_fetch_and(void *object, uint32_t size, uint64_t value);
void sim_fence(void);
/* Requests the line of @object without waiting for it. */
void sim_prefetch(const void *object);

/*
 * A wait whose first read did not end it: begins it, for a thread with @pace (../streak.h); returns
 * whether to read again; ends it. A thread has at most one.
 */
void sim_wait_begin(uint32_t how, uint64_t pace);
bool sim_wait_again(uint64_t deadline);
void sim_wait_end(void);
/* Whether no other thread has waited on the current one's CPU recently. */
bool sim_has_own_cpu(void);

void sim_pause(uint32_t pauses);
void sim_yield(void);
void sim_sched_yield(void);
void sim_park(const void *object, uint32_t expected, uint64_t deadline);
void sim_unpark(const void *object, bool all);

uint64_t sim_now(void);
uint32_t sim_cpu(void);
uint32_t sim_domain(void);
uint32_t sim_route_position(void);
uint32_t sim_domain_at(uint32_t position);
uint32_t sim_cpu_count(void);
uint32_t sim_domain_count(void);
/*
 * The number of sockets, or 0 if they are not a level above the domains; and the socket of a
 * domain.
 */
uint32_t sim_domain_parents(void);
uint32_t sim_domain_parent(uint32_t domain);
void sim_event(uint32_t event);
/* The calling thread's number, and its struct sim_self. */
uint32_t sim_number(void);
void *sim_self(void);
/* The struct sim_self of thread @thread. */
void *sim_self_of(uint32_t thread);
/*
 * A block of memory that all threads of the simulated process share. The first call with a size
 * allocates it: zeroed and page-aligned. With size 0 and no such call before, returns NULL.
 */
enum sim_block { SIM_COMMON, SIM_GATES, SIM_VISIBLE, SIM_SLOTS, SIM_QUEUE_NODES };
void *sim_block(uint32_t which, size_t bytes);
/* Memory near the calling thread, which is never freed: zeroed and page-aligned. */
void *sim_keep(size_t bytes);
/* Ends the simulation. */
void sim_fail(const char *what) __attribute__((noreturn));

#endif
