/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "recheck"
#define WHEN_5 "recheck"
#define WHEN_FORKED "fork_repair"
#define WALKS_4 50000
#define COMMON_ROOM 2048
