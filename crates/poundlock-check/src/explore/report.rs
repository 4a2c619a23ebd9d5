// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of an exploration.

use std::collections::BTreeSet;

use crate::machine::{Choice, MAX_EVENTS, Machine};

/// The end of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    /// The error, and the choices that lead to it.
    Fails(String, Vec<Choice>),
    /// The limit of states or steps was reached.
    Unfinished,
}

/// The result of an exploration.
pub struct Report {
    pub verdict: Verdict,
    /// The number of states; of walks: steps.
    pub states: u64,
    pub steps: u64,
    /// How often an execution ended in a new state.
    pub ends: u64,
    pub outcomes: BTreeSet<String>,
    pub events: [u64; MAX_EVENTS],
    /// The most later arrivals that have bypassed a waiter.
    pub bypasses: u32,
}

impl Report {
    /// The report of an exploration that has not begun.
    pub fn new() -> Report {
        Report {
            verdict: Verdict::Holds,
            states: 0,
            steps: 0,
            ends: 0,
            outcomes: BTreeSet::new(),
            events: [0; MAX_EVENTS],
            bypasses: 0,
        }
    }

    /// Adds a later exploration of the same client, whose verdict replaces this one's.
    pub fn add(&mut self, other: Report) {
        self.verdict = other.verdict;
        self.states += other.states;
        self.steps += other.steps;
        self.ends += other.ends;
        self.outcomes.extend(other.outcomes);
        self.bypasses = self.bypasses.max(other.bypasses);
        for (mine, theirs) in self.events.iter_mut().zip(other.events) {
            *mine += theirs;
        }
    }
}

/// Returns the error of the last step, if any.
pub fn check(machine: &mut Machine, longest: u32) -> Result<(), String> {
    if let Some(fault) = machine.fault.take() {
        return Err(fault);
    }
    if machine.steps() > longest {
        return Err(format!("no end within {longest} steps"));
    }
    Ok(())
}
