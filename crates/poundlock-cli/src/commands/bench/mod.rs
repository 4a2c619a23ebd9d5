//! `poundlock bench`: the papers' workloads under each lock in turn. Every run is a process of its
//! own, see [`crate::runs::worker`].

pub mod args;

use crate::failure::Failure;
use crate::output;
use crate::plot::lines::{self, Picture};
use crate::points::{Point, Report, Run, Settings, table};
use crate::provenance::{Provenance, environment, seconds_since_1970};
use crate::runs::worker::{self, Ended, Workers};
use crate::runs::{Outcome, complain, exit_code, interrupts, progress, rotated};
use crate::spec::{self, Choice, Family};
use crate::threads::Threads;
use args::{BenchArgs, Common};
use poundlock_bench::{Counts, Job, Limit, NATIVE, Workload};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Measures the workload, or with --describe prints its description.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let workload = args.workload.workload().map_err(Failure::ours)?;
    workload.check().map_err(Failure::ours)?;
    let common = args.workload.common();
    if common.describe {
        output::print(toml::to_string(&workload).map_err(Failure::ours)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    workload.check_native().map_err(Failure::ours)?;
    let plan = Plan::make(common, workload)?;
    let page = common.output.page()?;
    let interrupted = interrupts()?;
    let started = seconds_since_1970();
    let runs = plan.run_all(&interrupted);
    let report = plan.summarise(runs, started, interrupted.load(Ordering::Relaxed));
    common
        .output
        .publish(page, &table::render(&report), &report, || lines::svg(&picture(&report)))?;
    Ok(exit_code(report.interrupted, report.runs.iter().map(|run| &run.outcome)))
}

fn picture(report: &Report) -> Picture<'_> {
    let name = match report.threads[..] {
        [threads] => table::title(&report.workload, threads),
        _ => report.workload.name.clone(),
    };
    Picture {
        title: format!("{name}: {}", report.workload.source),
        caption: format!(
            "{}; median and spread of {} runs",
            report.provenance.machine_line(),
            report.settings.repeats
        ),
        threads: &report.threads,
        locks: &report.locks,
        points: &report.points,
        classes: report.workload.classes.len() > 1,
    }
}

/// Runs one job in this process, and prints its counts as one line of JSON.
pub fn worker(job: &str) -> Result<ExitCode, Failure> {
    let job: Job = worker::parse(job)?;
    worker::answer(&poundlock_bench::run(&job).map_err(Failure::ours)?)
}

/// A benchmark whose parts have been checked.
struct Plan<'a> {
    common: &'a Common,
    workload: Workload,
    choices: Vec<Choice>,
    threads: Vec<usize>,
    limit: Limit,
    timeout: Option<Duration>,
    workers: Workers,
}

impl Plan<'_> {
    fn make(common: &Common, workload: Workload) -> Result<Plan<'_>, Failure> {
        let family = if workload.readers { Family::rwlocks() } else { Family::mutexes() };
        let mut choices = spec::parse_lists_of(&common.locks, &family)?;
        if !common.no_native {
            choices.insert(0, Choice::Native);
        }
        Ok(Plan {
            threads: numbers_of_threads(common, &workload)?,
            limit: limit(common),
            timeout: common
                .timeout
                .or_else(|| common.acquisitions.is_none().then(|| patience(common))),
            common,
            workload,
            choices,
            workers: Workers::new("bench-worker")?,
        })
    }

    /// Performs all runs, until an interrupt.
    fn run_all(&self, interrupted: &AtomicBool) -> Vec<Run> {
        let order = self.order();
        let progress = progress(order.len() as u64);
        let mut runs = Vec::new();
        for (choice, threads, repeat) in order {
            progress.set_message(format!("{choice}, {threads} threads"));
            let Some(run) = self.run_once(choice, threads, repeat, interrupted) else {
                break;
            };
            if run.outcome != Outcome::Ok {
                let what = format!("{choice}, {threads} threads, repeat {repeat}");
                progress.suspend(|| complain(&what, &run.outcome, run.output_tail.as_deref()));
            }
            runs.push(run);
            progress.inc(1);
        }
        progress.finish_and_clear();
        runs
    }

    fn order(&self) -> Vec<(&Choice, usize, u32)> {
        let repeat = |repeat| {
            self.threads.iter().flat_map(move |&threads| {
                rotated(&self.choices, repeat).map(move |choice| (choice, threads, repeat + 1))
            })
        };
        (0..self.common.repeats).flat_map(repeat).collect()
    }

    /// Performs one run. Returns None if it was interrupted.
    fn run_once(
        &self,
        choice: &Choice,
        threads: usize,
        repeat: u32,
        interrupted: &AtomicBool,
    ) -> Option<Run> {
        if interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let lock = choice.to_string();
        let job =
            Job { workload: self.workload.clone(), lock: lock.clone(), threads, limit: self.limit };
        let Ended { outcome, result, output_tail } =
            self.workers.run::<Counts>(&job, self.timeout, interrupted)?;
        Some(Run::new(&self.workload, lock, threads, repeat, outcome, result, output_tail))
    }

    fn summarise(self, runs: Vec<Run>, started: u64, interrupted: bool) -> Report {
        let locks: Vec<String> = self.choices.iter().map(ToString::to_string).collect();
        let points = self.threads.iter().flat_map(|&threads| {
            let runs = &runs;
            locks.iter().map(move |lock| Point::of(lock, threads, runs, NATIVE))
        });
        Report {
            schema: "poundlock.bench/1",
            provenance: Provenance::new(poundlock::C_COMPILER.to_owned()),
            started,
            environment: environment(),
            settings: Settings {
                limit: self.limit,
                repeats: self.common.repeats,
                timeout: self.timeout.map(|timeout| timeout.as_secs_f64()),
            },
            interrupted,
            points: points.collect(),
            threads: self.threads,
            workload: self.workload,
            locks,
            runs,
        }
    }
}

fn numbers_of_threads(common: &Common, workload: &Workload) -> Result<Vec<usize>, Failure> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if let Some(numbers) = Threads::given_or_meant(common.threads.as_ref(), workload, cpus)? {
        return Ok(numbers);
    }
    let powers = (0..usize::BITS).map(|power| 1 << power).take_while(|threads| *threads < cpus);
    Ok(powers.chain([cpus, 2 * cpus]).collect())
}

fn limit(common: &Common) -> Limit {
    common.acquisitions.map_or(
        Limit::Seconds {
            warmup: common.warmup.as_secs_f64(),
            measured: common.seconds.as_secs_f64(),
        },
        Limit::Acquisitions,
    )
}

/// The default time-out: with many threads on few CPUs, ending a run takes long.
fn patience(common: &Common) -> Duration {
    Duration::from_secs(60) + 10 * (common.warmup + common.seconds)
}
