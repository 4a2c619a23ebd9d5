// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exhaustive search: all states of a client, depth first.
//!
//! Promises: each state is visited once (128-bit hashes of their codes identify states). The client
//! holds only if every visited state can still reach the end of all threads: a deadlock, a lost
//! wake-up and a livelock are states that cannot. Under a bound on preemptions, a set of states
//! that cannot be left is accepted only if the bound excludes a thread that does not run in it. The
//! same client under the same settings gives the same report.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::LONGEST;
use super::report::{Report, Verdict, check};
use crate::abi::Client;
use crate::machine::{Choice, Machine, Needs, Settings, Snapshot};

/// The hash of a key that is a hash.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("codes are two u64")
    }

    fn write_u64(&mut self, half: u64) {
        self.0 = half;
    }
}

/// A state on the path, and the progress of its choices.
struct Frame {
    snapshot: Snapshot,
    choices: Vec<Choice>,
    tried: usize,
    index: u32,
    /// The earliest state on the path known to be reachable from here (Tarjan's low link).
    low: u32,
    /// Whether the end is known to be reachable from here.
    ends: bool,
    /// Over the states known to be reachable from here and back: the bits of the threads that run
    /// in some, and of the threads that could run but that the bound excludes.
    runs: u32,
    excluded: u32,
}

struct Search {
    machine: Box<Machine>,
    known: HashMap<(u64, u64), u32, BuildHasherDefault<Identity>>,
    /// By state, whether everything reachable from it has been visited.
    closed: Vec<bool>,
    /// The states that are not closed, in order of their visits.
    open: Vec<u32>,
    path: Vec<Frame>,
    depth: usize,
    width: usize,
    /// The most steps of an execution.
    longest: u32,
    report: Report,
}

/// Visits all states of `client`, up to `limit`. An outcome has `width` figures.
pub fn all(client: &'static Client, settings: Settings, limit: u64, width: usize) -> Report {
    Needs::retry(|needs| search(client, settings, needs, limit, width))
}

fn search(
    client: &'static Client,
    settings: Settings,
    needs: Needs,
    limit: u64,
    width: usize,
) -> (Report, Needs) {
    let mut search = Search {
        machine: Machine::new(client, settings, needs),
        known: HashMap::default(),
        closed: Vec::new(),
        open: Vec::new(),
        path: Vec::new(),
        depth: 0,
        width,
        longest: settings.longest,
        report: Report::new(),
    };
    if let Err(fault) = search.run(limit) {
        search.report.verdict = Verdict::Fails(fault, search.choices());
    }
    search.report.events = search.machine.events;
    search.report.bypasses = search.machine.bypasses;
    (search.report, search.machine.needs)
}

impl Search {
    /// Returns the first error.
    fn run(&mut self, limit: u64) -> Result<(), String> {
        self.arrive()?;
        while self.depth > 0 {
            let frame = &mut self.path[self.depth - 1];
            if frame.tried == frame.choices.len() {
                self.leave()?;
                continue;
            }
            let choice = frame.choices[frame.tried];
            if frame.tried > 0 {
                self.machine.restore(&frame.snapshot);
            }
            frame.tried += 1;
            self.machine.perform(choice);
            self.report.steps += 1;
            self.arrive()?;
            if self.report.states > limit || self.machine.steps() > self.longest {
                self.report.verdict = Verdict::Unfinished;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Processes the state that the machine is in.
    fn arrive(&mut self) -> Result<(), String> {
        check(&mut self.machine, LONGEST)?;
        let code = self.machine.code();
        if let Some(&index) = self.known.get(&code) {
            let closed = self.closed[index as usize];
            let frame = self.path[..self.depth].last_mut().expect("the first state is new");
            if closed {
                frame.ends = true;
            } else {
                frame.low = frame.low.min(index);
            }
            return Ok(());
        }
        let index = self.closed.len() as u32;
        self.known.insert(code, index);
        self.closed.push(false);
        self.open.push(index);
        self.report.states += 1;
        self.enter(index);
        if self.machine.is_over() {
            self.path[self.depth].ends = true;
            self.report.ends += 1;
            self.machine.finish();
            self.report.outcomes.insert(self.machine.outcome(self.width));
            if let Some(fault) = self.machine.fault.take() {
                return Err(fault);
            }
        } else if self.path[self.depth].choices.is_empty() {
            return Err(self.machine.deadlock());
        }
        self.depth += 1;
        Ok(())
    }

    /// Makes a frame of the new state, reusing allocations.
    fn enter(&mut self, index: u32) {
        if self.path.len() == self.depth {
            let snapshot = self.machine.snapshot();
            self.path.push(Frame {
                snapshot,
                choices: Vec::new(),
                tried: 0,
                index: 0,
                low: 0,
                ends: false,
                runs: 0,
                excluded: 0,
            });
        }
        let frame = &mut self.path[self.depth];
        (frame.index, frame.low, frame.tried, frame.ends) = (index, index, 0, false);
        self.machine.choices(&mut frame.choices);
        frame.runs = frame.choices.iter().fold(0, |all, choice| all | 1 << choice.thread);
        frame.excluded = self.machine.excluded;
        if frame.choices.len() > 1 {
            self.machine.save(&mut frame.snapshot);
        }
    }

    /// Returns from a state whose choices have all been tried.
    fn leave(&mut self) -> Result<(), String> {
        self.depth -= 1;
        let Frame { index, low, mut ends, runs, excluded, .. } = self.path[self.depth];
        if low == index {
            // The bound alone may keep the other threads from running.
            ends |= excluded & !runs != 0;
            if !ends {
                return Err("livelock: no continuation reaches the end of all threads".into());
            }
            while let Some(state) = self.open.pop_if(|state| *state >= index) {
                self.closed[state as usize] = true;
            }
        }
        if let Some(parent) = self.path[..self.depth].last_mut() {
            parent.ends |= ends;
            parent.low = parent.low.min(low);
            if low < index {
                parent.runs |= runs;
                parent.excluded |= excluded;
            }
        }
        Ok(())
    }

    /// The choices that lead to the machine's state.
    fn choices(&self) -> Vec<Choice> {
        self.path[..self.depth].iter().map(|frame| frame.choices[frame.tried - 1]).collect()
    }
}
