/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "secondary flush"
#define WHEN_5 "secondary flush handover_local handover_remote"
/* The threshold in the clients. Hand-overs by `reduction` keep the order and bypass no waiter. */
#define BYPASS(threads) 2
#define ARRIVAL tail
