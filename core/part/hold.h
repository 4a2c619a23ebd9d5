/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * How long a thread has held a lock. The time is kept in the thread's account with the lock,
 * w_account(lock), which only that thread accesses.
 *
 * From: Park and Eom, "Locks as a resource: fairly scheduling lock occupation with CFL", PPoPP'24,
 * section 3.1. Time is virtual: nanoseconds divided by the thread's weight, where 1,024 is the
 * weight of nice 0. `recent` is a moving average of the real hold times; each new one counts an
 * eighth.
 */
#ifndef POUNDLOCK_HOLD_H
#define POUNDLOCK_HOLD_H

#include "world.h"

#define HOLD_WEIGHT 1024

static inline uint64_t hold_virtual(uint64_t nanoseconds, uint32_t weight)
{
	return nanoseconds * HOLD_WEIGHT / weight;
}

/* Nanoseconds from @start to @now, clamped: clocks of two CPUs may disagree. */
static inline uint64_t hold_time(uint64_t start, uint64_t now)
{
	const uint64_t most = UINT64_C(1) << 40; /* 18 minutes */

	return now <= start ? 0 : now - start < most ? now - start : most;
}

/* Adds a hold of @nanoseconds to @account. */
static inline void hold_charge(struct w_account *account, uint64_t nanoseconds)
{
	uint32_t part = nanoseconds < UINT32_MAX ? (uint32_t)nanoseconds : UINT32_MAX;

	account->held += hold_virtual(nanoseconds, w_weight());
	account->recent = account->recent ? account->recent - account->recent / 8 + part / 8 : part;
}

/* Called around each hold of a lock that does not measure by itself. */
static inline void hold_begin(const void *lock)
{
	w_account(lock)->since = w_now();
}

static inline void hold_end(const void *lock)
{
	struct w_account *account = w_account(lock);

	if (account->since)
		hold_charge(account, hold_time(account->since, w_now()));
	account->since = 0;
}

#endif
