//! `sim figure`: simulates a published figure and compares the results with the paper.
//!
//! The file of a figure (bench/figures/*.toml) has the machine, workload, locks, numbers of
//! threads, and the published values. One number per workload is fitted, the time of its
//! instructions between memory accesses, so that a single thread is as fast as published. Nothing
//! is fitted to a lock.

mod file;
mod fit;
mod judge;
mod markdown;
mod report;
mod text;

use super::args::FigureArgs;
use super::data::{self, FIGURES as FILES, MACHINES};
use super::job::{self, Ended, Job, MachineFiles};
use super::plan::at_a_time;
use crate::failure::{Failure, reason};
use crate::options::OutputArgs;
use crate::output::{Page, write};
use crate::plot::lines::{self, Picture};
use crate::points::{Point, Run};
use crate::provenance::Provenance;
use crate::runs::{exit_code, interrupts};
use file::Figure;
pub use file::parse;
use poundlock_bench::Workload;
use poundlock_topology::input;
use report::{Drawn, Report};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Simulates the named figures, or all, and prints the comparison.
pub fn figure(args: &FigureArgs) -> Result<ExitCode, Failure> {
    let names = if args.all { FILES.names()? } else { args.names.clone() };
    let figures = names.iter().map(|name| read(name)).collect::<Result<Vec<_>, _>>()?;
    let output = OutputArgs { json: args.json.clone(), svg: args.svg.clone() };
    let page = Page::beside([&output.json, &output.svg, &args.markdown])?;
    if args.svg.is_some() && figures.len() != 1 {
        return Err(Failure::ours("--svg needs exactly one figure"));
    }
    let interrupted = interrupts()?;
    let mut drawn = vec![];
    for figure in figures {
        drawn.push(simulate(figure, args, &interrupted)?);
    }
    let report = Report {
        schema: "poundlock.sim-figure/1",
        provenance: Provenance::new(poundlock::C_COMPILER.to_owned()),
        seed: args.repeats.seed,
        seeds: args.repeats.seeds,
        interrupted: interrupted.load(Ordering::Relaxed),
        figures: drawn,
    };
    let text: String = report.figures.iter().map(text::render).collect::<Vec<_>>().join("\n");
    output.publish(page, &format!("{text}{}", text::summary(&report)), &report, || {
        lines::svg(&picture(&report.figures[0], &report))
    })?;
    if let Some(file) = args.markdown.as_ref().filter(|_| !report.interrupted) {
        write(file, markdown::markdown(&report))?;
    }
    Ok(exit_code(
        report.interrupted,
        report.figures.iter().flat_map(|drawn| &drawn.runs).map(|run| &run.outcome),
    ))
}

fn read(name: &str) -> Result<Figure, Failure> {
    let file = FILES.find(name)?;
    let wrong = |wrong: String| Failure::ours(format!("'{}': {wrong}", file.display()));
    let text = input::text(&file).map_err(|error| wrong(reason(&error)))?;
    parse(&text).map_err(wrong)
}

fn simulate(figure: Figure, args: &FigureArgs, interrupted: &AtomicBool) -> Result<Drawn, Failure> {
    let file = MACHINES.find(&figure.machine)?;
    let machine = job::machine(&file, None).map_err(Failure::ours)?;
    let workload = data::workload(&figure.workload)?;
    workload.check().map_err(Failure::ours)?;
    let base = Job {
        machine: MachineFiles { machine: file, matrix: None },
        workload: workload.clone(),
        lock: String::new(),
        threads: 1,
        warmup: figure.warmup_us as f64 / 1e6,
        measured: figure.measured_us as f64 / 1e6,
        most: None,
        seed: args.repeats.seed,
        step: figure.step.unwrap_or(0.0),
        locality: figure.domain.into(),
        trace: false,
    };
    let at_once = at_a_time(args.repeats.jobs);
    let step = match &figure.fit {
        Some(fit) => fit::fitted(&base, fit, at_once, interrupted)?,
        None => base.step,
    };
    let mut jobs = vec![];
    for seed in 0..u64::from(args.repeats.seeds) {
        for &threads in &figure.threads {
            for lock in &figure.locks {
                jobs.push(Job {
                    lock: lock.clone(),
                    threads,
                    step,
                    seed: args.repeats.seed + seed,
                    ..base.clone()
                });
            }
        }
    }
    let ended = job::run_all(&jobs, at_once, None, interrupted)?;
    let runs: Vec<Run> = jobs
        .iter()
        .zip(ended)
        .filter_map(|(job, ended)| Some(run_of(job, ended?, &workload, args.repeats.seed)))
        .collect();
    let places = figure
        .threads
        .iter()
        .flat_map(|threads| figure.locks.iter().map(move |lock| (lock, *threads)));
    let points: Vec<Point> =
        places.map(|(lock, threads)| Point::of(lock, threads, &runs, &figure.locks[0])).collect();
    let results = figure.check.iter().map(|check| judge::checked(check, &runs)).collect();
    let orders = judge::orders(&figure, &points);
    Ok(Drawn { simulated_machine: machine.about, step, points, runs, results, orders, figure })
}

fn run_of(job: &Job, ended: Ended, workload: &Workload, first: u64) -> Run {
    let counts = ended.result.map(|simulated| simulated.counts);
    let seed = (job.seed - first) as u32 + 1;
    let mut run = Run::new(
        workload,
        job.lock.clone(),
        job.threads,
        seed,
        ended.outcome,
        counts,
        ended.output_tail,
    );
    run.counts = None;
    run
}

fn picture<'a>(drawn: &'a Drawn, report: &Report) -> Picture<'a> {
    Picture {
        title: drawn.figure.about.clone(),
        caption: format!(
            "simulated: {}; median and spread of {} seeds",
            drawn.simulated_machine, report.seeds
        ),
        threads: &drawn.figure.threads,
        locks: &drawn.figure.locks,
        points: &drawn.points,
        classes: false,
    }
}
