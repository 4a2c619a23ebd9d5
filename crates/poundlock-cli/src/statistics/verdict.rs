//! Whether locks are a problem of a process, in words.

use super::summary::{Lock, Process};
use super::table::time;

/// The share of thread time below which waits for locks are no problem.
pub const NEGLIGIBLE: f64 = 0.02;

/// The verdict on a process, whose locks are sorted by the time waited for them.
pub fn verdict(process: &Process) -> String {
    let (Some(share), Some(first)) = (process.wait_share, process.locks.first()) else {
        return "No thread acquired a lock that is counted.".to_owned();
    };
    if share < NEGLIGIBLE {
        return format!(
            "Locks are no problem of this process: {:.1} % of its thread time waits for them.",
            100.0 * share
        );
    }
    let of_first = first.wait_ns as f64 / process.wait_ns.max(1) as f64;
    let mut text = format!("{} of thread time waits for locks", percent(share));
    text += &format!(", {} of that for {}", percent(of_first), described(first));
    if let Some(hold) = first.hold_mean_ns {
        text += &format!(", held for {} on average", time(Some(hold)));
    }
    text += ".";
    if process.is_native() {
        text += " `poundlock compare` measures whether another lock helps.";
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A lock, with the function that waited for it first if its name lacks that.
fn described(lock: &Lock) -> String {
    match lock.stack.first() {
        Some(function) if !lock.label().contains(function.as_str()) => {
            format!("{}, waited for in {function}", lock.label())
        }
        _ => lock.label(),
    }
}
