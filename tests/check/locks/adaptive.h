/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WALKS_4 10000
#define WALKS_4_SPIN 0
#define PARKED_3 CHECK_CLIENT_COMPLETE
#define STIRRED 2
#define WHEN_PARKED "park handoff"
