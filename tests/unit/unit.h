/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the white-box tests. */
#ifndef POUNDLOCK_UNIT_H
#define POUNDLOCK_UNIT_H

#include "../expect.h"
#include "world.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Runs the test @function; a hang is reported with its name. */
#define RUN(function)                    \
	do {                             \
		expect_part = #function; \
		limit();                 \
		function();              \
	} while (0)

/* Simulates a fork to the process of the @generation. */
static inline void fork_generation_set(uint32_t generation)
{
	atomic_store(&w_this_process.generation, generation + 1);
}

/* @base to the power of @exponent: the number of patterns. */
static inline int power(int base, int exponent)
{
	return exponent ? base * power(base, exponent - 1) : 1;
}

/* The @index-th digit of @pattern to @base. */
static inline int digit(int pattern, int base, int index)
{
	return pattern / power(base, index) % base;
}

#endif
