//! A comparison as Markdown and as CSV.

use super::summary::{Comparison, Summary};
use super::table::{caption, header, row};
use std::error::Error;

const CSV_HEADER: [&str; 13] = [
    "lock",
    "succeeded",
    "failed",
    "median",
    "stddev",
    "min",
    "max",
    "ratio",
    "ratio_min",
    "ratio_max",
    "wall",
    "cpu",
    "peak_rss_bytes",
];

/// The table of the terminal, as Markdown.
pub fn markdown(comparison: &Comparison) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let header = header(comparison);
    let rule = format!("|---|{}\n", "---:|".repeat(header.len() - 1));
    let rows: String = comparison
        .locks
        .iter()
        .map(|lock| line(&row(lock, comparison.peak_rss_floor_bytes)))
        .collect();
    let command = comparison.command.join(" ");
    format!("`{command}`\n\n{}{rule}{rows}\n{}\n", line(&header), caption(comparison))
}

/// A line per lock. An absent figure is an empty cell; times are in seconds.
pub fn csv(comparison: &Comparison) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(CSV_HEADER)?;
    for lock in &comparison.locks {
        let Summary { figure, ratio, .. } = lock;
        writer.serialize((
            (&lock.lock, lock.succeeded, lock.failed),
            (figure.map(|figure| figure.median), lock.figure_stddev),
            (figure.map(|figure| figure.min), figure.map(|figure| figure.max)),
            (ratio.map(|ratio| ratio.median), ratio.map(|ratio| ratio.min)),
            (ratio.map(|ratio| ratio.max), lock.wall.map(|wall| wall.median)),
            (lock.cpu.map(|cpu| cpu.median), lock.peak_rss_bytes.map(|bytes| bytes.median)),
        ))?;
    }
    Ok(writer.into_inner()?)
}
