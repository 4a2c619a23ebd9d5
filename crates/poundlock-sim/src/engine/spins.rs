// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounded spins by the rules of `world/spin.h`, which `csrc/rules.c` exports.

use crate::abi::{self, SpinHistory};
use crate::time::{Time, ns};

pub(super) use crate::abi::How;

/// The constants of `world/spin.h`.
pub(super) fn rules() -> &'static abi::Rules {
    // SAFETY: a constant of the C side.
    unsafe { &abi::sim_rules }
}

/// The properties of a way of waiting, `enum w_how`.
pub(super) fn how(how: u32) -> How {
    // SAFETY: a pure function.
    unsafe { abi::sim_how(how) }
}

/// How many threads may be in a bounded spin.
pub(super) fn spinners_limit(cpus: usize) -> u64 {
    // SAFETY: a pure function.
    unsafe { abi::sim_spinners_limit(cpus as u32) }.into()
}

/// How many bounded spins a wait has on an own CPU; 0: it is a counted one.
pub(super) fn rounds(how: u32, cpus: usize) -> u32 {
    // SAFETY: a pure function.
    unsafe { abi::sim_spin_rounds(how, cpus as u32) }
}

/// How long a thread that has shared its CPU is assumed to share it.
pub(super) fn sharing() -> Time {
    ns(f64::from(rules().sharing_nanoseconds))
}

/// The duration of a whole bounded spin.
pub(super) fn whole() -> Time {
    ns(f64::from(rules().spin_nanoseconds))
}

/// The duration of some of the parts of one.
pub(super) fn part(parts: u32) -> Time {
    whole() * Time::from(parts) / Time::from(rules().spin_parts)
}

/// The pauses before the second read of a counted spin of `pauses`.
pub(super) fn first_pauses(how: u32, pace: u64, pauses: u64) -> u32 {
    // SAFETY: a pure function.
    unsafe { abi::sim_first_pauses(how, pace, pauses as u32) }
}

/// A wait so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Spin {
    /// `enum w_how`, and its properties.
    pub way: u32,
    pub how: How,
    /// The rest of the bounded spin.
    pub left: Time,
    /// Pauses before the next read.
    pub next: u32,
    /// The further rounds on an own CPU.
    pub rounds: u32,
    /// Whether the thread counts among the spinners.
    pub counted: bool,
    /// How often the wait has gone on after its bounded spin.
    pub turns: u32,
}

impl Spin {
    pub fn new(way: u32) -> Spin {
        Spin { way, how: how(way), next: 1, ..Spin::default() }
    }

    /// Takes `time` off the bounded spin.
    pub fn spend(&mut self, time: Time) {
        self.left = self.left.saturating_sub(time);
        // SAFETY: a pure function.
        self.next = unsafe { abi::sim_spin_longer(self.way, self.next) };
    }

    /// How the wait goes on after its bounded spin: `enum w_next`.
    pub fn go_on(&mut self) -> u32 {
        self.turns += 1;
        // SAFETY: a pure function.
        unsafe { abi::sim_spin_next(self.way, self.turns) }
    }
}

/// The spin histories of a thread, or of the process.
pub(super) type Histories = [Option<SpinHistory>; 3];

impl SpinHistory {
    /// The duration of the next spin: at least one pause.
    pub fn budget(&mut self) -> Time {
        // SAFETY: the history is valid.
        let parts = unsafe { abi::sim_spin_budget(self) };
        part(parts).max(1)
    }

    pub fn learn(&mut self, failed: bool) {
        // SAFETY: the history is valid.
        unsafe { abi::sim_spin_learn(self, failed) }
    }
}
