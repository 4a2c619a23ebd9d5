/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define LARGE
#define STIRRED 2
#define WHEN_PARKED "park handoff"
#define MORE_CLIENTS BOUNDED_4(spin),
