// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random walks through a client's executions, reproducible by seed.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::LONGEST;
use super::report::{Execution, Report, Verdict, check};
use crate::abi::Client;
use crate::machine::{Choice, Machine, Needs, Settings};

/// The length that the first walk is expected to have.
const FIRST_LENGTH: u32 = 100;
/// The number of random steps at which priorities change.
const PRIORITY_CHANGES: usize = 4;
/// One in this number of steps takes a random alternative instead of the expected one.
const RANDOM_ALTERNATIVE: u32 = 4;

/// How walks choose threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// A random thread that can continue.
    Random,
    /// The thread with the highest priority. Priorities change at random steps (PCT, ASPLOS'10).
    Priorities,
}

/// Walks `count` times through `client`. The choices of a failure are those of its walk.
pub fn walks(
    client: &'static Client,
    settings: Settings,
    walk: Walk,
    count: u64,
    seed: u64,
) -> Report {
    Needs::retry(|needs| run(client, settings, needs, walk, count, seed))
}

fn run(
    client: &'static Client,
    settings: Settings,
    needs: Needs,
    walk: Walk,
    count: u64,
    seed: u64,
) -> (Report, Needs) {
    let mut machine = Machine::new(client, settings, needs);
    let start = machine.snapshot();
    let mut report = Report::new();
    let mut length = FIRST_LENGTH;
    for number in 0..count {
        let mut random = SmallRng::seed_from_u64(seed.wrapping_add(number));
        machine.restore(&start);
        let mut path = Vec::new();
        let mut scheduler = Scheduler::new(walk, client.threads as usize, length, &mut random);
        if let Err(fault) = run_one(&mut machine, &mut scheduler, &mut random, &mut path) {
            let execution = Execution { choices: path, cycle: None };
            report.verdict = Verdict::Fails(fault, execution);
            break;
        }
        length = length.max(machine.steps());
        report.ends += 1;
        report.states += path.len() as u64;
        report.steps += path.len() as u64;
    }
    report.events = machine.events;
    report.bypasses = machine.bypasses;
    (report, machine.needs())
}

fn run_one(
    machine: &mut Machine,
    scheduler: &mut Scheduler,
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
            scheduler.put_last(thread);
        }
        let choice = scheduler.choose(machine.steps(), &choices, random);
        path.push(choice);
        machine.perform(choice);
        check(machine, LONGEST)?;
    }
    machine.finish();
    machine.fault.take().map_or(Ok(()), Err)
}

/// Chooses the next step of a walk.
struct Scheduler {
    walk: Walk,
    /// The threads, highest priority first.
    priorities: Vec<u8>,
    /// The steps at which the running thread falls to the lowest priority.
    changes: Vec<u32>,
}

impl Scheduler {
    fn new(walk: Walk, threads: usize, length: u32, random: &mut SmallRng) -> Scheduler {
        let mut priorities: Vec<u8> = (0..threads as u8).collect();
        for at in (1..priorities.len()).rev() {
            priorities.swap(at, random.random_range(0..=at));
        }
        let changes = (0..PRIORITY_CHANGES).map(|_| random.random_range(0..length)).collect();
        Scheduler { walk, priorities, changes }
    }

    /// Mostly the expected alternative of the chosen thread, which is its first in `choices`.
    fn choose(&mut self, step: u32, choices: &[Choice], random: &mut SmallRng) -> Choice {
        let thread = match self.walk {
            Walk::Random => choices[random.random_range(0..choices.len())].thread,
            Walk::Priorities => self.highest(step, choices),
        };
        let of_thread: Vec<Choice> =
            choices.iter().copied().filter(|choice| choice.thread == thread).collect();
        if random.random_range(0..RANDOM_ALTERNATIVE) == 0 {
            return of_thread[random.random_range(0..of_thread.len())];
        }
        of_thread[0]
    }

    /// Gives `thread` the lowest priority. Idempotent.
    fn put_last(&mut self, thread: u8) {
        self.priorities.retain(|other| *other != thread);
        self.priorities.push(thread);
    }

    fn highest(&mut self, step: u32, choices: &[Choice]) -> u8 {
        let can_run = |thread: &u8| choices.iter().any(|choice| choice.thread == *thread);
        if self.changes.contains(&step) {
            let first = *self
                .priorities
                .iter()
                .find(|thread| can_run(thread))
                .expect("some thread can run");
            self.put_last(first);
        }
        *self.priorities.iter().find(|thread| can_run(thread)).expect("some thread can run")
    }
}
