/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_PARKED ""
#define COMMON_ROOM 192
#define ARRIVAL word
/* By nobody, once it has closed the lock. */
#define BYPASS(threads) 0
#define SINCE close
