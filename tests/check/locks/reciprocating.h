/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "segment"
#define WHEN_5 "segment"
