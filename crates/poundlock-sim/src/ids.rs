// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of simulated things.

/// A simulated thread's number, from 0.
pub(crate) type ThreadId = u32;

/// A cache line's number, from 0, in the order of first use.
pub(crate) type LineId = u32;
