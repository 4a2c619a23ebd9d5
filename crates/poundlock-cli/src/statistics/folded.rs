//! Folds the stacks of waiters and holders into lines for a flame graph, frames from the outermost
//! on.

use super::file::{Observed, StackKind};
use super::names::Names;
use super::summary::Process;
use std::collections::{BTreeMap, HashMap};

/// Returns the weight of each stack in microseconds by its line: lock, "waiters" or "holders",
/// functions. Of holders, only holds that delayed a waiter count.
pub fn folded(
    observed: &Observed,
    process: &Process,
    several: bool,
    names: &mut Names,
) -> BTreeMap<String, u64> {
    let labels: HashMap<u32, String> =
        process.locks.iter().map(|lock| (lock.index, lock.label())).collect();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for stack in
        observed.stacks.iter().filter(|stack| stack.kind != StackKind::First && stack.count > 0)
    {
        let side = if stack.kind == StackKind::Waiter { "waiters" } else { "holders" };
        let label = labels.get(&stack.lock).map_or("(others)", String::as_str);
        let mut frames = if several {
            vec![frame(&format!("{} ({})", process.program, process.pid))]
        } else {
            Vec::new()
        };
        frames.extend([frame(label), side.to_owned()]);
        frames.extend(
            names.stack(&observed.modules, &stack.frames).iter().rev().map(|name| frame(name)),
        );
        let sum = lines.entry(frames.join(";")).or_default();
        *sum = sum.saturating_add(stack.ns.div_ceil(1000));
    }
    lines
}

/// Replaces the separator of frames in a name.
fn frame(name: &str) -> String {
    name.replace(';', ":")
}
