/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define LARGE
#define WHEN_3 "pass_over"
#define WHEN_5 "pass_over"
