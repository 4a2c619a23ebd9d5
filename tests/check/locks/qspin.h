/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_PARKED ""
#define COMMON_ROOM 192
#define ARRIVAL word
/* A waiter that has closed the lock is not bypassed. */
#define BYPASS(threads) 0
#define SINCE close
