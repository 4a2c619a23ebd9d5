//! A plan: locks and numbers of threads on a machine, checked before anything is simulated.

use super::args::{SceneArgs, SettingArgs};
use super::data::{self, MACHINES};
use super::job::{self, Ended, Job, MachineFiles, Simulated};
use crate::failure::Failure;
use crate::points::{Point, Run};
use crate::spec::{self, Choice, Family};
use crate::threads::Threads;
use poundlock_bench::{Counts, Workload};
use poundlock_sim::{Machine, Traffic};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, Serialize)]
pub struct Settings {
    pub seed: u64,
    pub seeds: u32,
    pub warmup: f64,
    /// None: until the throughput is steady.
    pub measured: Option<f64>,
    pub step: f64,
    pub domain: String,
}

impl From<&SettingArgs> for Settings {
    fn from(args: &SettingArgs) -> Settings {
        Settings {
            seed: args.repeats.seed,
            seeds: args.repeats.seeds,
            warmup: seconds(args.warmup),
            measured: args.measured.map(seconds),
            step: args.step,
            domain: format!("{:?}", args.domain).to_lowercase(),
        }
    }
}

pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// The parts of a simulation, as [`poundlock_sim::Point`] has them, in seconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parts {
    pub warmup: f64,
    pub measured: f64,
    pub most: Option<f64>,
}

/// The first measured part and the limit of a simulation that ends when it is steady, in seconds;
/// and the limit as a multiple of a first part that is longer.
const FIRST: f64 = 0.004;
const MOST: f64 = 0.064;
const MOST_FIRSTS: f64 = 16.0;

impl Parts {
    /// The parts that the settings request. With more threads than CPUs, the third part lasts until
    /// every thread had a time slice.
    pub fn of(warmup: u64, measured: Option<u64>, machine: &Machine, threads: usize) -> Parts {
        let warmup = seconds(warmup);
        let Some(measured) = measured else {
            let round = if threads > machine.cpus.len() { machine.round(threads) } else { 0.0 };
            let first = FIRST.max(round / 4.0);
            let most = MOST.max(MOST_FIRSTS * first);
            return Parts { warmup: warmup.max(first), measured: first, most: Some(most) };
        };
        Parts { warmup, measured: seconds(measured), most: None }
    }
}

/// The machine of the settings, and its file.
pub fn place(settings: &SettingArgs) -> Result<(PathBuf, Machine), Failure> {
    let file = MACHINES.find(&settings.machine)?;
    let machine = job::machine(&file, settings.matrix.as_deref()).map_err(Failure::ours)?;
    Ok((file, machine))
}

/// The number of simulations at a time: by default that of the CPUs.
pub fn at_a_time(jobs: Option<u32>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.map_or_else(all, |jobs| jobs as usize)
}

/// Simulations whose parts have been checked.
pub struct Plan<'a> {
    pub settings: &'a SettingArgs,
    pub machine: PathBuf,
    pub machine_name: String,
    pub workload: Workload,
    pub locks: Vec<String>,
    pub threads: Vec<usize>,
    /// By number of threads.
    pub parts: Vec<Parts>,
}

impl Plan<'_> {
    pub fn make<'a>(
        scene: &'a SceneArgs,
        locks: &[String],
        threads: Option<&Threads>,
    ) -> Result<Plan<'a>, Failure> {
        let settings = &scene.settings;
        let (file, machine) = place(settings)?;
        let workload = scene.placement.apply(data::workload(&scene.workload)?);
        workload.check().map_err(Failure::ours)?;
        let Some(threads) = Threads::given_or_meant(threads, &workload, machine.cpus.len())? else {
            return Err(Failure::ours(format!(
                "--threads: workload '{}' has no default numbers",
                workload.name
            )));
        };
        let choices = spec::parse_lists_of(locks, &Family::simulated(workload.readers))?;
        Ok(Plan {
            settings,
            machine: file,
            workload,
            locks: choices.iter().map(Choice::to_string).collect(),
            parts: threads
                .iter()
                .map(|threads| Parts::of(settings.warmup, settings.measured, &machine, *threads))
                .collect(),
            machine_name: machine.about,
            threads,
        })
    }

    /// A plan of one lock with one number of threads.
    pub fn of_one<'a>(
        scene: &'a SceneArgs,
        lock: &str,
        threads: &Threads,
    ) -> Result<Plan<'a>, Failure> {
        let plan = Plan::make(scene, &[lock.to_owned()], Some(threads))?;
        if plan.locks.len() != 1 {
            return Err(Failure::ours(format!("--lock: '{lock}' names several locks: use sweep")));
        }
        if plan.threads.len() != 1 {
            return Err(Failure::ours("--threads: several numbers: use sweep"));
        }
        Ok(plan)
    }

    /// All simulations, ordered by seed, number of threads and lock.
    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = vec![];
        for seed in 0..u64::from(self.settings.repeats.seeds) {
            for (&threads, parts) in self.threads.iter().zip(&self.parts) {
                for lock in &self.locks {
                    jobs.push(Job {
                        machine: MachineFiles {
                            machine: self.machine.clone(),
                            matrix: self.settings.matrix.clone(),
                        },
                        workload: self.workload.clone(),
                        lock: lock.clone(),
                        threads,
                        warmup: parts.warmup,
                        measured: parts.measured,
                        most: parts.most,
                        seed: self.settings.repeats.seed.wrapping_add(seed),
                        step: self.settings.step,
                        locality: self.settings.domain.into(),
                        trace: false,
                    });
                }
            }
        }
        jobs
    }

    /// Collects the ended jobs. `whole`: keeps the counts of each thread.
    pub fn found(&self, ended: impl IntoIterator<Item = Option<Ended>>, whole: bool) -> Found {
        let mut found = Found::default();
        for (job, ended) in
            self.jobs().iter().zip(ended).filter_map(|(job, ended)| Some((job, ended?)))
        {
            found.traffic.push(ended.result.as_ref().map(|simulated| simulated.traffic));
            let unsteady = |simulated: &Simulated| job.most.is_some() && !simulated.steady;
            found.unsteady += usize::from(ended.result.as_ref().is_some_and(unsteady));
            found.runs.push(run_of(job, ended, self, whole));
        }
        found
    }
}

fn run_of(job: &Job, ended: Ended, plan: &Plan, whole: bool) -> Run {
    let counts: Option<Counts> = ended.result.map(|simulated| simulated.counts);
    let seed = (job.seed.wrapping_sub(plan.settings.repeats.seed)) as u32;
    let lock = job.lock.clone();
    let mut run = Run::new(
        &plan.workload,
        lock,
        job.threads,
        seed + 1,
        ended.outcome,
        counts,
        ended.output_tail,
    );
    if !whole {
        run.counts = None;
    }
    run
}

/// The results of a plan.
#[derive(Default)]
pub struct Found {
    pub runs: Vec<Run>,
    /// The memory traffic of each run.
    pub traffic: Vec<Option<Traffic>>,
    /// How many runs reached their limit before they were steady.
    pub unsteady: usize,
}

impl Found {
    /// The points of all locks and numbers of threads, with ratios to the first lock.
    pub fn points(&self, locks: &[String], threads: &[usize]) -> Vec<Point> {
        let places =
            threads.iter().flat_map(|threads| locks.iter().map(move |lock| (lock, *threads)));
        places.map(|(lock, threads)| Point::of(lock, threads, &self.runs, &locks[0])).collect()
    }
}
