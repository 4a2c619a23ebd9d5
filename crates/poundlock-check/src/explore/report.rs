// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of an exploration.

use std::collections::BTreeSet;

use crate::machine::{Choice, MAX_EVENTS, Machine};

/// The error of an execution that is fair and has no end.
pub const ENDLESS: &str = "livelock under a fair scheduler: steps can repeat indefinitely";

/// An execution that shows an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Execution {
    pub choices: Vec<Choice>,
    /// If the error is that steps can repeat indefinitely: the number of choices before them.
    pub cycle: Option<usize>,
}

impl Execution {
    /// The number of choices before those that repeat.
    pub fn prefix(&self) -> usize {
        self.cycle.unwrap_or(self.choices.len())
    }

    /// The execution that makes `first` and then the choices of this one.
    pub fn after(mut self, first: Vec<Choice>) -> Execution {
        self.cycle = self.cycle.map(|cycle| first.len() + cycle);
        self.choices.splice(..0, first);
        self
    }
}

/// The end of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    /// The error, and an execution that shows it.
    Fails(String, Execution),
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
