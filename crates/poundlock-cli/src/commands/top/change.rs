//! The change of a process's statistics between two displays.

use crate::statistics::{Lock, Process};
use std::collections::HashMap;
use std::time::Duration;

/// The change of all locks of a process.
pub struct Change {
    pub heading: String,
    /// The locks with the most waiting time first.
    pub locks: Vec<LockChange>,
}

/// The change of one lock.
pub struct LockChange {
    pub label: String,
    /// Acquisitions per second.
    pub taken: f64,
    /// The contended share of the acquisitions.
    pub contended: Option<f64>,
    /// The mean number of waiting threads.
    pub waited: f64,
    pub wait_mean_ns: Option<f64>,
    pub hold_mean_ns: Option<f64>,
    /// The number of threads that wait now.
    pub waiting: u32,
    /// Per second.
    pub parks: f64,
    /// Per second.
    pub remote: f64,
}

impl Change {
    /// The change from `before` to `now`, in `time`.
    pub fn between(before: &Process, now: &Process, time: Duration) -> Change {
        let known: HashMap<u32, &Lock> =
            before.locks.iter().map(|lock| (lock.index, lock)).collect();
        let seconds = time.as_secs_f64().max(1e-9);
        let mut locks: Vec<LockChange> = now
            .locks
            .iter()
            .map(|lock| lock_change(known.get(&lock.index).copied(), lock, seconds))
            .collect();
        locks.sort_by(|a, b| {
            (b.waited, b.taken)
                .partial_cmp(&(a.waited, a.taken))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let heading = format!(
            "{} ({}): {}, {}; {} threads so far",
            now.program, now.pid, now.lock, now.rwlock, now.threads
        );
        Change { heading, locks }
    }
}

fn lock_change(before: Option<&Lock>, now: &Lock, seconds: f64) -> LockChange {
    // While the counts of an ending thread move, they may be counted twice.
    let more = |of: fn(&Lock) -> u64| of(now).saturating_sub(before.map_or(0, of)) as f64;
    let ratio = |of: f64, to: f64| (to > 0.0).then(|| of / to);
    let (taken, contended, wait_ns) =
        (more(|lock| lock.acquisitions), more(|lock| lock.contended), more(|lock| lock.wait_ns));
    LockChange {
        label: now.label(),
        taken: taken / seconds,
        contended: ratio(contended, taken),
        waited: wait_ns / 1e9 / seconds,
        wait_mean_ns: ratio(wait_ns, contended),
        hold_mean_ns: now.hold_mean_ns,
        waiting: now.waiting,
        parks: more(|lock| lock.parks) / seconds,
        remote: more(|lock| lock.handovers_remote) / seconds,
    }
}
