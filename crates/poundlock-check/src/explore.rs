// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exploration: all states of a client, depth first, or seeded random walks.
//!
//! Promises: `all` visits each state once (states are told apart by 128 bits of their codes), and holds only if every
//! state that was visited can still come to the end of all threads: a deadlock, a lost wake-up and a livelock are each
//! a state that cannot. Under a bound on switches the threads that it leaves out must have gone on for that: no thread is
//! left waiting for ever while others go round. The same client under the same settings gives the same report.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::abi::Client;
use crate::machine::{Choice, EVENTS, Machine, Moment, Needs, Settings};

/// The most steps of an execution: more are a fault.
pub const LONGEST: u32 = 20_000;

/// How an exploration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Holds,
    /// What went wrong, and the choices that lead there.
    Fails(String, Vec<Choice>),
    /// The limit of states was reached before the end.
    Unfinished,
}

/// What an exploration found.
pub struct Report {
    pub verdict: Verdict,
    pub states: u64,
    pub steps: u64,
    /// How often an execution came to its end in a state not met before.
    pub ends: u64,
    pub outcomes: BTreeSet<String>,
    pub events: [u64; EVENTS],
    /// The most later arrivals that have passed a waiter.
    pub passed: u32,
}

impl Report {
    /// Takes in what another exploration of the same client has found.
    pub fn add(&mut self, other: Report) {
        self.verdict = other.verdict;
        self.states += other.states;
        self.steps += other.steps;
        self.ends += other.ends;
        self.outcomes.extend(other.outcomes);
        self.passed = self.passed.max(other.passed);
        for (mine, theirs) in self.events.iter_mut().zip(other.events) {
            *mine += theirs;
        }
    }
}

/// The codes are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
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

/// A state on the path, whose choices are being tried.
struct Frame {
    moment: Moment,
    choices: Vec<Choice>,
    tried: usize,
    index: u32,
    /// The earliest state on the path that is known to be reachable from here (Tarjan's low link).
    low: u32,
    /// Whether the end is known to be reachable from here.
    ends: bool,
    /// Of the states that are known to be reachable from here and back: the threads that go on in some, and those that
    /// could but were left out, a bit each.
    runs: u32,
    left_out: u32,
}

struct Search {
    machine: Box<Machine>,
    known: HashMap<(u64, u64), u32, BuildHasherDefault<AsIs>>,
    /// By state, whether all that is reachable from it has been visited.
    closed: Vec<bool>,
    /// States that are not closed, in the order of their visit.
    open: Vec<u32>,
    path: Vec<Frame>,
    depth: usize,
    width: usize,
    /// The most steps of an execution.
    longest: u32,
    report: Report,
}

fn report() -> Report {
    Report {
        verdict: Verdict::Holds,
        states: 0,
        steps: 0,
        ends: 0,
        outcomes: BTreeSet::new(),
        events: [0; EVENTS],
        passed: 0,
    }
}

/// Runs `explore` as if the client needed nothing kept track of, and again whenever it turns out to need more.
fn with_needs<T>(explore: impl Fn(Needs) -> (T, Needs)) -> T {
    let mut needs = Needs::default();
    loop {
        let (result, met) = explore(needs.clone());
        if met == needs {
            return result;
        }
        needs = met;
    }
}

/// Visits all states of `client`, up to `limit`. `width` outcomes are collected.
pub fn all(client: &'static Client, settings: Settings, limit: u64, width: usize) -> Report {
    with_needs(|needs| search(client, settings, needs, limit, width))
}

fn search(client: &'static Client, settings: Settings, needs: Needs, limit: u64, width: usize) -> (Report, Needs) {
    let mut search = Search {
        machine: Machine::new(client, settings, needs),
        known: HashMap::default(),
        closed: Vec::new(),
        open: Vec::new(),
        path: Vec::new(),
        depth: 0,
        width,
        longest: settings.longest,
        report: report(),
    };
    if let Err(fault) = search.run(limit) {
        search.report.verdict = Verdict::Fails(fault, search.choices());
    }
    search.report.events = search.machine.events;
    search.report.passed = search.machine.passed;
    (search.report, search.machine.needs)
}

impl Search {
    /// Err: the fault.
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
                self.machine.restore(&frame.moment);
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

    /// Takes in the state that the machine is in.
    fn arrive(&mut self) -> Result<(), String> {
        check(&mut self.machine)?;
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
        if self.path.len() == self.depth {
            let moment = self.machine.moment();
            self.path.push(Frame {
                moment,
                choices: Vec::new(),
                tried: 0,
                index: 0,
                low: 0,
                ends: false,
                runs: 0,
                left_out: 0,
            });
        }
        let frame = &mut self.path[self.depth];
        (frame.index, frame.low, frame.tried, frame.ends) = (index, index, 0, false);
        self.machine.choices(&mut frame.choices);
        frame.runs = frame.choices.iter().fold(0, |all, choice| all | 1 << choice.thread);
        frame.left_out = self.machine.left_out;
        if frame.choices.len() > 1 {
            self.machine.keep(&mut frame.moment);
        }
        if self.machine.is_over() {
            frame.ends = true;
            self.report.ends += 1;
            self.machine.finish();
            self.report.outcomes.insert(self.machine.outcome(self.width));
            if let Some(fault) = self.machine.fault.take() {
                return Err(fault);
            }
        } else if frame.choices.is_empty() {
            return Err(self.machine.deadlock());
        }
        self.depth += 1;
        Ok(())
    }

    /// Goes back from a state whose choices have all been tried.
    fn leave(&mut self) -> Result<(), String> {
        self.depth -= 1;
        let Frame { index, low, mut ends, runs, left_out, .. } = self.path[self.depth];
        if low == index {
            // That nobody else goes on may be for the bound alone.
            ends |= left_out & !runs != 0;
            if !ends {
                return Err("the threads go on for ever: no continuation of this comes to the end".into());
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
                parent.left_out |= left_out;
            }
        }
        Ok(())
    }

    /// The choices that lead to where the machine is.
    fn choices(&self) -> Vec<Choice> {
        self.path[..self.depth].iter().map(|frame| frame.choices[frame.tried - 1]).collect()
    }
}

/// Err: what the last step did wrong.
fn check(machine: &mut Machine) -> Result<(), String> {
    if let Some(fault) = machine.fault.take() {
        return Err(fault);
    }
    if machine.steps() > LONGEST {
        return Err(format!("no end within {LONGEST} steps"));
    }
    Ok(())
}

/// How walks choose among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Any that can go on.
    Random,
    /// The one of highest priority, priorities changing at a few drawn steps (PCT, ASPLOS'10).
    Priorities,
}

/// Walks `count` times through `client` at random. The fault's choices are those of its walk.
pub fn walks(client: &'static Client, settings: Settings, walk: Walk, count: u64, seed: u64) -> Report {
    with_needs(|needs| walk_about(client, settings, needs, walk, count, seed))
}

fn walk_about(
    client: &'static Client,
    settings: Settings,
    needs: Needs,
    walk: Walk,
    count: u64,
    seed: u64,
) -> (Report, Needs) {
    let mut machine = Machine::new(client, settings, needs);
    let start = machine.moment();
    let mut report = report();
    let mut length = 100;
    for number in 0..count {
        let mut random = SmallRng::seed_from_u64(seed.wrapping_add(number));
        machine.restore(&start);
        let mut path = Vec::new();
        let mut plan = Plan::new(walk, client.threads as usize, length, &mut random);
        if let Err(fault) = one_walk(&mut machine, &mut plan, &mut random, &mut path) {
            report.verdict = Verdict::Fails(fault, path);
            break;
        }
        length = length.max(machine.steps());
        report.ends += 1;
        report.states += path.len() as u64;
        report.steps += path.len() as u64;
    }
    report.events = machine.events;
    report.passed = machine.passed;
    (report, machine.needs)
}

/// Threads by priority, and the steps at which the running one falls to the lowest.
struct Plan {
    walk: Walk,
    order: Vec<u8>,
    changes: Vec<u32>,
}

/// The number of drawn steps at which priorities change.
const CHANGES: usize = 4;
/// How often, one in so many, a walk takes another alternative than the expected one.
const ODD: u32 = 4;

impl Plan {
    fn new(walk: Walk, threads: usize, length: u32, random: &mut SmallRng) -> Plan {
        let mut order: Vec<u8> = (0..threads as u8).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.random_range(0..=at));
        }
        let changes = (0..CHANGES).map(|_| random.random_range(0..length)).collect();
        Plan { walk, order, changes }
    }

    /// The place in `choices` of the thread's expected alternative, or another of that thread's.
    fn choose(&mut self, step: u32, choices: &[Choice], random: &mut SmallRng) -> Choice {
        let thread = match self.walk {
            Walk::Random => choices[random.random_range(0..choices.len())].thread,
            Walk::Priorities => self.first(step, choices),
        };
        let of_thread: Vec<Choice> = choices.iter().copied().filter(|choice| choice.thread == thread).collect();
        if random.random_range(0..ODD) == 0 {
            return of_thread[random.random_range(0..of_thread.len())];
        }
        of_thread[0]
    }

    /// Gives `thread` the lowest priority: the same however often that is said before another one runs.
    fn put_last(&mut self, thread: u8) {
        self.order.retain(|other| *other != thread);
        self.order.push(thread);
    }

    fn first(&mut self, step: u32, choices: &[Choice]) -> u8 {
        let can = |thread: &u8| choices.iter().any(|choice| choice.thread == *thread);
        if self.changes.contains(&step) {
            let first = *self.order.iter().find(|thread| can(thread)).expect("some thread can go on");
            self.put_last(first);
        }
        *self.order.iter().find(|thread| can(thread)).expect("some thread can go on")
    }
}

fn one_walk(
    machine: &mut Machine,
    plan: &mut Plan,
    random: &mut SmallRng,
    path: &mut Vec<Choice>,
) -> Result<(), String> {
    let mut choices = Vec::new();
    while !machine.is_over() {
        machine.choices(&mut choices);
        if choices.is_empty() {
            return Err(machine.deadlock());
        }
        if let Some(thread) = machine.yielded() {
            plan.put_last(thread);
        }
        let choice = plan.choose(machine.steps(), &choices, random);
        path.push(choice);
        machine.perform(choice);
        check(machine)?;
    }
    machine.finish();
    machine.fault.take().map_or(Ok(()), Err)
}

/// The execution that `path` leads to, told to a person, and the fault at its end.
pub fn replay(client: &'static Client, settings: Settings, path: &[Choice]) -> (Vec<String>, Option<String>) {
    with_needs(|needs| tell(client, settings, needs, path))
}

fn tell(
    client: &'static Client,
    settings: Settings,
    needs: Needs,
    path: &[Choice],
) -> ((Vec<String>, Option<String>), Needs) {
    let mut machine = Machine::new(client, settings, needs);
    machine.story = Some(Vec::new());
    let mut choices = Vec::new();
    let mut fault = None;
    for &choice in path {
        machine.choices(&mut choices);
        if !choices.contains(&choice) {
            fault = Some(format!("step {}: T{} cannot do that", machine.steps() + 1, choice.thread));
            break;
        }
        machine.perform(choice);
        fault = machine.fault.take();
        if fault.is_some() {
            break;
        }
    }
    machine.choices(&mut choices);
    if fault.is_none() && machine.is_over() {
        machine.finish();
        fault = machine.fault.take();
    } else if fault.is_none() && choices.is_empty() {
        fault = Some(machine.deadlock());
    }
    ((machine.story.take().unwrap_or_default(), fault), machine.needs)
}
