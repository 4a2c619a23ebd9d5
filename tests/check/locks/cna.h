/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "secondary flush"
#define WHEN_5 "secondary flush handover_local handover_remote"
