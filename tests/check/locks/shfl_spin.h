/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Each newcomer that had found the queue empty, once, and a batch but for its head. */
#define BYPASS(threads) ((threads)-1 + SHFL_MAX_BATCH - 1)
