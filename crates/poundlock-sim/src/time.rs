// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated time.

/// Simulated time in picoseconds.
pub type Time = u64;

/// A time that never comes.
pub(crate) const NEVER: Time = Time::MAX;

/// Converts nanoseconds.
pub(crate) fn ns(nanoseconds: f64) -> Time {
    (nanoseconds * 1000.0).round() as Time
}
