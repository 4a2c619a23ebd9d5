/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The current CPU, its domain and its position on the route; the time. Implemented by topology.c
 * and route.c.
 */
#ifndef POUNDLOCK_WORLD_PLACE_H
#define POUNDLOCK_WORLD_PLACE_H

#include <time.h>

#include "atomic.h"

/* The base of glibc's published offsets into the calling thread's data, such as __rseq_offset. */
static inline const char *w_thread_pointer(void)
{
#if defined(__x86_64__)
	const char *pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
#else
	return __builtin_thread_pointer();
#endif
}

#define W_CPUS 4096

W_HIDDEN unsigned w_cpu(void);
extern W_HIDDEN W_ATOMIC(const uint16_t *) w_domains; /* by CPU; NULL: not needed yet */
W_HIDDEN const uint16_t *w_domains_load(void);

static inline int32_t w_domain(void)
{
	const uint16_t *domains = atomic_load_explicit(&w_domains, memory_order_acquire);
	unsigned cpu = w_cpu();

	if (w_unlikely(!domains))
		domains = w_domains_load();
	return cpu < W_CPUS ? domains[cpu] : 0;
}

#define W_CONTEXTS 1u
/* No waiter is urgent, and bounds on bypassing are counts. */
#define W_URGENCY 0
#define w_urgent() false
#define W_THRESHOLD 0u

extern W_HIDDEN W_ATOMIC(uint32_t) w_cpus_usable;   /* 0: not needed yet */
extern W_HIDDEN W_ATOMIC(const uint16_t *) w_route; /* position by CPU; NULL: not needed yet */
W_HIDDEN uint32_t w_cpu_count_slow(void);
W_HIDDEN const uint16_t *w_route_load(void);

static inline uint32_t w_cpu_count(void)
{
	/* relaxed: written once */
	uint32_t count = atomic_load_explicit(&w_cpus_usable, memory_order_relaxed);

	return w_likely(count) ? count : w_cpu_count_slow();
}

static inline uint32_t w_route_position(void)
{
	const uint16_t *positions = atomic_load_explicit(&w_route, memory_order_acquire);
	unsigned cpu = w_cpu();

	if (w_unlikely(!positions))
		positions = w_route_load();
	return cpu < W_CPUS ? positions[cpu] : 0;
}

/* The domain of the CPU at @position of the route; 0 while another thread reads the route. */
W_HIDDEN int32_t w_domain_at(uint32_t position);

/* 1 until a thread that needs it has read the number. */
extern W_HIDDEN W_ATOMIC(uint32_t) w_domains_known;

static inline uint32_t w_domain_count(void)
{
	if (w_unlikely(!atomic_load_explicit(&w_domains, memory_order_acquire)))
		w_domains_load();
	return atomic_load_explicit(&w_domains_known, memory_order_relaxed);
}

#define W_LEVELS 3

/*
 * For each level above the domains: the part that a domain is in, and the number of parts. Written
 * before w_domains.
 */
extern W_HIDDEN uint16_t w_parents[W_LEVELS][W_CPUS];
extern W_HIDDEN uint32_t w_parent_counts[W_LEVELS];

static inline uint32_t w_domain_parents(uint32_t level)
{
	return atomic_load_explicit(&w_domains, memory_order_acquire) ? w_parent_counts[level] : 0;
}

static inline uint32_t w_domain_parent(uint32_t level, int32_t domain)
{
	return atomic_load_explicit(&w_domains, memory_order_acquire) ? w_parents[level][domain]
								      : 0;
}

static inline uint64_t w_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
