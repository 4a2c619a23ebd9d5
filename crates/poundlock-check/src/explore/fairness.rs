// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress under a fair scheduler: a search for executions that are fair and never end.
//!
//! Threads of a client perform a finite number of operations, so an execution without an end is one
//! in which, from some state on, no operation completes. It repeats states of one strongly
//! connected set. It is fair if
//! - each thread performs steps again and again, or is unable to again and again (weak fairness),
//! - every store becomes visible to all threads at last: a step can repeatedly read a message other
//!   than the newest, or store before it, only if stores after the newest repeat as well. Since the
//!   states repeat, older messages are then dropped again and again: none is read indefinitely,
//! - of the environment's choices (random numbers, the time, deadlines, ranks), each is made again
//!   and again where it can be.
//!
//! Which sleeper is woken, and whether a thread sleeps, is up to an adversary.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use super::report::Execution;
use crate::machine::{Choice, NO_LOCATION};

/// A state of a strongly connected set.
#[derive(Clone, Copy)]
pub struct State {
    pub index: u32,
    /// The bits of the threads that cannot continue.
    pub idle: u32,
    /// The number of the environment's choices; 0 in a state in which threads can continue.
    pub chances: u32,
}

/// A step from a state to another.
#[derive(Clone, Copy)]
pub struct Step {
    pub from: u32,
    pub to: u32,
    pub choice: Choice,
    /// The location of which it reads a message other than the newest, or stores before it.
    pub stale: u16,
    /// The location to which it stores after the newest message.
    pub appends: u16,
}

/// The states of a strongly connected set, by position, and the steps between them.
struct Graph<'a> {
    states: &'a [State],
    /// `from` and `to` are positions in `states`.
    steps: Vec<Step>,
    /// By step, whether a fair execution cannot repeat it.
    excluded: Vec<bool>,
    /// By state, its steps.
    out: Vec<Vec<usize>>,
    /// By state, its part: a set of states connected by steps that a fair execution can repeat,
    /// named by one of them. None: a fair execution cannot repeat the state.
    parts: Vec<Option<usize>>,
}

/// Finds a fair execution without an end in the strongly connected set of `states`, which are in
/// order of their indices, and the `steps` between them. Returns the choices from the first state
/// on.
pub fn endless(states: &[State], steps: Vec<Step>, threads: Range<usize>) -> Option<Execution> {
    let threads = threads.fold(0, |threads, thread| threads | 1 << thread);
    let idle = states.iter().fold(0, |idle, state| idle | state.idle);
    let moves = steps.iter().fold(0, |moves, step| moves | mover(step));
    if moves == 0 || idle | moves != threads {
        return None;
    }
    let mut graph = Graph::new(states, steps);
    graph.divide();
    let part = graph.fair_part(threads)?;
    Some(graph.execution(part, threads))
}

/// The bit of the thread that performs `step`.
fn mover(step: &Step) -> u32 {
    1 << step.choice.thread
}

/// A location whose newest message the `cycle` neglects and to which it does not append.
fn awaited(cycle: &[Step]) -> Option<u16> {
    let neglects = |step: &&Step| {
        step.stale != NO_LOCATION && cycle.iter().all(|other| other.appends != step.stale)
    };
    cycle.iter().find(neglects).map(|step| step.stale)
}

impl<'a> Graph<'a> {
    fn new(states: &'a [State], mut steps: Vec<Step>) -> Graph<'a> {
        let position = |index: u32| {
            let at = states.binary_search_by_key(&index, |state| state.index);
            at.expect("the step is within the set") as u32
        };
        let mut out = vec![Vec::new(); states.len()];
        for (number, step) in steps.iter_mut().enumerate() {
            (step.from, step.to) = (position(step.from), position(step.to));
            out[step.from as usize].push(number);
        }
        let (excluded, parts) = (vec![false; steps.len()], vec![Some(0); states.len()]);
        Graph { states, steps, excluded, out, parts }
    }

    /// The part in which a fair execution can repeat the step.
    fn part_of(&self, number: usize) -> Option<usize> {
        let step = &self.steps[number];
        let (from, to) = (self.parts[step.from as usize], self.parts[step.to as usize]);
        from.filter(|_| from == to && !self.excluded[number])
    }

    /// The steps of `state` that a fair execution can repeat.
    fn repeated(&self, state: usize) -> impl Iterator<Item = &Step> {
        let steps = self.out[state].iter();
        steps.filter(|&&step| self.part_of(step).is_some()).map(|&step| &self.steps[step])
    }

    /// Excludes the steps that do not follow the newest message of a location to which no step of
    /// their part appends. Returns whether there are any.
    fn exclude_stale(&mut self) -> bool {
        let parts: Vec<Option<usize>> =
            (0..self.steps.len()).map(|number| self.part_of(number)).collect();
        let appends: HashSet<(usize, u16)> = parts
            .iter()
            .zip(&self.steps)
            .filter_map(|(part, step)| part.map(|part| (part, step.appends)))
            .collect();
        let mut any = false;
        for (number, step) in self.steps.iter().enumerate() {
            let stale = step.stale != NO_LOCATION
                && parts[number].is_some_and(|part| !appends.contains(&(part, step.stale)));
            self.excluded[number] |= stale;
            any |= stale;
        }
        any
    }

    /// Computes the parts. A state whose environment can choose to leave its part is in none.
    fn divide(&mut self) {
        loop {
            self.connect();
            while self.exclude_stale() {
                self.connect();
            }
            let leaves = |&state: &usize| {
                let kept = self.repeated(state).count() as u32;
                self.parts[state].is_some() && kept < self.states[state].chances
            };
            let leaving: Vec<usize> = (0..self.states.len()).filter(leaves).collect();
            if leaving.is_empty() {
                return;
            }
            leaving.into_iter().for_each(|state| self.parts[state] = None);
        }
    }

    /// Divides each part into its strongly connected sets (Kosaraju).
    fn connect(&mut self) {
        let mut into = vec![Vec::new(); self.states.len()];
        for number in (0..self.steps.len()).filter(|&number| self.part_of(number).is_some()) {
            let step = &self.steps[number];
            into[step.to as usize].push(step.from as usize);
        }
        let mut parts = vec![None; self.states.len()];
        for root in self.finished().into_iter().rev() {
            let mut reached = vec![root];
            while let Some(state) = reached.pop() {
                if parts[state].is_none() {
                    parts[state] = Some(root);
                    reached.extend(&into[state]);
                }
            }
        }
        self.parts = parts;
    }

    /// The states of all parts, in the order in which a search in depth leaves them.
    fn finished(&self) -> Vec<usize> {
        let mut seen = vec![false; self.states.len()];
        let mut finished = Vec::new();
        for root in (0..self.states.len()).filter(|&state| self.parts[state].is_some()) {
            let mut path = vec![(root, 0)];
            while let Some((state, tried)) = path.pop() {
                if tried == 0 && std::mem::replace(&mut seen[state], true) {
                    continue;
                }
                match self.repeated(state).nth(tried) {
                    Some(step) => path.extend([(state, tried + 1), (step.to as usize, 0)]),
                    None => finished.push(state),
                }
            }
        }
        finished
    }

    /// A part whose steps, all repeated, are a fair execution.
    fn fair_part(&self, threads: u32) -> Option<usize> {
        let mut idle = vec![0; self.states.len()];
        let mut moves = vec![0; self.states.len()];
        for (state, part) in self.parts.iter().enumerate() {
            if let &Some(part) = part {
                idle[part] |= self.states[state].idle;
                moves[part] |= self.repeated(state).map(mover).fold(0, |moves, bit| moves | bit);
            }
        }
        (0..self.states.len()).find(|&part| moves[part] != 0 && idle[part] | moves[part] == threads)
    }

    /// The execution to `part`, and from there a cycle of steps that makes it fair.
    fn execution(&self, part: usize, threads: u32) -> Execution {
        let any = |_: usize| true;
        let first = self.path(0, any, |state| self.parts[state] == Some(part));
        let begin = first.last().map_or(0, |step| step.to as usize);
        let inside = |step: usize| self.part_of(step).is_some();
        let mut cycle: Vec<Step> = self.repeated(begin).take(1).copied().collect();
        loop {
            let here = cycle.last().expect("the part has a step").to as usize;
            let done = cycle
                .iter()
                .fold(0, |done, step| done | mover(step) | self.states[step.to as usize].idle);
            let awaited = awaited(&cycle);
            if done == threads && awaited.is_none() {
                cycle.extend(self.path(here, inside, |state| state == begin));
                if self::awaited(&cycle).is_none() {
                    break;
                }
                continue;
            }
            let lacks = |step: &&Step| match awaited {
                Some(location) => step.appends == location,
                None => mover(step) & !done != 0,
            };
            let lacking = |state: usize| self.repeated(state).find(lacks);
            let idles = |state: usize| awaited.is_none() && self.states[state].idle & !done != 0;
            let way = self.path(here, inside, |state| idles(state) || lacking(state).is_some());
            let there = way.last().map_or(here, |step| step.to as usize);
            cycle.extend(way);
            cycle.extend(lacking(there));
        }
        let choices = first.iter().chain(&cycle).map(|step| step.choice).collect();
        Execution { choices, cycle: Some(first.len()) }
    }

    /// The shortest path of steps that `allowed` accepts from `from` to a state that is a `goal`.
    /// There must be one.
    fn path(
        &self,
        from: usize,
        allowed: impl Fn(usize) -> bool,
        goal: impl Fn(usize) -> bool,
    ) -> Vec<Step> {
        let mut by: Vec<Option<Step>> = vec![None; self.states.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(state) = queue.pop_front() {
            if goal(state) {
                let mut path = Vec::new();
                let mut at = state;
                while at != from {
                    let step = by[at].expect("the state was reached by a step");
                    path.push(step);
                    at = step.from as usize;
                }
                path.reverse();
                return path;
            }
            for &number in &self.out[state] {
                let step = self.steps[number];
                let to = step.to as usize;
                if allowed(number) && to != from && by[to].is_none() {
                    by[to] = Some(step);
                    queue.push_back(to);
                }
            }
        }
        unreachable!("the states are connected")
    }
}
