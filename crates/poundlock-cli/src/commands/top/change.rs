//! The change of a process's statistics between two displays.

use crate::statistics::{Lock, Process};
use clap::ValueEnum;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

/// A column of the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Column {
    Lock,
    Acquired,
    Contended,
    Waiters,
    Now,
    MeanWait,
    Hold,
    Parks,
    Remote,
}

/// The change of all locks of a process.
pub struct Change {
    pub heading: String,
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
        let locks = now
            .locks
            .iter()
            .map(|lock| lock_change(known.get(&lock.index).copied(), lock, seconds))
            .collect();
        let heading = format!(
            "{} ({}): {}, {}; {} threads so far",
            now.program, now.pid, now.lock, now.rwlock, now.threads
        );
        Change { heading, locks }
    }

    /// Sorts the locks: by name, or the largest figures first. Absent figures come last, and equal
    /// ones in the order of acquisitions.
    pub fn sort(&mut self, by: Column) {
        self.locks.sort_by(|a, b| match by {
            Column::Lock => a.label.cmp(&b.label),
            figure => {
                let order =
                    |a: Option<f64>, b: Option<f64>| b.partial_cmp(&a).unwrap_or(Ordering::Equal);
                order(a.figure(figure), b.figure(figure))
                    .then_with(|| order(Some(a.taken), Some(b.taken)))
            }
        });
    }
}

impl LockChange {
    /// The figure in a column; None if it is absent, or for [`Column::Lock`].
    fn figure(&self, column: Column) -> Option<f64> {
        match column {
            Column::Lock => None,
            Column::Acquired => Some(self.taken),
            Column::Contended => self.contended,
            Column::Waiters => Some(self.waited),
            Column::Now => Some(self.waiting.into()),
            Column::MeanWait => self.wait_mean_ns,
            Column::Hold => self.hold_mean_ns,
            Column::Parks => Some(self.parks),
            Column::Remote => Some(self.remote),
        }
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
        parks: more(|lock| lock.parks.unwrap_or(0)) / seconds,
        remote: more(|lock| lock.handovers_remote) / seconds,
    }
}

#[cfg(test)]
pub mod tests {
    use super::{Change, Column, LockChange};

    /// Three locks; each column but `taken` has another order.
    pub fn three() -> Change {
        let lock = |label: &str, taken, waited, hold_mean_ns| LockChange {
            label: label.to_owned(),
            taken,
            contended: Some(0.5),
            waited,
            wait_mean_ns: None,
            hold_mean_ns,
            waiting: 0,
            parks: 123_456.0,
            remote: 0.0,
        };
        Change {
            heading: "three locks".to_owned(),
            locks: vec![
                lock("b", 1_234_567.0, 1.0, None),
                lock("a_lock_of_a_long_name (in some_function)", 2.0, 3.0, Some(5.0)),
                lock("c", 3.0, 2.0, Some(7.0)),
            ],
        }
    }

    #[test]
    fn absent_figures_come_last_and_equal_ones_by_acquisitions() {
        let order = |by| {
            let mut change = three();
            change.sort(by);
            change.locks.iter().map(|lock| lock.label.as_bytes()[0] as char).collect::<String>()
        };
        assert_eq!(order(Column::Lock), "abc");
        assert_eq!(order(Column::Acquired), "bca");
        assert_eq!(order(Column::Waiters), "acb");
        assert_eq!(order(Column::Hold), "cab");
        assert_eq!(order(Column::Parks), "bca");
    }
}
