//! `sim regret`: how much throughput a lock loses to the best of its rivals, over machines, loads
//! and numbers of threads.
//!
//! A point is a machine, a load and a number of threads. The regret at a point is 1 minus the
//! lock's throughput over that of the best lock which is fair enough. Each simulation lasts until
//! its throughput is steady.

mod judge;
mod points;
mod text;

use super::args::RegretArgs;
use super::cache::Cache;
use super::job;
use super::plan::at_a_time;
use crate::failure::Failure;
use crate::options::OutputArgs;
use crate::output::{Page, write};
use crate::plot::regret_map::{self, Cell, Picture};
use crate::provenance::Provenance;
use crate::runs::{exit_code, interrupts};
use judge::{Judged, Summary, judge};
use points::Plan;
use serde::Serialize;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// The document of `--json`. The same seeds give the same content.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    lock: String,
    rivals: Vec<String>,
    /// The maximum fairness factor of a rival.
    fairness: f64,
    /// The placement of all threads; None: that of each load.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<String>,
    seeds: u32,
    interrupted: bool,
    summary: Summary,
    points: Vec<Judged>,
}

/// Simulates the points, and reports the regret at each.
pub fn regret(args: &RegretArgs) -> Result<ExitCode, Failure> {
    let plan = Plan::make(args)?;
    let cache = args.cache.as_deref().map(Cache::open).transpose()?;
    let output = OutputArgs { json: args.json.clone(), svg: args.svg.clone() };
    let page = Page::beside([&args.json, &args.svg, &args.csv, &args.markdown])?;
    let interrupted = interrupts()?;
    let jobs: Vec<_> = plan.points.iter().flat_map(|point| point.jobs.clone()).collect();
    let ended = job::run_all(&jobs, at_a_time(args.jobs), cache.as_ref(), &interrupted)?;
    let mut ended = ended.into_iter();
    let points: Vec<Judged> = plan
        .points
        .iter()
        .map(|point| {
            let of_point = ended.by_ref().take(point.jobs.len()).collect();
            judge(point, of_point, &plan.lock, args.fairness)
        })
        .collect();
    let report = Report {
        schema: "poundlock.sim-regret/1",
        provenance: Provenance::new(poundlock::C_COMPILER.to_owned()),
        lock: plan.lock,
        rivals: plan.rivals,
        fairness: args.fairness,
        placement: args.placement.placement.map(|place| place.to_string()),
        seeds: args.seeds,
        interrupted: interrupted.load(Ordering::Relaxed),
        summary: Summary::of(&points, args.fairness),
        points,
    };
    output.publish(page, &text::render(&report), &report, || regret_map::svg(&picture(&report)))?;
    if let Some(file) = &args.csv {
        write(file, text::csv(&report)?)?;
    }
    if let Some(file) = &args.markdown {
        write(file, text::markdown(&report))?;
    }
    let locks = report.points.iter().flat_map(|point| &point.locks);
    Ok(exit_code(report.interrupted, locks.flat_map(|lock| &lock.outcomes)))
}

fn picture(report: &Report) -> Picture {
    let cell = |point: &Judged| Cell {
        machine: point.machine.clone(),
        load: point.workload.clone(),
        threads: point.threads,
        regret: point.regret,
    };
    Picture {
        title: format!("Regret of {}", report.lock),
        caption: format!(
            "throughput lost to the best of {} rivals with a fairness factor of at most {}; below it: \
             threads; simulated{}",
            report.rivals.len(),
            report.fairness,
            report.placement.as_ref().map_or(String::new(), |place| format!("; placement {place}")),
        ),
        cells: report.points.iter().map(cell).collect(),
    }
}
