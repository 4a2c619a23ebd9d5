/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The world of user space with a random yield before the locks' operations on shared objects, so
 * that threads are preempted in places where the scheduler seldom does it. The program defines the
 * yield: stress_give_way().
 */
#ifndef POUNDLOCK_STRESS_WORLD_H
#define POUNDLOCK_STRESS_WORLD_H

#include <stdint.h>

void stress_give_way(void);

/* One operation in this many follows a yield. */
#define STRESS_YIELD_EVERY 32u

static inline void stress_step(void)
{
	static _Thread_local uint32_t random;

	if (!random)
		random = (uint32_t)(uintptr_t)&random | 1;
	random ^= random << 13;
	random ^= random >> 17;
	random ^= random << 5;
	if (random % STRESS_YIELD_EVERY == 0)
		stress_give_way();
}

#define W_STEP() stress_step()

#include "../../../world/user/world.h"

#endif
