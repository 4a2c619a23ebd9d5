//! A comparison as a table, for a person.

use super::summary::{Comparison, Spread, Summary};
use crate::text_table;

const MIB: f64 = 1024.0 * 1024.0;
const ABSENT: &str = "-";

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

/// What is compared, with its unit.
pub fn heading(comparison: &Comparison) -> String {
    let figure = &comparison.figure;
    if figure.unit.is_empty() { figure.name.to_owned() } else { format!("{} {}", figure.name, figure.unit) }
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
    let runs = if lock.failed == 0 { total.to_string() } else { format!("{} of {total} FAILED", lock.failed) };
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

fn median(spread: Option<Spread>) -> String {
    spread.map_or(ABSENT.to_owned(), |spread| number(spread.median))
}

fn range(spread: Option<Spread>) -> String {
    spread.map_or(ABSENT.to_owned(), |spread| format!("{} - {}", number(spread.min), number(spread.max)))
}

/// A program smaller than what it inherits from us could be any size below that.
fn memory(bytes: f64, floor: u64) -> String {
    let bound = if bytes <= floor as f64 { "< " } else { "" };
    format!("{bound}{:.1}", bytes / MIB)
}

/// Four significant digits, and all of those before the point.
pub fn number(value: f64) -> String {
    let before_point = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = usize::try_from(4 - before_point).unwrap_or(0).min(9);
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_four_significant_digits() {
        let texts = [0.0, 0.001_234_5, 0.98, 1.0, 12.345, 1_234.5, 123_456.7].map(number);
        assert_eq!(texts, ["0.000", "0.001234", "0.9800", "1.000", "12.35", "1234", "123457"]);
    }
}
