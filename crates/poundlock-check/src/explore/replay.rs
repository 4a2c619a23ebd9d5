// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replay of one execution, with a description of each step.
//!
//! A replay confirms an execution without an end by itself: its cycle leads back to the same state
//! and ignores no newest message indefinitely, and each thread performs a step of it or has to
//! wait.

use std::collections::BTreeSet;

use super::report::{ENDLESS, Execution};
use crate::abi::Client;
use crate::machine::{Choice, Machine, NO_LOCATION, Needs, Settings};

/// A description of `execution`, and the error at its end.
pub fn replay(
    client: &'static Client,
    settings: Settings,
    execution: &Execution,
) -> (Vec<String>, Option<String>) {
    Needs::retry(|needs| run(client, settings, needs, execution))
}

fn run(
    client: &'static Client,
    settings: Settings,
    needs: Needs,
    execution: &Execution,
) -> ((Vec<String>, Option<String>), Needs) {
    let mut machine = Machine::new(client, settings, needs);
    machine.trace = Some(Vec::new());
    let mut fault = perform(&mut machine, execution).err();
    if fault.is_none() && machine.is_over() {
        machine.finish();
        fault = machine.fault.take();
    }
    ((machine.trace.take().unwrap_or_default(), fault), machine.needs())
}

/// Performs `execution`. Returns the first error.
fn perform(machine: &mut Machine, execution: &Execution) -> Result<(), String> {
    if let Some(fault) = machine.fault.take() {
        return Err(fault); // of a thread that began
    }
    let (first, cycle) = execution.choices.split_at(execution.prefix());
    first.iter().try_for_each(|&choice| step(machine, choice))?;
    if cycle.is_empty() {
        let mut choices = Vec::new();
        machine.choices(&mut choices);
        let stuck = machine.is_stuck(&choices) && !machine.is_over();
        return if stuck { Err(machine.deadlock()) } else { Ok(()) };
    }
    machine.trace.get_or_insert_default().push("       these steps repeat:".into());
    let code = machine.code();
    let (mut waiting, mut stale, mut appends) = (0, BTreeSet::new(), BTreeSet::new());
    for &choice in cycle {
        step(machine, choice)?;
        waiting |= machine.idle;
        stale.insert(machine.effect.stale);
        appends.insert(machine.effect.appends);
    }
    stale.remove(&NO_LOCATION);
    if machine.code() != code || !stale.is_subset(&appends) {
        return Err("the steps after the colon do not lead back to the state before them".into());
    }
    let moves = cycle.iter().fold(0, |moves, choice| moves | 1 << choice.thread);
    Err(match machine.threads().find(|thread| (moves | waiting) >> thread & 1 == 0) {
        Some(thread) => format!("unfair: T{thread} can always continue, but does not"),
        None => ENDLESS.into(),
    })
}

/// Performs `choice`.
fn step(machine: &mut Machine, choice: Choice) -> Result<(), String> {
    let mut choices = Vec::new();
    machine.choices(&mut choices);
    if !choices.contains(&choice) {
        let (step, thread) = (machine.steps() + 1, choice.thread);
        return Err(format!("step {step}: T{thread} has no such alternative"));
    }
    machine.perform(choice);
    machine.fault.take().map_or(Ok(()), Err)
}
