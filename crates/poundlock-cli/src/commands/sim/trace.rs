//! `sim trace`: a timeline of one simulation, for Perfetto or chrome://tracing.

use super::args::TraceArgs;
use super::job::{self, Job};
use super::plan::Plan;
use crate::failure::Failure;
use crate::output::{Page, write};
use poundlock_sim::{TraceEvent, simulate};
use serde::Serialize;
use std::process::ExitCode;

/// The trace event format:
/// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Timeline {
    trace_events: Vec<TraceEvent>,
    display_time_unit: &'static str,
    other_data: OtherData,
}

/// The measured seconds by default. A timeline to look at need not be steady.
const MEASURED: f64 = 0.005;

#[derive(Serialize)]
struct OtherData {
    machine: String,
    workload: String,
    lock: String,
    seed: u64,
}

/// Simulates once, in this process, and writes the timeline.
pub fn trace(args: &TraceArgs) -> Result<ExitCode, Failure> {
    let page = Page::beside([&Some(args.output.clone())])?;
    let plan = Plan::of_one(&args.scene, &args.lock, &args.threads)?;
    let mut job = Job { trace: true, ..plan.jobs().swap_remove(0) };
    if job.most.take().is_some() {
        job.measured = MEASURED;
    }
    let point = job::loaded(job).map_err(Failure::ours)?;
    let outcome = simulate(&point).map_err(Failure::ours)?;
    let events = outcome.timeline();
    let count = events.len();
    let timeline = Timeline {
        trace_events: events,
        display_time_unit: "ns",
        other_data: OtherData {
            machine: plan.machine_name.clone(),
            workload: plan.workload.name.clone(),
            seed: point.seed,
            lock: point.lock,
        },
    };
    write(&args.output, serde_json::to_string(&timeline).map_err(Failure::ours)? + "\n")?;
    page.show(format_args!(
        "{count} events of {} threads written to {}",
        plan.threads[0],
        args.output.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
