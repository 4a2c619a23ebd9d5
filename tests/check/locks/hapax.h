/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define BYPASS(threads) 0
#define ARRIVAL arrive
#define WALKS_4 20000
#define COMMON_ROOM 64
#define MORE_CLIENTS BOUNDED_4(spin),
