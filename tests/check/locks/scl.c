/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Four threads with a clock that stands still. With a clock that the explorer chooses, they have
 * too many states even under a bound.
 */
#define CHECK_NOW() UINT64_C(1)
#define CLIENTS BOUNDED_4(spin),
#include "../lock.c"
