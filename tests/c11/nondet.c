/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Random choices for a C11 client that runs natively. */
#include <sched.h>
#include <stdint.h>

int __VERIFIER_nondet_int(void);
void c11_step(void);

int __VERIFIER_nondet_int(void)
{
	static _Thread_local uint32_t x;

	if (!x)
		x = (uint32_t)(uintptr_t)&x | 1;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return (int)(x >> 7);
}

/* Lets other threads run between two operations. */
void c11_step(void)
{
	if (!(__VERIFIER_nondet_int() & 7))
		sched_yield();
}
