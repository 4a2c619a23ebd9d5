/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A waiter that has closed the lock is not bypassed. */
#define BYPASS(threads) 0
#define SINCE close
#define RELEASE_FAIRLY(lock) (lock)
#define COMPOSED
