// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounded spins: how long a wait may spin, and what a thread learns from its spins.

use crate::time::{Time, ns};

/// `enum w_how`.
pub(super) const W_SPIN: u32 = 0;
pub(super) const W_YIELD: u32 = 1;
pub(super) const W_TURN: u32 = 2;
pub(super) const W_POLITE: u32 = 4;

/// What `world/user` has as SPIN_NANOSECONDS and W_SPIN_PARTS; and as W_SPINS_WHOLE, where it has 256.
pub(super) const SPIN_NANOSECONDS: f64 = 5000.0;
const SPIN_PARTS: u32 = 16;
pub(super) const SPINS_WHOLE: u32 = 16;

/// A wait so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Spin {
    pub how: u32,
    /// The rest of the bounded spin.
    pub left: Time,
    /// Pauses before the next read.
    pub next: u32,
    /// Whether the thread counts among the spinners.
    pub counted: bool,
}

/// How a thread's polite spins went.
#[derive(Clone, Copy, Default)]
pub(super) struct SpinHistory {
    spins: u32,
    parts_lost: u32,
}

impl SpinHistory {
    /// The length of the next spin.
    pub fn budget(&mut self) -> Time {
        self.spins += 1;
        let lost = if self.spins.is_multiple_of(SPINS_WHOLE) { 0 } else { self.parts_lost };
        ns(SPIN_NANOSECONDS) * Time::from(SPIN_PARTS - lost) / Time::from(SPIN_PARTS)
    }

    pub fn note(&mut self, failed: bool) {
        self.parts_lost =
            if failed { (self.parts_lost + 1).min(SPIN_PARTS - 1) } else { self.parts_lost.saturating_sub(1) };
    }
}
