//! The change of a process's statistics between two displays.

use crate::statistics::{Lock, Process, table};
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
#[derive(Default)]
pub struct Change {
    pub heading: String,
    /// On the process since its start, in words.
    pub verdict: String,
    pub locks: Vec<LockChange>,
}

/// The change of one lock.
pub struct LockChange {
    /// Its index in the statistics.
    pub index: u32,
    pub label: String,
    pub rates: Rates,
    pub hold_mean_ns: Option<f64>,
    /// The number of threads that wait now.
    pub waiting: u32,
}

/// The counts of a lock since the start of its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub acquisitions: u64,
    pub contended: u64,
    pub wait_ns: u64,
    /// None for the C library's locks, which do not report it.
    pub parks: Option<u64>,
    pub local: u64,
    pub remote: u64,
}

impl Counts {
    pub fn of(lock: &Lock) -> Counts {
        Counts {
            acquisitions: lock.acquisitions,
            contended: lock.contended,
            wait_ns: lock.wait_ns,
            parks: lock.parks,
            local: lock.handovers_local,
            remote: lock.handovers_remote,
        }
    }
}

/// The rates of events of a lock over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Acquisitions per second.
    pub taken: f64,
    /// The contended share of the acquisitions.
    pub contended: Option<f64>,
    /// The mean number of waiting threads.
    pub waited: f64,
    pub wait_mean_ns: Option<f64>,
    /// Per second; None if unknown.
    pub parks: Option<f64>,
    /// Hand-overs to a waiter of the same locality domain, and of another one; per second.
    pub local: f64,
    pub remote: f64,
}

impl Rates {
    /// From `before` to `now`, in `time`.
    pub fn between(before: &Counts, now: &Counts, time: Duration) -> Rates {
        // While the counts of an ending thread move, they may be counted twice.
        let more = |of: fn(&Counts) -> u64| of(now).saturating_sub(of(before)) as f64;
        let ratio = |of: f64, to: f64| (to > 0.0).then(|| of / to);
        let seconds = time.as_secs_f64().max(1e-9);
        let (taken, contended, wait_ns) = (
            more(|lock| lock.acquisitions),
            more(|lock| lock.contended),
            more(|lock| lock.wait_ns),
        );
        Rates {
            taken: taken / seconds,
            contended: ratio(contended, taken),
            waited: wait_ns / 1e9 / seconds,
            wait_mean_ns: ratio(wait_ns, contended),
            parks: now.parks.map(|_| more(|lock| lock.parks.unwrap_or(0)) / seconds),
            local: more(|lock| lock.local) / seconds,
            remote: more(|lock| lock.remote) / seconds,
        }
    }
}

impl Change {
    /// The change from `before` to `now`, in `time`.
    pub fn between(before: &Process, now: &Process, time: Duration) -> Change {
        let known: HashMap<u32, Counts> =
            before.locks.iter().map(|lock| (lock.index, Counts::of(lock))).collect();
        let change = |lock: &Lock| LockChange {
            index: lock.index,
            label: lock.label(),
            rates: Rates::between(
                &known.get(&lock.index).copied().unwrap_or_default(),
                &Counts::of(lock),
                time,
            ),
            hold_mean_ns: lock.hold_mean_ns,
            waiting: lock.waiting,
        };
        let heading = format!(
            "{} ({}): {}, {}; so far {} elapsed, {} threads, {} of thread time",
            now.program,
            now.pid,
            now.lock,
            now.rwlock,
            table::time(Some(now.elapsed_ns as f64)),
            now.threads,
            table::time(Some(now.thread_ns as f64))
        );
        let verdict = format!("So far: {}", now.verdict);
        Change { heading, verdict, locks: now.locks.iter().map(change).collect() }
    }

    /// The position of the lock with this index in the statistics.
    pub fn position(&self, index: u32) -> Option<usize> {
        self.locks.iter().position(|lock| lock.index == index)
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
                    .then_with(|| order(Some(a.rates.taken), Some(b.rates.taken)))
            }
        });
    }
}

impl LockChange {
    /// The figure in a column; None if it is absent, or for [`Column::Lock`].
    fn figure(&self, column: Column) -> Option<f64> {
        match column {
            Column::Lock => None,
            Column::Acquired => Some(self.rates.taken),
            Column::Contended => self.rates.contended,
            Column::Waiters => Some(self.rates.waited),
            Column::Now => Some(self.waiting.into()),
            Column::MeanWait => self.rates.wait_mean_ns,
            Column::Hold => self.hold_mean_ns,
            Column::Parks => self.rates.parks,
            Column::Remote => Some(self.rates.remote),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::{Change, Column, Counts, LockChange, Rates};
    use std::time::Duration;

    /// Three locks; each column but `taken` has another order.
    pub fn three() -> Change {
        let lock = |index, label: &str, taken, waited, hold_mean_ns| LockChange {
            index,
            label: label.to_owned(),
            rates: Rates {
                taken,
                contended: Some(0.5),
                waited,
                parks: Some(123_456.0),
                ..Rates::default()
            },
            hold_mean_ns,
            waiting: 0,
        };
        Change {
            heading: "three locks".to_owned(),
            verdict: "a verdict".to_owned(),
            locks: vec![
                lock(0, "b", 1_234_567.0, 1.0, None),
                lock(1, "a_lock_of_a_long_name (in some_function)", 2.0, 3.0, Some(5.0)),
                lock(2, "c", 3.0, 2.0, Some(7.0)),
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

    #[test]
    fn rates_are_differences_over_time() {
        let before = Counts { acquisitions: 10, contended: 4, wait_ns: 1_000, ..Counts::default() };
        let now = Counts {
            acquisitions: 30,
            contended: 9,
            wait_ns: 1_000_001_000,
            parks: Some(6),
            local: 8,
            remote: 2,
        };
        let rates = Rates::between(&before, &now, Duration::from_secs(2));
        let expected = Rates {
            taken: 10.0,
            contended: Some(0.25),
            waited: 0.5,
            wait_mean_ns: Some(2e8),
            parks: Some(3.0),
            local: 4.0,
            remote: 1.0,
        };
        assert_eq!(rates, expected);
        let native = Counts { parks: None, ..now };
        assert_eq!(Rates::between(&before, &native, Duration::from_secs(2)).parks, None);
        let backwards = Rates::between(&now, &before, Duration::from_secs(2));
        assert_eq!((backwards.taken, backwards.contended), (0.0, None));
    }
}
