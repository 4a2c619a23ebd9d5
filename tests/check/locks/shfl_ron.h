/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any choice between the ways, at any sample: more than the trials make. */
#define shfl_ron_prefers_gate(lock, gate, count) \
	((void)(lock), (void)(gate), (void)(count), w_random() != 0)
/* The threads of shfl_ron.c may remember anything. Here that would be too many states. */
#ifndef MADE
#define CHECK_REMEMBERS() false
#endif
#define UNCHECKED_QUEUE
#define HINT mutex.spinner
#define COMMON_ROOM 4
#define CHECK_COMMON 2048
#define PROMISES_PARKED 0 /* too many states */
#define WHEN_3 ""
#define WHEN_5 ""
#define STIRRED 1
#define LARGE
