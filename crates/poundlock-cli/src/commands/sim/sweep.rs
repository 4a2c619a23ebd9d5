//! `sim run` and `sim sweep`: locks over numbers of threads on a simulated machine.

use super::args::{RunArgs, SceneArgs, SettingArgs, SweepArgs};
use super::data::{self, MACHINES};
use super::job::{self, Ended, Job};
use crate::failure::Failure;
use crate::options::OutputArgs;
use crate::output::{Page, write};
use crate::plot::lines::{self, Picture};
use crate::points::table;
use crate::points::{Point, Run};
use crate::provenance::Provenance;
use crate::runs::{Spread, exit_code, interrupts};
use crate::spec::{self, Choice, Family};
use crate::threads::Threads;
use poundlock_bench::figures::FIGURES;
use poundlock_bench::{Counts, Workload};
use poundlock_sim::{Machine, Traffic};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Everything that was found: with the same seeds, always the same.
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
    /// What the memory did in each run.
    traffic: Vec<Option<Traffic>>,
}

#[derive(Debug, Serialize)]
pub struct Settings {
    seed: u64,
    pub seeds: u32,
    warmup: f64,
    measured: f64,
    step: f64,
    domain: String,
}

impl From<&SettingArgs> for Settings {
    fn from(args: &SettingArgs) -> Settings {
        Settings {
            seed: args.repeats.seed,
            seeds: args.repeats.seeds,
            warmup: seconds(args.warmup),
            measured: seconds(args.measured),
            step: args.step,
            domain: format!("{:?}", args.domain).to_lowercase(),
        }
    }
}

pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// What is to be simulated, all of it checked.
pub struct Plan<'a> {
    pub settings: &'a SettingArgs,
    pub machine: PathBuf,
    pub machine_name: String,
    pub workload: Workload,
    pub locks: Vec<String>,
    pub threads: Vec<usize>,
    /// In seconds of simulated time.
    pub warmup: f64,
    pub measured: f64,
}

/// What came of it.
#[derive(Default)]
pub struct Found {
    pub runs: Vec<Run>,
    /// Of each run.
    pub traffic: Vec<Option<Traffic>>,
}

impl Found {
    /// Every lock with every number of threads, in relation to the first lock.
    pub fn points(&self, locks: &[String], threads: &[usize]) -> Vec<Point> {
        let places = threads.iter().flat_map(|threads| locks.iter().map(move |lock| (lock, *threads)));
        places.map(|(lock, threads)| Point::of(lock, threads, &self.runs, &locks[0])).collect()
    }
}

/// The machine that is meant, and its file.
pub fn place(settings: &SettingArgs) -> Result<(PathBuf, Machine), Failure> {
    let file = MACHINES.find(&settings.machine)?;
    let machine = job::machine(&file, settings.matrix.as_deref()).map_err(Failure::ours)?;
    Ok((file, machine))
}

impl Plan<'_> {
    pub fn make<'a>(scene: &'a SceneArgs, locks: &[String], threads: Option<&Threads>) -> Result<Plan<'a>, Failure> {
        let settings = &scene.settings;
        let (file, machine) = place(settings)?;
        let workload = data::workload(&scene.workload)?;
        workload.check().map_err(Failure::ours)?;
        let Some(threads) = Threads::given_or_meant(threads, &workload, machine.cpus.len())? else {
            return Err(Failure::ours(format!("--threads: workload '{}' leaves open how many", workload.name)));
        };
        let choices = spec::parse_lists_of(locks, &Family::simulated(workload.readers))?;
        Ok(Plan {
            settings,
            machine: file,
            machine_name: machine.about,
            workload,
            locks: choices.iter().map(Choice::to_string).collect(),
            threads,
            warmup: seconds(settings.warmup),
            measured: seconds(settings.measured),
        })
    }

    /// For one lock and one number of threads.
    pub fn of_one<'a>(scene: &'a SceneArgs, lock: &str, threads: &Threads) -> Result<Plan<'a>, Failure> {
        let plan = Plan::make(scene, &[lock.to_owned()], Some(threads))?;
        if plan.locks.len() != 1 {
            return Err(Failure::ours(format!("--lock: '{lock}' is more than one lock: sweep takes several")));
        }
        if plan.threads.len() != 1 {
            return Err(Failure::ours("--threads: more than one number: sweep takes several"));
        }
        Ok(plan)
    }

    /// By seed, number of threads and lock.
    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = vec![];
        for seed in 0..u64::from(self.settings.repeats.seeds) {
            for &threads in &self.threads {
                for lock in &self.locks {
                    jobs.push(Job {
                        machine: self.machine.clone(),
                        matrix: self.settings.matrix.clone(),
                        workload: self.workload.clone(),
                        lock: lock.clone(),
                        threads,
                        warmup: self.warmup,
                        measured: self.measured,
                        seed: self.settings.repeats.seed.wrapping_add(seed),
                        step: self.settings.step,
                        locality: self.settings.domain.into(),
                    });
                }
            }
        }
        jobs
    }

    /// Of the jobs, as they ended. `whole`: with each thread's counts.
    pub fn found(&self, ended: impl IntoIterator<Item = Option<Ended>>, whole: bool) -> Found {
        let mut found = Found::default();
        for (job, ended) in self.jobs().iter().zip(ended).filter_map(|(job, ended)| Some((job, ended?))) {
            found.traffic.push(ended.simulated.as_ref().map(|simulated| simulated.traffic));
            found.runs.push(run_of(job, ended, self, whole));
        }
        found
    }

    fn simulate(self, whole: bool) -> Result<Report, Failure> {
        let interrupted = interrupts()?;
        let ended = job::run_all(&self.jobs(), at_a_time(self.settings.repeats.jobs), &interrupted)?;
        let found = self.found(ended, whole);
        Ok(Report {
            schema: "poundlock.sim/1",
            provenance: Provenance::new(poundlock::C_COMPILER.to_owned()),
            simulated_machine: self.machine_name,
            settings: self.settings.into(),
            workload: self.workload,
            points: found.points(&self.locks, &self.threads),
            threads: self.threads,
            locks: self.locks,
            interrupted: interrupted.load(Ordering::Relaxed),
            runs: found.runs,
            traffic: found.traffic,
        })
    }
}

fn run_of(job: &Job, ended: Ended, plan: &Plan, whole: bool) -> Run {
    let counts: Option<Counts> = ended.simulated.map(|simulated| simulated.counts);
    let seed = (job.seed.wrapping_sub(plan.settings.repeats.seed)) as u32;
    let lock = job.lock.clone();
    let mut run = Run::new(&plan.workload, lock, job.threads, seed + 1, ended.outcome, counts, ended.output_tail);
    if !whole {
        run.counts = None;
    }
    run
}

/// How many simulations at a time.
pub fn at_a_time(jobs: Option<u32>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.map_or_else(all, |jobs| jobs as usize)
}

/// One lock with one number of threads.
pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let plan = Plan::of_one(&args.scene, &args.lock, &args.threads)?;
    let output = OutputArgs { json: args.scene.settings.json.clone(), svg: None };
    let page = output.page()?;
    let report = plan.simulate(true)?;
    let text = render(&report) + "\n" + &details(&report);
    output.publish(page, &text, &report, || Err("run draws nothing".into()))?;
    Ok(exit_code(report.interrupted, report.runs.iter().map(|run| &run.outcome)))
}

/// Locks over numbers of threads.
pub fn sweep(args: &SweepArgs) -> Result<ExitCode, Failure> {
    let plan = Plan::make(&args.scene, &args.locks, args.threads.as_ref())?;
    let output = OutputArgs { json: args.scene.settings.json.clone(), svg: args.svg.clone() };
    let page = Page::beside([&output.json, &output.svg, &args.csv])?;
    let report = plan.simulate(false)?;
    output.publish(page, &render(&report), &report, || lines::svg(&picture(&report)))?;
    if let Some(file) = &args.csv {
        write_csv(file, &report.points)?;
    }
    Ok(exit_code(report.interrupted, report.runs.iter().map(|run| &run.outcome)))
}

fn render(report: &Report) -> String {
    let settings = &report.settings;
    let stopped = if report.interrupted { " Interrupted." } else { "" };
    let tables = table::tables(&report.workload, &report.threads, &report.points);
    format!(
        "{tables}{}\nMedians of {} seeds of {} ms of simulated time; ratio: to {} with the same seed. fairness: 0.5 is \
         even, 1 starvation;\nJain: 1 is even; CV: 0 is even; remote and wakes: per acquisition. From {}.{stopped}",
        report.simulated_machine,
        settings.seeds,
        settings.measured * 1e3,
        report.locks[0],
        report.workload.source
    )
}

/// What a run's memory and lock did, per acquisition, warm-up included.
fn details(report: &Report) -> String {
    let runs = report.runs.iter().zip(&report.traffic);
    let per = |of: &dyn Fn(&Counts, &Traffic) -> f64| {
        let figures = runs.clone().filter_map(|(run, traffic)| Some(of(run.counts.as_ref()?, traffic.as_ref()?)));
        Spread::of(figures).map_or(0.0, |spread| spread.median)
    };
    let operations = per(&|_, traffic| traffic.operations as f64);
    let mut text = format!(
        "Memory operations: {operations:.0}, of which in the core {:.1} %, from the domain {:.1} %, from others {:.1} %",
        100.0 * per(&|_, traffic| traffic.hits as f64) / operations,
        100.0 * per(&|_, traffic| traffic.local as f64) / operations,
        100.0 * per(&|_, traffic| traffic.remote as f64) / operations,
    );
    for name in poundlock_sim::event_names() {
        let count =
            per(&|counts, _| counts.events.as_ref().and_then(|events| events.get(name)).map_or(0.0, |n| *n as f64));
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
    let header: Vec<String> = ["lock", "threads"].map(str::to_owned).into_iter().chain(names).collect();
    writer.write_record(&header).map_err(Failure::ours)?;
    for point in points {
        let cells = FIGURES.iter().flat_map(|figure| match point.figure(figure.name) {
            Some(spread) => [spread.median, spread.min, spread.max].map(|value| value.to_string()),
            None => [const { String::new() }; 3],
        });
        let row: Vec<String> = [point.lock.clone(), point.threads.to_string()].into_iter().chain(cells).collect();
        writer.write_record(&row).map_err(Failure::ours)?;
    }
    write(file, writer.into_inner().map_err(Failure::ours)?)
}
