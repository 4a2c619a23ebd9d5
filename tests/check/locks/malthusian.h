/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_3 "cull revive"
#define WHEN_5 "cull revive revive_eldest"
