/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define BYPASS(threads) 0
#define ARRIVAL tickets.next
#define COMMON_ROOM 4
