//! `sim run` and `sim sweep`: locks over numbers of threads on a simulated machine.

use super::args::{RunArgs, SceneArgs, SweepArgs};
use super::data::{self, MACHINES};
use super::job::{self, Ended, Job};
use crate::args::OutputArgs;
use crate::bench::plot::{self, Picture};
use crate::bench::report::{Point, Run};
use crate::bench::table;
use crate::failure::Failure;
use crate::output::unwritable;
use crate::provenance::Provenance;
use crate::runs::{Spread, exit_code, interrupts};
use crate::spec::{self, Choice, Family};
use poundlock_bench::figures::FIGURES;
use poundlock_bench::{Counts, Workload};
use poundlock_sim::Traffic;
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
struct Settings {
    seed: u64,
    seeds: u32,
    warmup: f64,
    measured: f64,
    step: f64,
    domain: String,
}

/// What is to be simulated, all of it checked.
pub struct Plan<'a> {
    scene: &'a SceneArgs,
    machine: PathBuf,
    pub machine_name: String,
    pub workload: Workload,
    locks: Vec<String>,
    threads: Vec<usize>,
}

impl Plan<'_> {
    pub fn make<'a>(scene: &'a SceneArgs, locks: &[String], threads: Vec<usize>) -> Result<Plan<'a>, Failure> {
        let file = MACHINES.find(&scene.machine)?;
        let machine = job::machine(&file, scene.matrix.as_deref()).map_err(Failure::ours)?;
        let workload = data::workload(&scene.workload)?;
        workload.check().map_err(Failure::ours)?;
        let choices = spec::parse_lists_of(locks, &Family::simulated(workload.readers))?;
        let locks = choices.iter().map(Choice::to_string).collect();
        Ok(Plan { scene, machine: file, machine_name: machine.about, workload, locks, threads })
    }

    /// For one lock and one number of threads.
    pub fn of_one<'a>(scene: &'a SceneArgs, lock: &str, threads: u32) -> Result<Plan<'a>, Failure> {
        let plan = Plan::make(scene, &[lock.to_owned()], vec![threads as usize])?;
        if plan.locks.len() != 1 {
            return Err(Failure::ours(format!("--lock: '{lock}' is more than one lock: sweep takes several")));
        }
        Ok(plan)
    }

    /// By seed, number of threads and lock.
    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = vec![];
        for seed in 0..u64::from(self.scene.seeds) {
            for &threads in &self.threads {
                for lock in &self.locks {
                    jobs.push(Job {
                        machine: self.machine.clone(),
                        matrix: self.scene.matrix.clone(),
                        workload: self.workload.clone(),
                        lock: lock.clone(),
                        threads,
                        warmup: self.scene.warmup as f64 / 1e9,
                        measured: self.scene.measured as f64 / 1e9,
                        seed: self.scene.seed.wrapping_add(seed),
                        step: self.scene.step,
                        locality: self.scene.domain.into(),
                    });
                }
            }
        }
        jobs
    }

    /// `whole`: with each thread's counts.
    fn simulate(self, whole: bool) -> Result<Report, Failure> {
        let jobs = self.jobs();
        let interrupted = interrupts()?;
        let ended = job::run_all(&jobs, at_a_time(self.scene.jobs), &interrupted)?;
        let (mut runs, mut traffic) = (vec![], vec![]);
        for (job, ended) in jobs.iter().zip(ended).filter_map(|(job, ended)| Some((job, ended?))) {
            traffic.push(ended.simulated.as_ref().map(|simulated| simulated.traffic));
            runs.push(run_of(job, ended, &self, whole));
        }
        let reference = &self.locks[0];
        let of = |threads: &usize| {
            let threads = *threads;
            self.locks.iter().map(move |lock| (lock, threads))
        };
        let points = self.threads.iter().flat_map(of);
        let points = points.map(|(lock, threads)| Point::of(lock, threads, &runs, reference)).collect();
        Ok(Report {
            schema: "poundlock.sim/1",
            provenance: Provenance::new(poundlock::C_COMPILER.to_owned()),
            simulated_machine: self.machine_name,
            settings: Settings {
                seed: self.scene.seed,
                seeds: self.scene.seeds,
                warmup: self.scene.warmup as f64 / 1e9,
                measured: self.scene.measured as f64 / 1e9,
                step: self.scene.step,
                domain: format!("{:?}", self.scene.domain).to_lowercase(),
            },
            workload: self.workload,
            threads: self.threads,
            locks: self.locks,
            interrupted: interrupted.load(Ordering::Relaxed),
            points,
            runs,
            traffic,
        })
    }
}

fn run_of(job: &Job, ended: Ended, plan: &Plan, whole: bool) -> Run {
    let counts: Option<Counts> = ended.simulated.map(|simulated| simulated.counts);
    let seed = (job.seed.wrapping_sub(plan.scene.seed)) as u32;
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
    let plan = Plan::of_one(&args.scene, &args.lock, args.threads)?;
    let output = OutputArgs { json: args.scene.json.clone(), svg: None };
    output.check()?;
    let report = plan.simulate(true)?;
    let text = render(&report) + "\n" + &details(&report);
    output.publish(&text, &report, || Err("run draws nothing".into()))?;
    Ok(exit_code(report.interrupted, report.runs.iter().map(|run| &run.outcome)))
}

/// Locks over numbers of threads.
pub fn sweep(args: &SweepArgs) -> Result<ExitCode, Failure> {
    let plan = Plan::make(&args.scene, &args.locks, args.threads.0.clone())?;
    let output = OutputArgs { json: args.scene.json.clone(), svg: args.svg.clone() };
    output.check()?;
    let report = plan.simulate(false)?;
    output.publish(&render(&report), &report, || plot::svg(&picture(&report)))?;
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
    let text = writer.into_inner().map_err(Failure::ours)?;
    if file == Path::new("-") {
        print!("{}", String::from_utf8_lossy(&text));
        return Ok(());
    }
    std::fs::write(file, text).map_err(|error| unwritable(file, &error))
}
