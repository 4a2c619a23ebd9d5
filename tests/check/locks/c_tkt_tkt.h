/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "handover_local handover_remote"
#define WHEN_5 "handover_local handover_remote"
#define COMMON_ROOM 4
#define CHECK_COMMON 2048
