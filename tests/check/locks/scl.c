/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Four threads at an instant: where the clock may say anything at each reading they have more states than a bound leaves few
 * enough of.
 */
#define CHECK_NOW() UINT64_C(1)
#define CLIENTS BOUNDED_4(spin),
#include "../lock.c"
