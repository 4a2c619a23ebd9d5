//! The advice on the terminal.

use super::judge::{Load, Over, Regret};
use super::loads::REFERENCES;
use super::report::Report;
use crate::points::table::{self, decimals, times};
use crate::text_table::{self, ABSENT, median};

/// The number of runners-up to print.
const RUNNERS_UP: usize = 4;

pub fn render(report: &Report) -> String {
    let settings = &report.settings;
    let stopped = if report.interrupted { " Interrupted." } else { "" };
    let ties = report
        .loads
        .iter()
        .filter_map(tie)
        .chain(report.loads.iter().filter_map(unfair))
        .collect::<String>();
    format!(
        "{}\n\n{}\n{ties}\n{}\nMedians of {} seeds. over: the ratio of the medians, and its range over any two seeds. Locks \
         whose ranges overlap tie.\nRegret: the share of the best throughput of the load that the lock loses. fairness: \
         0.5 is even, 1 is starvation. Jain: 1 is even.{stopped}",
        report.simulated_machine,
        best_table(&report.loads),
        choice(report),
        settings.seeds,
    )
}

fn name(load: &Load) -> String {
    format!("{}: {}", load.kind, table::title(&load.workload, load.threads))
}

fn best_table(loads: &[Load]) -> String {
    let header = [
        "load",
        "best",
        "million/s",
        "fairness",
        "Jain",
        "next",
        "over next",
        "min - max",
        "over mcs",
        "over ttas",
    ];
    let mut table = text_table::with_header(&header, 2..5);
    for load in loads {
        let absent = || ABSENT.to_owned();
        let best = load.points.iter().find(|point| Some(&point.lock) == load.best.as_ref());
        let figure = |name: &str| best.and_then(|point| point.figure(name));
        let mut row = vec![name(load), load.best.clone().unwrap_or_else(absent)];
        row.push(median(figure("per_second").map(|rate| times(rate, 1e-6))));
        row.extend(["fairness_factor", "jain"].map(|name| decimals(figure(name), 2)));
        row.push(load.next.as_ref().map_or_else(absent, |next| next.lock.clone()));
        row.extend(cells(load.next.as_ref()));
        row.extend(REFERENCES.map(|name| {
            let over = load.references.iter().find(|over| over.lock == name);
            over.map_or_else(absent, |over| cells(Some(over)).join(", "))
        }));
        table.add_row(row);
    }
    table.to_string()
}

/// The ratio, marked if it is a tie, and its range.
fn cells(over: Option<&Over>) -> [String; 2] {
    let Some(over) = over else { return [const { String::new() }; 2].map(|_| ABSENT.to_owned()) };
    let tie = if over.tie { " (tie)" } else { "" };
    let ratio = over.ratio;
    [format!("{:.2}{tie}", ratio.median), format!("{:.2} - {:.2}", ratio.min, ratio.max)]
}

/// The line on the ties of a load.
fn tie(load: &Load) -> Option<String> {
    let best = load.best.as_ref().filter(|_| !load.ties.is_empty())?;
    Some(format!("{}: {best} ties with {}\n", name(load), load.ties.join(", ")))
}

/// The line on the locks that are excluded at a load.
fn unfair(load: &Load) -> Option<String> {
    (!load.unfair.is_empty()).then(|| {
        format!(
            "{}: excluded as less fair than requested: {}\n",
            name(load),
            load.unfair.join(", ")
        )
    })
}

fn choice(report: &Report) -> String {
    let Some(least) = report.regrets.first() else {
        return "No candidate can run every load.\n".to_owned();
    };
    let mut table = text_table::with_header(&["load", "best", "regret"], 2..3);
    for (load, regret) in report.loads.iter().zip(&least.regrets) {
        let best = load.best.clone().unwrap_or_else(|| ABSENT.to_owned());
        table.add_row([name(load), best, format!("{:.1} %", 100.0 * regret)]);
    }
    let percent = |regret: &Regret| format!("{} {:.1} %", regret.lock, 100.0 * regret.worst);
    let next: Vec<String> = report.regrets.iter().skip(1).take(RUNNERS_UP).map(percent).collect();
    let next = if next.is_empty() {
        String::new()
    } else {
        format!("Runners-up by worst regret: {}\n", next.join("; "))
    };
    format!(
        "Best for all loads: {}, with a worst regret of {:.1} %\n{table}\n{next}",
        least.lock,
        100.0 * least.worst
    )
}
