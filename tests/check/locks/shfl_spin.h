/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Each newcomer that had found the queue empty, once; and a batch but for its head, which takes three at least. */
#define BYPASS(threads) ((threads)-1 + ((threads) > 2 ? SHFL_MAX_BATCH - 1 : 0))
