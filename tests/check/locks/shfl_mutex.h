/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A waiter that has closed the lock is not bypassed. */
#define BYPASS(threads) 0
#define SINCE close
#define RELEASE_FAIRLY(lock) (lock)
#define COMPOSED
/* The first thread waits where turns are long. They are while its CPU is its own: at any time. */
#define CHECK_TURNS_ARE_LONG() (check_self() == 0)
#define SHFL_MUTEX_LONG_TURN 1u
#define SHFL_MUTEX_FEW 1u
#define SHFL_MUTEX_MANY 3u
