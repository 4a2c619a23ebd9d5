/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One interface to every lock of core/locks.def, for a client that is compiled once a lock (LOCK, LOCK_HEADER, and
 * LOCK_BARE or LOCK_NODE are defined). The calls are not inlined: their frames, and what lies there, end with them.
 */
#ifndef POUNDLOCK_CHECK_ADAPTER_H
#define POUNDLOCK_CHECK_ADAPTER_H

#include LOCK_HEADER

#include "check.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define LOCK_FUNCTION(name) PASTE(LOCK, PASTE(_, name))

/* Bounds are as small as they can be while what they bound still happens. */
#define POLICY_ttas(way) ((struct ttas_policy){.wait = (way), .backoff = 2})
#define POLICY_ticket(way) (way)
#define POLICY_mcs(way) (way)
#define POLICY_cna(way) ((struct cna_policy){.wait = (way), .threshold = 2, .reduction = 1})
#define POLICY_shfl_spin(way) (way)
#define POLICY_shfl_mutex(way) ((struct shfl_mutex_policy){.wait = (way), .patience = 1})

#define RELEASE_ttas(lock, way) ttas_release(lock, way)
#define RELEASE_ticket(lock, way) ticket_release(lock, way)
#define RELEASE_shfl_spin(lock, way) shfl_spin_release(lock)
#define RELEASE_shfl_mutex(lock, way) shfl_mutex_release(lock)

#define POLICY(way) PASTE(POLICY_, LOCK)(way)

/* The node that a holder keeps, or NULL where it keeps none. */
typedef void *holding;

static __attribute__((noinline)) bool acquire(struct LOCK *lock, holding *kept, enum wait wait,
					      const struct w_deadline *deadline)
{
#ifdef LOCK_NODE
	*kept = w_node_get();
	return LOCK_FUNCTION(acquire)(lock, *kept, POLICY(wait), deadline);
#else
	*kept = NULL;
	return LOCK_FUNCTION(acquire)(lock, POLICY(wait), deadline);
#endif
}

static __attribute__((noinline)) bool try_acquire(struct LOCK *lock, holding *kept)
{
#ifdef LOCK_NODE
	*kept = w_node_get();
	return LOCK_FUNCTION(try_acquire)(lock, *kept);
#else
	*kept = NULL;
	return LOCK_FUNCTION(try_acquire)(lock);
#endif
}

static __attribute__((noinline)) void release(struct LOCK *lock, holding kept, enum wait wait)
{
	(void)kept, (void)wait;
#ifdef LOCK_NODE
	LOCK_FUNCTION(release)(lock, kept, POLICY(wait));
#else
	check_assert(PASTE(RELEASE_, LOCK)(lock, wait));
#endif
}

/* In the forked child, by a thread that holds the lock: what the library does after a fork. */
static __attribute__((noinline)) void repair(struct LOCK *lock, holding kept)
{
	(void)lock, (void)kept;
#ifdef LOCK_NODE
	LOCK_FUNCTION(drop_waiters)(lock, kept);
#endif
}

#endif
