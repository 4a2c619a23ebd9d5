//! Statistics as text tables.

use super::layout;
use super::summary::{Lock, Process};
use crate::text_table::{ABSENT, fitted, number, shorten};

const NAME: usize = 48;

pub const HEADER: [&str; 15] = [
    "lock",
    "acquired",
    "contended",
    "wait",
    "share",
    "mean",
    "longest",
    "hold",
    "queue",
    "remote",
    "parks",
    "woken in",
    "try failed",
    "Jain",
    "factor",
];

/// The columns that a narrow terminal omits, in this order.
const EXPENDABLE: [usize; 11] = [11, 12, 13, 14, 9, 10, 8, 6, 7, 5, 1];

/// The meaning of each column, for `--help` and the report.
pub const MEANINGS: [(&str, &str); 15] = [
    ("lock", "the symbol at its address, or the functions of its first waiter, or the address"),
    ("acquired", "number of acquisitions"),
    ("contended", "share of the acquisitions and time-outs that found the lock held"),
    ("wait", "time that threads waited for it, summed over all threads"),
    ("share", "the same as a share of the thread time of the process"),
    ("mean", "mean wait of a contended acquisition"),
    ("longest", "longest wait"),
    ("hold", "mean time from acquisition to release, estimated from timed holds"),
    ("queue", "waiters that an arriving waiter sees, itself included: mean/maximum"),
    ("remote", "share of the hand-overs to a waiter in another locality domain"),
    ("parks", "number of times that a waiter went to sleep; unknown for native locks"),
    ("woken in", "sleepers woken before the lock was free for others; unknown for native locks"),
    ("try failed", "failed attempts without waiting"),
    ("Jain", "fairness over threads: 1 is even, 1/n if one of n threads acquired it always"),
    ("factor", "share of the half of the threads that acquired it more often: 0.5 is even"),
];

/// The meanings of columns, for `--help`.
pub fn legend(meanings: &[(&str, &str)]) -> String {
    let width = meanings.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, meaning): &(&str, &str)| format!("\n  {name:<width$}  {meaning}");
    "Columns:".to_owned() + &meanings.iter().map(line).collect::<String>()
}

/// The locks of a process, the longest total wait first, with notes on what is missing. In a
/// terminal of limited `width` some columns are omitted.
pub fn table(process: &Process, rows: usize, width: Option<usize>) -> String {
    let mut lines = vec![heading(process)];
    if process.locks.is_empty() {
        lines.push(process.verdict.clone());
        return lines.join("\n");
    }
    let shown: Vec<_> = process.locks.iter().take(rows).map(row).collect();
    lines.push(fitted(&HEADER, &shown, &EXPENDABLE, width));
    if process.locks.len() > rows {
        lines.push(format!("and {} more: --rows, --json, --csv", process.locks.len() - rows));
    }
    lines.extend(notes(process));
    lines.push(process.verdict.clone());
    lines.join("\n")
}

/// The line above the table of a process.
pub fn heading(process: &Process) -> String {
    format!(
        "{} ({}): {}, {}; {} elapsed, {} threads, {} of thread time; holds: the first {} of a \
         lock by each thread, then 1 in {} timed",
        process.program,
        process.pid,
        process.lock,
        process.rwlock,
        time(Some(process.elapsed_ns as f64)),
        process.threads,
        time(Some(process.thread_ns as f64)),
        layout::HOLDS_FIRST,
        process.hold_every
    )
}

/// A lock's cells, under [`HEADER`].
pub fn row(lock: &Lock) -> [String; 15] {
    let count = |count: Option<u64>| count.map_or(ABSENT.to_owned(), |count| count.to_string());
    let handovers = lock.handovers_local + lock.handovers_remote;
    let remote = (handovers > 0).then(|| lock.handovers_remote as f64 / handovers as f64);
    [
        shorten(&lock.label(), NAME),
        lock.acquisitions.to_string(),
        percent(lock.contended_share),
        time(Some(lock.wait_ns as f64).filter(|_| lock.contended > 0)),
        percent(lock.wait_share.filter(|_| lock.contended > 0)),
        time(lock.wait_mean_ns),
        time(Some(lock.wait_max_ns as f64).filter(|_| lock.contended > 0)),
        time(lock.hold_mean_ns),
        lock.queue_mean.map_or(ABSENT.to_owned(), |mean| format!("{mean:.1}/{}", lock.queue_max)),
        percent(remote),
        count(lock.parks),
        count(lock.wakeups_in_section),
        lock.trylock_failures.to_string(),
        lock.jain.map_or(ABSENT.to_owned(), |jain| format!("{jain:.3}")),
        lock.fairness_factor.map_or(ABSENT.to_owned(), |factor| format!("{factor:.3}")),
    ]
}

/// Formats a share as a percentage.
pub fn percent(share: Option<f64>) -> String {
    share.map_or(ABSENT.to_owned(), |share| format!("{:.1}%", 100.0 * share))
}

/// Formats a time with a suitable unit.
pub fn time(ns: Option<f64>) -> String {
    let Some(ns) = ns else {
        return ABSENT.to_owned();
    };
    let (unit, name) = [(1e9, "s"), (1e6, "ms"), (1e3, "us")]
        .into_iter()
        .find(|(unit, _)| ns >= *unit)
        .unwrap_or((1.0, "ns"));
    format!("{} {name}", if unit == 1.0 { format!("{ns:.0}") } else { number(ns / unit) })
}

/// Notes on what found no room in the file.
pub fn notes(process: &Process) -> Vec<String> {
    let told = [
        (process.locks_unobserved, "operations are in row (others): their locks found no room"),
        (process.threads_unobserved, "threads were not observed: too many at a time"),
        (process.stacks_unobserved, "stacks were dropped"),
        (process.shares_unobserved, "shares of threads were dropped: fairness covers the others"),
    ];
    told.into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{HEADER, MEANINGS, time};

    #[test]
    fn each_column_has_a_meaning() {
        assert_eq!(MEANINGS.map(|(name, _)| name), HEADER);
    }

    #[test]
    fn times_have_a_suitable_unit() {
        let texts = [None, Some(0.0), Some(999.0), Some(1000.0), Some(2.5e6), Some(61e9)].map(time);
        assert_eq!(texts, ["-", "0 ns", "999 ns", "1.000 us", "2.500 ms", "61.00 s"]);
    }
}
