/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The world of user space with the CPU given up at random before the locks' operations on shared objects, so that a
 * thread is overtaken in places where the scheduler seldom puts it. How it is given up is the program's: stress_give_way().
 */
#ifndef POUNDLOCK_STRESS_WORLD_H
#define POUNDLOCK_STRESS_WORLD_H

#include <stdint.h>

void stress_give_way(void);

/* One operation in this many is preceded by a yield. */
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
