/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "recheck"
#define WHEN_5 "recheck"
#define WALKS_4 50000
#define MORE_CLIENTS BOUNDED_4(spin),
