//! A comparison as a text table.

use super::summary::{Comparison, Summary};
use crate::text_table::{self, ABSENT, median, number, range};

const MIB: f64 = 1024.0 * 1024.0;

const COLUMNS: usize = 9;

/// The columns that a narrow terminal omits, in this order.
const EXPENDABLE: [usize; 5] = [5, 7, 6, 3, 2];

/// The table with its caption, for a terminal of `width` characters if that is limited.
pub fn render(comparison: &Comparison, width: Option<usize>) -> String {
    let rows: Vec<_> =
        comparison.locks.iter().map(|lock| row(lock, comparison.peak_rss_floor_bytes)).collect();
    let table = text_table::fitted(&header(comparison), &rows, &EXPENDABLE, width);
    format!("{table}\n{}", caption(comparison))
}

/// The names of the columns.
pub fn header(comparison: &Comparison) -> [String; COLUMNS] {
    let names = ["std dev", "min - max", "ratio", "ratio min - max", "CPU s", "peak MiB", "runs"];
    let names = ["lock".to_owned(), heading(comparison)]
        .into_iter()
        .chain(names.map(str::to_owned))
        .collect::<Vec<_>>();
    names.try_into().expect("as many names as columns")
}

/// The compared figure with its unit.
pub fn heading(comparison: &Comparison) -> String {
    let figure = &comparison.figure;
    if figure.unit.is_empty() {
        figure.name.to_owned()
    } else {
        format!("{} {}", figure.name, figure.unit)
    }
}

/// The line under the table.
pub fn caption(comparison: &Comparison) -> String {
    let repeats = comparison.settings.repeats;
    let stopped = if comparison.interrupted { " Interrupted." } else { "" };
    let better = comparison.figure.better;
    format!(
        "Medians of {repeats} interleaved repeats; ratio: to native in the same repeat; {better} is better.{stopped}"
    )
}

/// A lock's cells, under [`header`].
pub fn row(lock: &Summary, floor: u64) -> [String; COLUMNS] {
    let total = lock.succeeded + lock.failed;
    let runs = if lock.failed == 0 {
        total.to_string()
    } else {
        format!("{} of {total} FAILED", lock.failed)
    };
    [
        lock.lock.clone(),
        median(lock.figure),
        lock.figure_stddev.map_or(ABSENT.to_owned(), number),
        range(lock.figure),
        median(lock.ratio),
        range(lock.ratio),
        median(lock.cpu),
        lock.peak_rss_bytes.map_or(ABSENT.to_owned(), |bytes| memory(bytes.median, floor)),
        runs,
    ]
}

/// A peak in MiB. Below `floor`, the memory that a process inherits from this one, the peak is
/// unknown.
fn memory(bytes: f64, floor: u64) -> String {
    let bound = if bytes <= floor as f64 { "< " } else { "" };
    format!("{bound}{:.1}", bytes / MIB)
}
