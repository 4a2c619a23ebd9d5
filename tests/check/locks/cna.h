/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "secondary flush"
#define WHEN_5 "secondary flush handover_local handover_remote"
/* The threshold that the clients set; reduction: hand-overs in order, which pass nobody. */
#define BYPASS(threads) 2
#define ARRIVAL tail
