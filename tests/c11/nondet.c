/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Random choices for a C11 client that runs natively. */
#include <stdint.h>

int __VERIFIER_nondet_int(void);

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
