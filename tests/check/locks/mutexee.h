/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WHEN_PARKED "park wake_spared spin_less"
