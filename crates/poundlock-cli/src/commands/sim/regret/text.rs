//! The report as a table, as Markdown, and as CSV.

use super::Report;
use super::judge::{Figures, Judged};
use crate::failure::Failure;
use crate::text_table::{self, ABSENT, number};
use std::fmt::Write as _;

/// The number of points that are listed as the worst.
const WORST: usize = 12;
const HEADER: [&str; 10] = [
    "machine",
    "load",
    "threads",
    "million/s",
    "best fair lock",
    "million/s",
    "regret",
    "fairness",
    "M/CPU s",
    "of the best",
];

/// The worst points and the summary.
pub fn render(report: &Report) -> String {
    let mut table = text_table::with_header(&HEADER, 2..HEADER.len());
    for row in worst(report) {
        table.add_row(row);
    }
    format!("{table}\n{}", summary(report))
}

/// The points with the largest regrets.
fn worst(report: &Report) -> Vec<[String; HEADER.len()]> {
    let mut points: Vec<&Judged> = report.points.iter().filter(|p| p.regret.is_some()).collect();
    points.sort_by(|a, b| b.regret.partial_cmp(&a.regret).expect("no regret is NaN"));
    points.into_iter().take(WORST).map(row).collect()
}

fn row(point: &Judged) -> [String; HEADER.len()] {
    let own = point.locks.first();
    let best = point.best();
    let figure = |of: Option<&Figures>, which: fn(&Figures) -> Option<f64>, scale: f64| {
        of.and_then(which).map_or(ABSENT.to_owned(), |value| number(value * scale))
    };
    [
        point.machine.clone(),
        point.workload.clone(),
        point.threads.to_string(),
        figure(own, |figures| figures.per_second, 1e-6),
        point.best.clone().unwrap_or_default(),
        figure(best, |figures| figures.per_second, 1e-6),
        percent(point.regret),
        figure(own, |figures| figures.fairness_factor, 1.0),
        figure(own, |figures| figures.per_cpu_second, 1e-6),
        figure(best, |figures| figures.per_cpu_second, 1e-6),
    ]
}

fn percent(regret: Option<f64>) -> String {
    regret.map_or(ABSENT.to_owned(), |regret| format!("{:.0} %", 100.0 * regret))
}

fn summary(report: &Report) -> String {
    let summary = &report.summary;
    let stopped = if report.interrupted { " Interrupted." } else { "" };
    let seeds = match report.seeds {
        1 => "One seed".to_owned(),
        seeds => format!("Medians of {seeds} seeds"),
    };
    let placement = report
        .placement
        .as_ref()
        .map_or(String::new(), |place| format!(" Placement of the threads: {place}."));
    format!(
        "Regret of {} at {} points: median {}, 90th percentile {}, worst {}.\n\
         Rivals have a fairness factor of at most {}; the lock has more at {} points. {seeds}.\
         {placement}\n\
         Of {} simulations {} reached their limit before their throughput was steady, and {} \
         failed.{stopped}",
        report.lock,
        summary.points,
        percent(summary.median),
        percent(summary.p90),
        percent(summary.worst),
        report.fairness,
        summary.unfair,
        report.points.iter().flat_map(|p| &p.locks).map(|l| l.outcomes.len()).sum::<usize>(),
        summary.unsteady,
        summary.failed,
    )
}

/// The summary, the worst points, and the worst regret of each machine with each load.
pub fn markdown(report: &Report) -> String {
    let mut text = summary(report) + "\n\n";
    let mut line = |cells: &[String]| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(&HEADER.map(str::to_owned));
    line(&HEADER.map(|_| "---".to_owned()));
    worst(report).iter().for_each(|row| line(row));
    text.push('\n');
    let (machines, loads) = (distinct(report, |p| &p.machine), distinct(report, |p| &p.workload));
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    let header = ["worst regret"].into_iter().chain(loads.iter().copied());
    line(header.map(str::to_owned).collect());
    line(vec!["---".to_owned(); loads.len() + 1]);
    for machine in machines {
        let worst = |load: &&str| {
            let here = |p: &&Judged| p.machine == machine && p.workload == *load;
            let regrets = report.points.iter().filter(here).filter_map(|point| point.regret);
            percent(regrets.reduce(f64::max))
        };
        line([machine.to_owned()].into_iter().chain(loads.iter().map(worst)).collect());
    }
    text
}

/// The names in the order of the points.
fn distinct(report: &Report, name: fn(&Judged) -> &String) -> Vec<&str> {
    let mut names: Vec<&str> = vec![];
    for point in &report.points {
        if !names.contains(&name(point).as_str()) {
            names.push(name(point));
        }
    }
    names
}

/// A row for each lock at each point.
pub fn csv(report: &Report) -> Result<Vec<u8>, Failure> {
    let mut writer = csv::Writer::from_writer(vec![]);
    let header = [
        "machine",
        "workload",
        "threads",
        "lock",
        "per_second",
        "per_cpu_second",
        "fairness_factor",
        "unsteady",
        "best",
    ];
    writer.write_record(header).map_err(Failure::ours)?;
    let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for point in &report.points {
        for lock in &point.locks {
            let record = [
                point.machine.clone(),
                point.workload.clone(),
                point.threads.to_string(),
                lock.lock.clone(),
                cell(lock.per_second),
                cell(lock.per_cpu_second),
                cell(lock.fairness_factor),
                lock.unsteady.to_string(),
                (Some(&lock.lock) == point.best.as_ref()).to_string(),
            ];
            writer.write_record(record).map_err(Failure::ours)?;
        }
    }
    writer.into_inner().map_err(Failure::ours)
}
