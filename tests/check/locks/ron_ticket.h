/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define PROMISES_PARKED 0 /* too many states */
#define WHEN_3 "recheck"
#define WHEN_5 "recheck"
#define WALKS_5 50000
#define COMMON_ROOM 4
#define CHECK_COMMON 2048
