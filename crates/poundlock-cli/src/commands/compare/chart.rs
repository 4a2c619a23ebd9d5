//! A comparison as a chart: a bar for each lock's median, a whisker for its range, native as the
//! reference.

use super::summary::{Comparison, Summary};
use super::table::heading;
use crate::plot::bars::{Bar, Chart};
use crate::text_table::number;

/// The chart. `native` is the name of the reference.
pub fn chart(comparison: &Comparison, native: &str) -> Chart {
    Chart {
        title: comparison.command.join(" "),
        caption: format!(
            "{}; median and spread of {} runs, {} is better",
            comparison.provenance.machine_line(),
            comparison.settings.repeats,
            comparison.figure.better
        ),
        axis: heading(comparison),
        bars: comparison.locks.iter().map(|lock| bar(lock, native)).collect(),
    }
}

fn bar(lock: &Summary, native: &str) -> Bar {
    Bar {
        name: lock.lock.clone(),
        spread: lock.figure,
        figure: lock.figure.map_or(String::new(), |figure| number(figure.median)),
        detail: lock.ratio.map_or(String::new(), |ratio| format!("× {}", number(ratio.median))),
        failure: if lock.failed == 0 { String::new() } else { format!("{} failed", lock.failed) },
        is_reference: lock.lock == native,
    }
}
