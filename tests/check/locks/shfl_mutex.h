/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* By nobody, once it has closed the lock. */
#define BYPASS(threads) 0
#define SINCE close
