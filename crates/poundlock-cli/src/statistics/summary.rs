//! Summarises a file of statistics, lock by lock.

use super::file::{Counts, Observed};
use super::names::{Names, in_short};
use super::time::Times;
use super::verdict::verdict;
use crate::control::Kind;
use poundlock_bench::NATIVE;
use poundlock_bench::metrics::{fairness_factor, jain};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// A process from its start or an exec to its end or the next exec.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    pub pid: u32,
    pub program: String,
    pub lock: String,
    pub rwlock: String,
    /// Seconds since 1970.
    pub started: u64,
    /// The mean number of acquisitions per timed hold, after the first holds of a lock.
    pub hold_every: u32,
    pub threads: u64,
    pub elapsed_ns: u64,
    /// The sum over the threads, each from its first lock operation to its end.
    pub thread_ns: u64,
    /// The sum over the locks, and its share of the thread time.
    pub wait_ns: u64,
    pub wait_share: Option<f64>,
    /// Whether locks are a problem, in words.
    pub verdict: String,
    /// The numbers of threads and stacks that found no room and are in no figure.
    pub threads_unobserved: u64,
    pub stacks_unobserved: u64,
    /// How often a lock found no room and was counted in the row of the others.
    pub locks_unobserved: u64,
    /// How often a thread's share of a lock was dropped. Fairness covers the remaining threads.
    pub shares_unobserved: u64,
    /// The events of `core/events.def` that happened, over all locks.
    pub events: BTreeMap<String, u64>,
    /// The locks with the longest total wait first.
    pub locks: Vec<Lock>,
}

/// The part of a lock that a row describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Mutex,
    Spin,
    Readers,
    Writers,
    /// All locks that found no room.
    Others,
}

/// The origin of a lock's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Named {
    /// By the program.
    Program,
    Symbol,
    Stack,
    Address,
    Others,
}

#[derive(Clone, Debug, Serialize)]
pub struct Lock {
    pub name: String,
    pub named_by: Named,
    pub side: Side,
    /// Whether the program uses it through Poundlock's API, which chooses the algorithm.
    pub api: bool,
    /// "0x..."
    pub address: String,
    /// The number of locks that were created in turn at this address and share this row.
    pub lives: u32,
    /// The call stack of the first waiter, innermost first.
    pub stack: Vec<String>,
    pub acquisitions: u64,
    pub contended: u64,
    /// The contended share of acquisitions and timed-out waits.
    pub contended_share: Option<f64>,
    pub trylock_failures: u64,
    pub timeouts: u64,
    pub waiting: u32,
    pub wait_ns: u64,
    /// The share of the process's thread time.
    pub wait_share: Option<f64>,
    pub wait_mean_ns: Option<f64>,
    pub wait_max_ns: u64,
    /// The number of waiters that an arriving waiter sees, including itself.
    pub queue_mean: Option<f64>,
    pub queue_max: u64,
    pub holds_timed: u64,
    pub hold_mean_ns: Option<f64>,
    /// The longest timed hold.
    pub hold_max_ns: u64,
    /// The total hold time, estimated from the timed holds.
    pub hold_ns: Option<f64>,
    pub handovers_local: u64,
    pub handovers_remote: u64,
    /// None for the C library's locks, which do not report it.
    pub parks: Option<u64>,
    pub wakeups_in_section: Option<u64>,
    /// The number of threads that acquired it, as far as known.
    pub threads: usize,
    pub fairness_factor: Option<f64>,
    pub jain: Option<f64>,
    #[serde(skip)]
    pub index: u32,
    /// The address as a number; None: all locks that found no room.
    #[serde(skip)]
    pub place: Option<u64>,
}

impl Lock {
    /// Its kind in a control page; None if it cannot be there.
    pub fn controlled(&self) -> Option<Kind> {
        match self.side {
            _ if self.api => None,
            Side::Mutex => Some(Kind::Mutex),
            Side::Readers | Side::Writers => Some(Kind::ReadersWriter),
            Side::Spin | Side::Others => None,
        }
    }

    /// The name with the side.
    pub fn label(&self) -> String {
        match self.side {
            Side::Readers => format!("{} (readers)", self.name),
            Side::Writers => format!("{} (writers)", self.name),
            Side::Mutex | Side::Spin | Side::Others => self.name.clone(),
        }
    }
}

impl Process {
    /// Whether the locks are the program's own.
    pub fn is_native(&self) -> bool {
        self.lock == NATIVE
    }

    /// The algorithm of a lock.
    pub fn lock_of(&self, lock: &Lock) -> &str {
        match lock.side {
            _ if lock.api => "",
            Side::Mutex | Side::Spin => &self.lock,
            Side::Readers | Side::Writers => &self.rwlock,
            Side::Others => "",
        }
    }

    /// All of it, with names.
    pub fn of(observed: &Observed, names: &mut Names) -> Process {
        let mut sums: HashMap<u32, Counts> = HashMap::new();
        let mut shares: HashMap<u32, BTreeMap<u64, u64>> = HashMap::new();
        for share in &observed.shares {
            add_to(
                shares.entry(share.lock).or_default().entry(share.thread).or_default(),
                share.acquisitions,
            );
        }
        for (thread, (lock, counts)) in observed
            .threads
            .iter()
            .flat_map(|thread| thread.rows.iter().map(move |row| (thread, row)))
        {
            add(sums.entry(*lock).or_default(), counts);
            let taken = counts.get("acquisitions").copied().unwrap_or(0);
            if taken > 0 {
                add_to(shares.entry(*lock).or_default().entry(thread.serial).or_default(), taken);
            }
        }
        let mut locks: Vec<Lock> = observed
            .locks
            .iter()
            .filter_map(|item| {
                let mut counts = sums.remove(&item.index).unwrap_or_default();
                add(&mut counts, &item.counts);
                let used = counts.values().any(|count| *count > 0);
                let shares: Vec<f64> = shares
                    .get(&item.index)
                    .into_iter()
                    .flat_map(|shares| shares.values().map(|n| *n as f64))
                    .collect();
                used.then(|| lock(observed, item.index, &counts, &shares, names))
            })
            .collect();
        let times = Times::of(observed);
        let share = |ns: u64| (times.thread_ns > 0).then(|| ns as f64 / times.thread_ns as f64);
        for lock in &mut locks {
            lock.wait_share = share(lock.wait_ns);
        }
        let wait_ns = locks.iter().map(|lock| lock.wait_ns).fold(0, u64::saturating_add);
        locks.sort_by_key(|lock| {
            std::cmp::Reverse((lock.wait_ns, lock.contended, lock.acquisitions))
        });
        let mut process = Process {
            pid: observed.pid,
            program: observed.program.clone(),
            lock: observed.lock.clone(),
            rwlock: observed.rwlock.clone(),
            started: observed.start_s,
            hold_every: observed.hold_every,
            threads: observed.threads_seen,
            elapsed_ns: times.elapsed_ns,
            thread_ns: times.thread_ns,
            wait_ns,
            wait_share: share(wait_ns),
            verdict: String::new(),
            threads_unobserved: observed.threads_unobserved,
            stacks_unobserved: observed.stacks_unobserved,
            locks_unobserved: observed.locks_unobserved,
            shares_unobserved: observed.shares_unobserved,
            events: events(observed),
            locks,
        };
        process.verdict = verdict(&process);
        process
    }
}

fn events(observed: &Observed) -> BTreeMap<String, u64> {
    let sum = |event: usize| {
        observed.threads.iter().map(|thread| thread.events[event]).fold(0, u64::saturating_add)
    };
    let all = observed.events.iter().enumerate().map(|(index, name)| (name.clone(), sum(index)));
    all.filter(|(_, count)| *count > 0).collect()
}

/// Adds without overflow: a file may have any counts.
fn add_to(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Adds counts to sums; a maximum becomes the larger one.
fn add(sums: &mut Counts, counts: &Counts) {
    for (name, count) in counts {
        let sum = sums.entry(name.clone()).or_default();
        *sum = if name.contains("_max") { (*sum).max(*count) } else { sum.saturating_add(*count) };
    }
}

fn lock(
    observed: &Observed,
    index: u32,
    counts: &Counts,
    shares: &[f64],
    names: &mut Names,
) -> Lock {
    let item = &observed.locks[index as usize];
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    let ratio = |of: u64, to: u64| (to > 0).then(|| of as f64 / to as f64);
    let stack = item
        .stack
        .and_then(|place| observed.stacks.binary_search_by_key(&place, |stack| stack.index).ok());
    let stack =
        stack.map_or(Vec::new(), |at| names.stack(&observed.modules, &observed.stacks[at].frames));
    let side = match (item.address, item.readers_writer) {
        (0, _) => Side::Others,
        (_, false) if item.spin => Side::Spin,
        (_, false) => Side::Mutex,
        (address, true) if address % 2 == 1 => Side::Readers,
        _ => Side::Writers,
    };
    let address = item.address & !1;
    let (name, named_by) = match names.object(&observed.modules, address) {
        _ if side == Side::Others => ("(others)".to_owned(), Named::Others),
        _ if !item.name.is_empty() => (item.name.clone(), Named::Program),
        Some(symbol) => (symbol, Named::Symbol),
        None if !stack.is_empty() => (in_short(&stack), Named::Stack),
        None => (format!("{address:#x}"), Named::Address),
    };
    let (acquisitions, contended) = (count("acquisitions"), count("contended"));
    let (holds_timed, hold_timed_ns) = (count("holds_timed"), count("hold_timed_ns"));
    let first = Holds { count: count("holds_first"), ns: count("hold_first_ns") };
    let hold_ns = hold_ns(acquisitions, Holds { count: holds_timed, ns: hold_timed_ns }, first);
    let reported = item.api || observed.lock != NATIVE;
    let several = side != Side::Others && contended > 0 && shares.len() > 1;
    Lock {
        name,
        named_by,
        side,
        api: item.api,
        address: format!("{address:#x}"),
        lives: item.lives,
        stack,
        acquisitions,
        contended,
        contended_share: ratio(contended, acquisitions.saturating_add(count("timeouts"))),
        trylock_failures: count("trylock_failures"),
        timeouts: count("timeouts"),
        waiting: item.waiting,
        wait_ns: count("wait_ns"),
        wait_share: None,
        wait_mean_ns: ratio(count("wait_ns"), contended),
        wait_max_ns: count("wait_max_ns"),
        queue_mean: ratio(count("queue_sum"), contended).filter(|_| side != Side::Others),
        queue_max: count("queue_max"),
        holds_timed,
        hold_mean_ns: hold_ns.filter(|_| acquisitions > 0).map(|sum| sum / acquisitions as f64),
        hold_max_ns: count("hold_timed_max_ns"),
        hold_ns,
        handovers_local: count("handovers_local"),
        handovers_remote: count("handovers_remote"),
        parks: reported.then(|| count("parks")),
        wakeups_in_section: reported.then(|| count("wakeups_in_section")),
        threads: shares.len(),
        fairness_factor: fairness_factor(shares).filter(|_| several),
        jain: jain(shares).filter(|_| several),
        index,
        place: (address != 0).then_some(address),
    }
}

/// Holds that were timed.
struct Holds {
    count: u64,
    ns: u64,
}

/// Estimates the total hold time: the `first` holds as timed, each other hold as the mean of the
/// sampled ones. None if no hold was timed.
fn hold_ns(acquisitions: u64, timed: Holds, first: Holds) -> Option<f64> {
    let (count, ns) = (timed.count.saturating_sub(first.count), timed.ns.saturating_sub(first.ns));
    let mean = |of: &Holds| (of.count > 0).then(|| of.ns as f64 / of.count as f64);
    let other = mean(&Holds { count, ns }).or(mean(&first))?;
    Some(first.ns as f64 + other * acquisitions.saturating_sub(first.count) as f64)
}

#[cfg(test)]
mod tests {
    use super::{Holds, hold_ns};

    #[test]
    fn first_holds_count_once_and_others_for_all_that_were_not_timed() {
        let of = |acquisitions, timed, first| {
            let holds = |(count, ns)| Holds { count, ns };
            hold_ns(acquisitions, holds(timed), holds(first))
        };
        assert_eq!(of(10, (0, 0), (0, 0)), None);
        assert_eq!(of(10, (10, 500), (10, 500)), Some(500.0));
        // Ten slow ones at the start, then a thousand of 2 ns, of which four were timed.
        assert_eq!(of(1010, (14, 10_008), (10, 10_000)), Some(10_000.0 + 2_000.0));
        assert_eq!(of(1000, (4, 8), (0, 0)), Some(2_000.0));
        // None of the others was timed yet.
        assert_eq!(of(20, (10, 500), (10, 500)), Some(1_000.0));
    }
}
