//! A comparison as a text table.

use super::summary::{Comparison, Summary};
use crate::text_table::{self, ABSENT, median, range};

const MIB: f64 = 1024.0 * 1024.0;

/// The table with its caption.
pub fn render(comparison: &Comparison) -> String {
    let heading = heading(comparison);
    let header = ["lock", &heading, "min - max", "ratio", "min - max", "CPU s", "peak MiB", "runs"];
    let mut table = text_table::with_header(&header, 1..header.len());
    for lock in &comparison.locks {
        table.add_row(row(lock, comparison.peak_rss_floor_bytes));
    }
    format!("{table}\n{}", caption(comparison))
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

fn caption(comparison: &Comparison) -> String {
    let repeats = comparison.settings.repeats;
    let stopped = if comparison.interrupted { " Interrupted." } else { "" };
    let better = comparison.figure.better;
    format!(
        "Medians of {repeats} interleaved repeats; ratio: to native in the same repeat; {better} is better.{stopped}"
    )
}

fn row(lock: &Summary, floor: u64) -> [String; 8] {
    let total = lock.succeeded + lock.failed;
    let runs = if lock.failed == 0 {
        total.to_string()
    } else {
        format!("{} of {total} FAILED", lock.failed)
    };
    [
        lock.lock.clone(),
        median(lock.figure),
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
