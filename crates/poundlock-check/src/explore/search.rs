// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exhaustive search: all states of a client, depth first.
//!
//! Promises: each state is visited once (96 bits of a hash identify each: `Code`), but not
//! the states that only reordered executions reach (machine/reduction.rs). The client holds only
//! if every visited state can still reach the end of all threads: a deadlock, a lost wake-up and a
//! livelock are states that cannot. It also holds only if all fair executions end (fairness.rs).
//! Under a bound on preemptions, a set of states that cannot be left is accepted only if the bound
//! excludes a thread that does not run in it. The same client under the same settings gives the
//! same report.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::LONGEST;
use super::fairness::{self, State, Step};
use super::report::{ENDLESS, Execution, Report, Verdict, check};
use crate::abi::Client;
use crate::machine::{Choice, Effect, Machine, Needs, Settings, Snapshot};

/// The code of a state: 96 bits of a hash, so that a state takes 17 bytes of a table that is full.
#[derive(PartialEq, Eq)]
struct Code([u32; 3]);

impl Code {
    fn new((low, high): (u64, u64)) -> Code {
        Code([low as u32, (low >> 32) as u32, high as u32])
    }
}

impl Hash for Code {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [low, high, _] = self.0;
        state.write_u64(u64::from(high) << 32 | u64::from(low));
    }
}

/// The hash of a key that is a hash.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a code is hashed as one u64")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A state on the path, and the progress of its choices.
struct Frame {
    snapshot: Snapshot,
    choices: Vec<Choice>,
    /// The number of the first choices that represent all, and whether only if no step of them is
    /// visible.
    enough: usize,
    if_invisible: bool,
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
    /// The number of steps in `steps` before the state was visited.
    steps: usize,
}

/// An error, and the execution to it from the state of the last frame.
struct Failure {
    what: String,
    rest: Execution,
}

impl From<String> for Failure {
    fn from(what: String) -> Failure {
        Failure { what, rest: Execution::default() }
    }
}

struct Search {
    machine: Box<Machine>,
    known: HashMap<Code, u32, BuildHasherDefault<Identity>>,
    /// By state, whether everything reachable from it has been visited.
    closed: Vec<bool>,
    /// The states that are not closed, in order of their visits.
    open: Vec<State>,
    /// The steps from open states, in order of their execution.
    steps: Vec<Step>,
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
        steps: Vec::new(),
        path: Vec::new(),
        depth: 0,
        width,
        longest: settings.longest,
        report: Report::new(),
    };
    if let Err(Failure { what, rest }) = search.run(limit) {
        search.report.verdict = Verdict::Fails(what, rest.after(search.choices()));
    }
    search.report.events = search.machine.events;
    search.report.bypasses = search.machine.bypasses;
    (search.report, search.machine.needs())
}

impl Search {
    /// Returns the first error.
    fn run(&mut self, limit: u64) -> Result<(), Failure> {
        self.arrive(Effect::default())?;
        while self.depth > 0 {
            let frame = &mut self.path[self.depth - 1];
            if frame.tried == frame.enough {
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
            self.arrive(self.machine.effect)?;
            if self.report.states > limit || self.machine.steps() > self.longest {
                self.report.verdict = Verdict::Unfinished;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Processes the state that the machine is in, after a step with that `effect`.
    fn arrive(&mut self, effect: Effect) -> Result<(), Failure> {
        check(&mut self.machine, LONGEST)?;
        let code = Code::new(self.machine.code());
        let index = *self.known.entry(code).or_insert(self.closed.len() as u32);
        let is_new = index as usize == self.closed.len();
        if let Some(frame) = self.path[..self.depth].last_mut() {
            if is_new || !self.closed[index as usize] {
                let choice = frame.choices[frame.tried - 1];
                let (from, Effect { stale, appends, .. }) = (frame.index, effect);
                self.steps.push(Step { from, to: index, choice, stale, appends });
            }
            let closed = !is_new && self.closed[index as usize];
            if effect.visible && frame.if_invisible || !is_new && !closed {
                frame.enough = frame.choices.len();
            }
            if closed {
                frame.ends = true;
            } else {
                frame.low = frame.low.min(index);
            }
        }
        if !is_new {
            return Ok(());
        }
        self.closed.push(false);
        self.report.states += 1;
        self.enter(index);
        if self.machine.is_over() {
            self.path[self.depth].ends = true;
            self.report.ends += 1;
            self.machine.finish();
            self.report.outcomes.insert(self.machine.outcome(self.width));
            if let Some(fault) = self.machine.fault.take() {
                return Err(fault.into());
            }
        } else if self.machine.is_stuck(&self.path[self.depth].choices) {
            return Err(self.machine.deadlock().into());
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
                enough: 0,
                if_invisible: false,
                tried: 0,
                index: 0,
                low: 0,
                ends: false,
                runs: 0,
                excluded: 0,
                steps: 0,
            });
        }
        let frame = &mut self.path[self.depth];
        (frame.index, frame.low, frame.tried, frame.ends) = (index, index, 0, false);
        self.machine.choices(&mut frame.choices);
        (frame.enough, frame.if_invisible) = (self.machine.enough, self.machine.if_invisible);
        frame.runs = frame.choices.iter().fold(0, |all, choice| all | 1 << choice.thread);
        frame.excluded = self.machine.excluded;
        frame.steps = self.steps.len();
        let chances = if self.machine.chance { frame.choices.len() as u32 } else { 0 };
        self.open.push(State { index, idle: self.machine.idle, chances });
        if frame.choices.len() > 1 {
            self.machine.save(&mut frame.snapshot);
        }
    }

    /// Returns from a state whose choices have all been tried.
    fn leave(&mut self) -> Result<(), Failure> {
        self.depth -= 1;
        let Frame { index, low, mut ends, runs, excluded, steps, .. } = self.path[self.depth];
        if low == index {
            // The bound alone may keep the other threads from running.
            ends |= excluded & !runs != 0;
            if !ends {
                let what = "livelock: no continuation reaches the end of all threads";
                return Err(what.to_string().into());
            }
            self.close(index, steps)?;
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

    /// Closes the strongly connected set of the open states from `first` on. `steps` is the number
    /// of steps before those of the set.
    fn close(&mut self, first: u32, steps: usize) -> Result<(), Failure> {
        let closed = &self.closed;
        let within = |step: &Step| step.to >= first && !closed[step.to as usize];
        let inner: Vec<Step> = self.steps.drain(steps..).filter(within).collect();
        let states = &self.open[self.open.partition_point(|state| state.index < first)..];
        if let Some(rest) = fairness::endless(states, inner, self.machine.threads()) {
            return Err(Failure { what: ENDLESS.into(), rest });
        }
        while let Some(state) = self.open.pop_if(|state| state.index >= first) {
            self.closed[state.index as usize] = true;
        }
        Ok(())
    }

    /// The choices that lead to the state of the last frame.
    fn choices(&self) -> Vec<Choice> {
        self.path[..self.depth].iter().map(|frame| frame.choices[frame.tried - 1]).collect()
    }
}
