/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Each newcomer that found the queue empty, once; and a batch less its head, which needs three
 * threads.
 */
#define BYPASS(threads) ((threads)-1 + ((threads) > 2 ? SHFL_MAX_BATCH - 1 : 0))
