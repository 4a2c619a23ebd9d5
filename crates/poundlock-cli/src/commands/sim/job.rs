//! One simulation as a job for a worker process, and many of them in parallel.
//!
//! Locks may hash addresses, so the simulated memory has the same address in every run. Therefore a
//! process runs one simulation at a time, and a failure affects no other simulation.

use super::cache::Cache;
use crate::failure::{Failure, reason};
use crate::runs::worker::{self, Workers};
use crate::runs::{Outcome, complain, progress};
use poundlock_bench::Counts;
use poundlock_sim::{Machine, Point, SimError, Traffic, simulate};
use poundlock_topology::input;
use poundlock_topology::latency::Measurements;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The files that describe a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MachineFiles {
    pub machine: PathBuf,
    pub matrix: Option<PathBuf>,
}

/// A simulation on the machine of such files.
pub type Job = Point<MachineFiles>;

/// The result of a simulation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Simulated {
    pub counts: Counts,
    /// Whether the measured part is steady; false if its length was fixed.
    pub steady: bool,
    pub traffic: Traffic,
    /// The number of steps of the simulator.
    pub steps: u64,
}

/// The machine of a table of latencies, or of a JSON file of `poundlock latency`.
fn machine_of_table(file: &Path) -> Result<Machine, SimError> {
    let named = |wrong: String| SimError(format!("'{}': {wrong}", file.display()));
    let text = input::text(file).map_err(|error| named(reason(&error)))?;
    let table = if file.extension().is_some_and(|ending| ending == "json") {
        let measured = Measurements::parse(&text).map_err(|wrong| named(wrong.to_string()))?;
        if !measured.complete {
            return Err(named("the measurement is incomplete".to_owned()));
        }
        measured.among_themselves().csv()
    } else {
        text
    };
    let name =
        file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    Machine::from_table(&name, &table).map_err(|wrong| named(wrong.to_string()))
}

/// The machine of a file, with the latencies of `matrix` if given.
pub fn machine(file: &Path, matrix: Option<&Path>) -> Result<Machine, SimError> {
    let machine = match file.extension().and_then(|ending| ending.to_str()) {
        Some("csv" | "json") => machine_of_table(file)?,
        _ => Machine::read(file)?,
    };
    let Some(matrix) = matrix else { return Ok(machine) };
    let named = |wrong: String| SimError(format!("'{}': {wrong}", matrix.display()));
    let table = input::text(matrix).map_err(|error| named(reason(&error)))?;
    machine.with_matrix(&table).map_err(|wrong| named(wrong.to_string()))
}

/// The job with its machine, as the simulator takes it.
pub fn loaded(job: Job) -> Result<Point, SimError> {
    let machine = machine(&job.machine.machine, job.machine.matrix.as_deref())?;
    Ok(job.on(machine))
}

/// Runs one job in this process, and prints the result as one line of JSON.
pub fn worker(job: &str) -> Result<ExitCode, Failure> {
    let job: Job = worker::parse(job)?;
    let outcome = loaded(job).and_then(|point| simulate(&point)).map_err(Failure::ours)?;
    worker::answer(&Simulated {
        counts: outcome.counts,
        steady: outcome.steady,
        traffic: outcome.traffic,
        steps: outcome.events,
    })
}

/// A simulation that has ended.
pub type Ended = worker::Ended<Simulated>;

/// Runs the jobs whose results are not in `cache`, `at_a_time` in parallel. A job that an interrupt
/// prevented has no result.
pub fn run_all(
    jobs: &[Job],
    at_a_time: usize,
    cache: Option<&Cache>,
    interrupted: &AtomicBool,
) -> Result<Vec<Option<Ended>>, Failure> {
    let workers = Workers::new("sim-worker")?;
    let progress = progress(jobs.len() as u64);
    let next = AtomicUsize::new(0);
    let ended: Mutex<Vec<Option<Ended>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let work = || {
        while !interrupted.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { break };
            progress.set_message(format!("{}, {} threads", job.lock, job.threads));
            let known = cache.and_then(|cache| cache.find(job));
            let Some(end) = known.or_else(|| workers.run(job, None, interrupted)) else { break };
            if let (Some(cache), Some(result)) = (cache, &end.result) {
                cache.keep(job, result);
            }
            if end.outcome != Outcome::Ok {
                let what = format!("{}, {} threads, seed {}", job.lock, job.threads, job.seed);
                progress.suspend(|| complain(&what, &end.outcome, end.output_tail.as_deref()));
            }
            ended.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(end);
            progress.inc(1);
        }
    };
    thread::scope(|scope| {
        for _ in 0..at_a_time.min(jobs.len()) {
            scope.spawn(work);
        }
    });
    progress.finish_and_clear();
    Ok(ended.into_inner().unwrap_or_else(PoisonError::into_inner))
}
