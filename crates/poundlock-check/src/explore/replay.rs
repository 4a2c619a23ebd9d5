// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replay of one execution, with a description of each step.

use crate::abi::Client;
use crate::machine::{Choice, Machine, Needs, Settings};

/// A description of the execution that `path` leads through, and the error at its end.
pub fn replay(
    client: &'static Client,
    settings: Settings,
    path: &[Choice],
) -> (Vec<String>, Option<String>) {
    Needs::retry(|needs| run(client, settings, needs, path))
}

fn run(
    client: &'static Client,
    settings: Settings,
    needs: Needs,
    path: &[Choice],
) -> ((Vec<String>, Option<String>), Needs) {
    let mut machine = Machine::new(client, settings, needs);
    machine.trace = Some(Vec::new());
    let mut choices = Vec::new();
    let mut fault = None;
    for &choice in path {
        machine.choices(&mut choices);
        if !choices.contains(&choice) {
            fault = Some(format!(
                "step {}: T{} has no such alternative",
                machine.steps() + 1,
                choice.thread
            ));
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
    ((machine.trace.take().unwrap_or_default(), fault), machine.needs)
}
