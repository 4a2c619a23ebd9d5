//! A report as tables, one for each number of threads.

use super::{Point, Report};
use crate::runs::Spread;
use crate::text_table::{self, ABSENT, median, range};
use poundlock_bench::{Limit, Workload};

/// The tables with their caption.
pub fn render(report: &Report) -> String {
    tables(&report.workload, &report.threads, &report.points) + &caption(report)
}

/// A table for each number of threads, with its title.
pub fn tables(workload: &Workload, threads: &[usize], points: &[Point]) -> String {
    let tables = threads.iter().map(|&threads| {
        let points: Vec<&Point> = points.iter().filter(|point| point.threads == threads).collect();
        format!("{}\n{}\n", title(workload, threads), table(workload, &points))
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// The workload and the number of threads.
pub fn title(workload: &Workload, threads: usize) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!("{}, {threads} thread{plural}", workload.name)
}

fn table(workload: &Workload, points: &[&Point]) -> String {
    let classes = workload.classes.len() > 1;
    let mut header = vec![
        "lock",
        "million/s",
        "ratio",
        "min - max",
        "M/CPU s",
        "fairness",
        "Jain",
        "CV",
        "Jain hold",
    ];
    header.extend(classes.then_some("hold shares"));
    header.extend([
        "remote",
        "wakes in CS",
        "waiters",
        "hold ns",
        "hand-over ns",
        "longest ms",
        "runs",
    ]);
    let mut table = text_table::with_header(&header, 1..header.len());
    for point in points {
        table.add_row(row(point, classes));
    }
    table.to_string()
}

fn row(point: &Point, classes: bool) -> Vec<String> {
    let figure = |name: &str| point.figure(name);
    let scaled = |name: &str, scale: f64| figure(name).map(|spread| times(spread, scale));
    let two = |name: &str| decimals(figure(name), 2);
    let total = point.succeeded + point.failed;
    let mut row = vec![
        point.lock.clone(),
        median(scaled("per_second", 1e-6)),
        median(point.ratio),
        range(point.ratio),
        median(scaled("per_cpu_second", 1e-6)),
    ];
    row.extend([two("fairness_factor"), two("jain"), two("variation"), two("jain_hold")]);
    if classes {
        let shares: Vec<String> =
            point.class_shares.iter().map(|share| format!("{:.2}", share.median)).collect();
        row.push(if shares.is_empty() { ABSENT.to_owned() } else { shares.join(" : ") });
    }
    row.extend([two("handovers_remote"), decimals(figure("wakes_in_section"), 3), two("waiters")]);
    row.extend(["hold_ns", "handover_ns"].map(|name| decimals(figure(name), 0)));
    row.push(decimals(scaled("longest_wait_ns", 1e-6), 2));
    row.push(if point.failed == 0 {
        total.to_string()
    } else {
        format!("{} of {total} FAILED", point.failed)
    });
    row
}

/// Scales a spread to another unit.
pub fn times(spread: Spread, scale: f64) -> Spread {
    Spread { median: spread.median * scale, min: spread.min * scale, max: spread.max * scale }
}

/// The median as a cell with a number of decimals.
pub fn decimals(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or(ABSENT.to_owned(), |spread| format!("{:.decimals$}", spread.median))
}

fn caption(report: &Report) -> String {
    let settings = &report.settings;
    let limit = match settings.limit {
        Limit::Seconds { measured, .. } => format!("{measured} s"),
        Limit::Acquisitions(number) => format!("{number} acquisitions"),
    };
    let stopped = if report.interrupted { " Interrupted." } else { "" };
    format!(
        "Medians of {} interleaved repeats of {limit}; ratio: to native in the same repeat. fairness: 0.5 is even, 1 is \
         starvation;\nJain: 1 is even; CV: 0 is even; remote and wakes: per acquisition. Source: {}.{stopped}",
        settings.repeats, report.workload.source
    )
}
