//! `sim run` and `sim sweep`: locks over numbers of threads on a simulated machine.

use super::args::{RunArgs, SweepArgs};
use super::job;
use super::plan::{Plan, Settings, at_a_time};
use crate::failure::Failure;
use crate::options::OutputArgs;
use crate::output::{Page, write};
use crate::plot::lines::{self, Picture};
use crate::points::table;
use crate::points::{Point, Run};
use crate::provenance::Provenance;
use crate::runs::{Spread, exit_code, interrupts};
use poundlock_bench::figures::FIGURES;
use poundlock_bench::{Counts, Workload};
use poundlock_sim::Traffic;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// The document of `--json`. The same seeds give the same content.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    simulated_machine: String,
    workload: Workload,
    settings: Settings,
    threads: Vec<usize>,
    locks: Vec<String>,
    interrupted: bool,
    points: Vec<Point>,
    runs: Vec<Run>,
    /// The memory traffic of each run.
    traffic: Vec<Option<Traffic>>,
    /// How many runs reached their limit before they were steady.
    unsteady: usize,
}

/// `sim run`: one lock with one number of threads.
pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let plan = Plan::of_one(&args.scene, &args.lock, &args.threads)?;
    let output = OutputArgs { json: args.scene.settings.json.clone(), svg: None };
    let page = output.page()?;
    let report = simulate(plan, true)?;
    let text = render(&report) + "\n" + &details(&report);
    output.publish(page, &text, &report, || Err("run has no chart".into()))?;
    Ok(exit_code(report.interrupted, report.runs.iter().map(|run| &run.outcome)))
}

/// `sim sweep`: locks over numbers of threads.
pub fn sweep(args: &SweepArgs) -> Result<ExitCode, Failure> {
    let plan = Plan::make(&args.scene, &args.locks, args.threads.as_ref())?;
    let output = OutputArgs { json: args.scene.settings.json.clone(), svg: args.svg.clone() };
    let page = Page::beside([&output.json, &output.svg, &args.csv])?;
    let report = simulate(plan, false)?;
    output.publish(page, &render(&report), &report, || lines::svg(&picture(&report)))?;
    if let Some(file) = &args.csv {
        write_csv(file, &report.points)?;
    }
    Ok(exit_code(report.interrupted, report.runs.iter().map(|run| &run.outcome)))
}

fn simulate(plan: Plan, whole: bool) -> Result<Report, Failure> {
    let interrupted = interrupts()?;
    let ended =
        job::run_all(&plan.jobs(), at_a_time(plan.settings.repeats.jobs), None, &interrupted)?;
    let found = plan.found(ended, whole);
    Ok(Report {
        schema: "poundlock.sim/1",
        provenance: Provenance::new(poundlock::C_COMPILER.to_owned()),
        simulated_machine: plan.machine_name,
        settings: plan.settings.into(),
        workload: plan.workload,
        points: found.points(&plan.locks, &plan.threads),
        threads: plan.threads,
        locks: plan.locks,
        interrupted: interrupted.load(Ordering::Relaxed),
        runs: found.runs,
        traffic: found.traffic,
        unsteady: found.unsteady,
    })
}

fn render(report: &Report) -> String {
    let settings = &report.settings;
    let stopped = if report.interrupted { " Interrupted." } else { "" };
    let tables = table::tables(&report.workload, &report.threads, &report.points);
    format!(
        "{tables}{}\nMedians of {} seeds {}; ratio: to {} with the same seed. fairness: 0.5 is \
         even, 1 is starvation;\nJain: 1 is even; CV: 0 is even; remote and wakes: per acquisition. Source: {}.{stopped}",
        report.simulated_machine,
        settings.seeds,
        duration(settings, report.unsteady),
        report.locks[0],
        report.workload.source
    )
}

fn duration(settings: &Settings, unsteady: usize) -> String {
    match (settings.measured, unsteady) {
        (Some(measured), _) => format!("of {} ms of simulated time", measured * 1e3),
        (None, 0) => "until the throughput was steady".to_owned(),
        (None, _) => format!("until the throughput was steady ({unsteady} runs were never)"),
    }
}

/// The memory traffic and the events of the lock, warm-up included.
fn details(report: &Report) -> String {
    let runs = report.runs.iter().zip(&report.traffic);
    let per = |of: &dyn Fn(&Counts, &Traffic) -> f64| {
        let figures = runs
            .clone()
            .filter_map(|(run, traffic)| Some(of(run.counts.as_ref()?, traffic.as_ref()?)));
        Spread::of(figures).map_or(0.0, |spread| spread.median)
    };
    let operations = per(&|_, traffic| traffic.operations as f64);
    let mut text = format!(
        "Memory operations: {operations:.0}; served by the core {:.1} %, by its domain {:.1} %, by other domains {:.1} %",
        100.0 * per(&|_, traffic| traffic.hits as f64) / operations,
        100.0 * per(&|_, traffic| traffic.local as f64) / operations,
        100.0 * per(&|_, traffic| traffic.remote as f64) / operations,
    );
    for name in poundlock_sim::event_names() {
        let count = per(&|counts, _| {
            counts.events.as_ref().and_then(|events| events.get(name)).map_or(0.0, |n| *n as f64)
        });
        if count > 0.0 {
            text += &format!("\n{name}: {count:.0}");
        }
    }
    text
}

fn picture(report: &Report) -> Picture<'_> {
    Picture {
        title: format!("{}: {}", report.workload.name, report.workload.source),
        caption: format!(
            "simulated: {}; median and spread of {} seeds",
            report.simulated_machine, report.settings.seeds
        ),
        threads: &report.threads,
        locks: &report.locks,
        points: &report.points,
        classes: report.workload.classes.len() > 1,
    }
}

fn write_csv(file: &Path, points: &[Point]) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(vec![]);
    let ends = ["", "_min", "_max"];
    let names = FIGURES.iter().flat_map(|figure| ends.map(|end| format!("{}{end}", figure.name)));
    let header: Vec<String> =
        ["lock", "threads"].map(str::to_owned).into_iter().chain(names).collect();
    writer.write_record(&header).map_err(Failure::ours)?;
    for point in points {
        let cells = FIGURES.iter().flat_map(|figure| match point.figure(figure.name) {
            Some(spread) => [spread.median, spread.min, spread.max].map(|value| value.to_string()),
            None => [const { String::new() }; 3],
        });
        let row: Vec<String> =
            [point.lock.clone(), point.threads.to_string()].into_iter().chain(cells).collect();
        writer.write_record(&row).map_err(Failure::ours)?;
    }
    write(file, writer.into_inner().map_err(Failure::ours)?)
}
