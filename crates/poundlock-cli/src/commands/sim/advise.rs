//! `sim advise`: which lock serves which load on a simulated machine, by how much, and which one serves them all best.
//!
//! A load is a workload with a number of threads. Two locks tie at one if the ranges of their throughputs over the seeds
//! overlap. A lock's regret at a load is what it lacks of the best throughput there, in parts of that; the one lock for
//! all loads is the one whose worst regret is the least. Who is less fair than asked for is not chosen.

use super::args::{AdviseArgs, SettingArgs};
use super::data;
use super::job;
use super::sweep::{Found, Plan, Settings, at_a_time, place, seconds};
use crate::failure::Failure;
use crate::options::OutputArgs;
use crate::points::table::{self, decimals, times};
use crate::points::{Point, Run};
use crate::provenance::Provenance;
use crate::runs::{Spread, exit_code, interrupts};
use crate::spec::{self, Choice, Family};
use crate::text_table::{self, ABSENT, median};
use crate::threads;
use poundlock_bench::Workload;
use poundlock_sim::LockSpec;
use serde::Serialize;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Locks that are simulated anyway, to compare with: the first one is the points' reference.
const REFERENCES: [&str; 2] = ["mcs", "ttas"];
/// The usual loads: workloads, and for how many threads.
const USUAL: [(&str, Threads); 4] = [
    ("cna-map", Threads::One),
    ("cna-map", Threads::Cpus),
    ("cna-map-work", Threads::Cpus),
    ("cna-map", Threads::TwiceAsMany),
];
/// Besides, if a readers-writer lock is asked for: the share of reads at which such locks are said to be worth it.
const READING: [(&str, Threads); 3] =
    [("shfl-hash-rw-1", Threads::One), ("shfl-hash-rw-1", Threads::Cpus), ("shfl-hash-rw-1", Threads::TwiceAsMany)];
/// How many locks are named that come next to the one for all loads.
const RUNNERS_UP: usize = 4;

/// A number of threads, by the machine.
#[derive(Clone, Copy)]
enum Threads {
    One,
    Cpus,
    TwiceAsMany,
}

impl Threads {
    const ALL: [Threads; 3] = [Threads::One, Threads::Cpus, Threads::TwiceAsMany];

    fn of(self, cpus: usize) -> usize {
        match self {
            Threads::One => 1,
            Threads::Cpus => cpus,
            Threads::TwiceAsMany => 2 * cpus,
        }
    }
}

/// Everything that was found: with the same seeds, always the same.
#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    simulated_machine: String,
    settings: Settings,
    /// The fairness factor that a lock may have at most.
    fairness: Option<f64>,
    /// Those to choose from.
    locks: Vec<String>,
    interrupted: bool,
    loads: Vec<Load>,
    /// The lock for all loads.
    choice: Option<String>,
    /// Of each lock that can serve all loads, the least first.
    regrets: Vec<Regret>,
}

#[derive(Debug, Serialize)]
struct Load {
    kind: &'static str,
    workload: Workload,
    threads: usize,
    /// In seconds of simulated time.
    warmup: f64,
    measured: f64,
    /// The lock with the best median.
    best: Option<String>,
    /// Those that are not told apart from it.
    ties: Vec<String>,
    next: Option<Over>,
    /// Over [`REFERENCES`].
    references: Vec<Over>,
    /// Those that are less fair than was asked for.
    unfair: Vec<String>,
    points: Vec<Point>,
    runs: Vec<Run>,
}

/// How far the best is ahead of another lock, or behind one that was not asked for.
#[derive(Debug, Serialize)]
struct Over {
    lock: String,
    /// Of the medians, and of any two seeds.
    ratio: Spread,
    tie: bool,
}

#[derive(Debug, Serialize)]
struct Regret {
    lock: String,
    worst: f64,
    /// At each load, in their order.
    regrets: Vec<f64>,
}

/// Simulates the loads, and says which locks serve them.
pub fn advise(args: &AdviseArgs) -> Result<ExitCode, Failure> {
    let settings = &args.settings;
    let output = OutputArgs { json: settings.json.clone(), svg: None };
    let plans = Loads::plan(args)?;
    let page = output.page()?;
    let report = plans.simulate(settings, args.fairness)?;
    output.publish(page, &render(&report), &report, || Err("advise draws nothing".into()))?;
    let runs = report.loads.iter().flat_map(|load| &load.runs);
    Ok(exit_code(report.interrupted, runs.map(|run| &run.outcome)))
}

/// What is to be simulated.
struct Loads<'a> {
    machine_name: String,
    cpus: usize,
    candidates: Vec<String>,
    /// Of each load, the plans for locks of one holder at a time and for readers-writer locks, where there are both.
    plans: Vec<Vec<Plan<'a>>>,
}

impl Loads<'_> {
    fn plan(args: &AdviseArgs) -> Result<Loads<'_>, Failure> {
        let settings = &args.settings;
        let (file, machine) = place(settings)?;
        let cpus = machine.cpus.len();
        let asked = asked(&args.locks)?;
        let mut loads = loads(args, cpus, asked.iter().flatten().any(|lock| reads(lock)))?;
        let reading = loads.iter().any(|(workload, _)| workload.readers);
        let candidates = asked.unwrap_or_else(|| all(reading));
        if let Some(idle) = candidates.iter().find(|lock| !reading && reads(lock)) {
            return Err(Failure::ours(format!("'{idle}': no workload that is given takes a readers-writer lock")));
        }
        // Nothing is to be said of a load that none of the locks can serve.
        loads.retain(|(workload, _)| workload.readers || !candidates.iter().all(|lock| reads(lock)));
        let (file, machine) = (&file, &machine);
        let plan = |(workload, threads): &(Workload, usize)| {
            let threads = *threads;
            let least = if threads > cpus { machine.period() } else { 0.0 };
            let plan = move |(workload, locks)| Plan {
                settings,
                machine: file.clone(),
                machine_name: machine.about.clone(),
                workload,
                locks,
                threads: vec![threads],
                warmup: seconds(settings.warmup).max(least / 2.0),
                measured: seconds(settings.measured).max(least),
            };
            families(workload, &candidates).into_iter().map(plan).collect()
        };
        let plans = loads.iter().map(plan).collect();
        Ok(Loads { machine_name: machine.about.clone(), cpus, candidates, plans })
    }

    fn simulate(self, settings: &SettingArgs, fairness: Option<f64>) -> Result<Report, Failure> {
        let jobs: Vec<_> = self.plans.iter().flatten().flat_map(Plan::jobs).collect();
        let interrupted = interrupts()?;
        let mut ended = job::run_all(&jobs, at_a_time(settings.repeats.jobs), &interrupted)?.into_iter();
        let mut loads = vec![];
        for plans in &self.plans {
            let mut found = Found::default();
            for plan in plans {
                found.runs.extend(plan.found(ended.by_ref().take(plan.jobs().len()), false).runs);
            }
            loads.push(load(plans, found, &self.candidates, self.cpus, fairness));
        }
        let regrets = regrets(&loads, &self.candidates);
        Ok(Report {
            schema: "poundlock.sim-advise/1",
            provenance: Provenance::new(poundlock::C_COMPILER.to_owned()),
            simulated_machine: self.machine_name,
            settings: settings.into(),
            fairness,
            locks: self.candidates,
            interrupted: interrupted.load(Ordering::Relaxed),
            loads,
            choice: regrets.first().map(|regret| regret.lock.clone()),
            regrets,
        })
    }
}

/// The locks that are named, of both families; none if none are.
fn asked(lists: &[String]) -> Result<Option<Vec<String>>, Failure> {
    if lists.is_empty() {
        return Ok(None);
    }
    let choices = spec::parse_lists_of(lists, &Family::simulated_all())?;
    Ok(Some(choices.iter().map(Choice::to_string).collect()))
}

/// Every lock, with its own way of waiting, and spinning.
fn all(reading: bool) -> Vec<String> {
    let families: &[bool] = if reading { &[false, true] } else { &[false] };
    let names = families.iter().flat_map(|readers| poundlock_sim::lock_names(*readers));
    names.flat_map(|name| [name.to_owned(), format!("{name},wait=spin")]).collect()
}

/// Whether a checked lock is a readers-writer lock.
fn reads(lock: &str) -> bool {
    LockSpec::parse(lock).is_ok_and(|lock| lock.has_readers())
}

/// Workloads with their numbers of threads: the usual ones, or those that are given.
fn loads(args: &AdviseArgs, cpus: usize, reading: bool) -> Result<Vec<(Workload, usize)>, Failure> {
    let usual: Vec<_> = USUAL.iter().chain(READING.iter().filter(|_| reading)).collect();
    if args.workloads.is_empty() && args.threads.is_none() {
        let load = |(name, threads): &&(&str, Threads)| Ok((data::workload(name)?, threads.of(cpus)));
        return usual.iter().map(load).collect();
    }
    let mut names: Vec<&str> = args.workloads.iter().map(String::as_str).collect();
    if let Some(twice) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
        return Err(Failure::ours(format!("workload '{}' is named twice", twice.1)));
    }
    if names.is_empty() {
        names = usual.iter().map(|(name, _)| *name).collect();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(*name));
    }
    let mut loads = vec![];
    for name in names {
        let workload = data::workload(name)?;
        workload.check().map_err(Failure::ours)?;
        let threads = threads::Threads::given_or_meant(args.threads.as_ref(), &workload, cpus)?;
        let threads = threads.unwrap_or_else(|| Threads::ALL.map(|threads| threads.of(cpus)).to_vec());
        loads.extend(threads.iter().map(|threads| (workload.clone(), *threads)));
    }
    Ok(loads)
}

/// The workload for each family of locks that can run it, with these. Locks of one holder at a time run one with readers,
/// too, who then exclude each other.
fn families(workload: &Workload, candidates: &[String]) -> Vec<(Workload, Vec<String>)> {
    let mut plain: Vec<String> = REFERENCES.map(str::to_owned).to_vec();
    plain.extend(candidates.iter().filter(|lock| !reads(lock) && !REFERENCES.contains(&lock.as_str())).cloned());
    let mut families = vec![(Workload { readers: false, ..workload.clone() }, plain)];
    if workload.readers {
        let readers = candidates.iter().filter(|lock| reads(lock)).cloned().collect();
        families.push((workload.clone(), readers));
    }
    families.retain(|(_, locks)| !locks.is_empty());
    families
}

/// What the runs of a load amount to.
fn load(plans: &[Plan], found: Found, candidates: &[String], cpus: usize, fairness: Option<f64>) -> Load {
    let locks: Vec<String> = plans.iter().flat_map(|plan| plan.locks.clone()).collect();
    let plan = plans.last().expect("the references are always simulated");
    let threads = plan.threads[0];
    let points = found.points(&locks, &plan.threads);
    let chosen = points.iter().filter(|point| candidates.contains(&point.lock));
    let (fair, unfair): (Vec<&Point>, Vec<&Point>) = chosen.partition(|point| is_fair(point, fairness));
    let unfair = unfair.into_iter().map(|point| point.lock.clone()).collect();
    let mut ranked: Vec<(&Point, Spread)> = fair.into_iter().filter_map(|p| Some((p, rate(p)?))).collect();
    ranked.sort_by(|a, b| b.1.median.total_cmp(&a.1.median));
    let best = ranked.first().copied();
    let over = |other: &Point| over(best?, other);
    let others = ranked.iter().skip(1).filter_map(|(point, _)| over(point));
    let others: Vec<Over> = others.collect();
    let references = REFERENCES.iter().filter_map(|name| points.iter().find(|point| point.lock == *name));
    let kind = match threads {
        1 => "uncontended",
        _ if threads <= cpus => "contended",
        _ => "over-subscribed",
    };
    Load {
        kind,
        workload: plan.workload.clone(),
        threads,
        warmup: plan.warmup,
        measured: plan.measured,
        best: best.map(|(point, _)| point.lock.clone()),
        ties: others.iter().filter(|other| other.tie).map(|other| other.lock.clone()).collect(),
        references: references.filter_map(over).collect(),
        next: others.into_iter().next(),
        unfair,
        points,
        runs: found.runs,
    }
}

/// A single thread has no factor.
fn is_fair(point: &Point, most: Option<f64>) -> bool {
    let factor = point.figure("fairness_factor").map(|factor| factor.median);
    most.is_none_or(|most| factor.is_none_or(|factor| factor <= most))
}

/// Acquisitions per second, if all seeds succeeded.
fn rate(point: &Point) -> Option<Spread> {
    point.figure("per_second").filter(|_| point.failed == 0)
}

/// None for the lock itself, and where the other one came to nothing.
fn over((best, rate_of_best): (&Point, Spread), other: &Point) -> Option<Over> {
    let rate = rate(other).filter(|rate| rate.median > 0.0 && other.lock != best.lock)?;
    let ratio = Spread {
        median: rate_of_best.median / rate.median,
        min: rate_of_best.min / rate.max,
        max: rate_of_best.max / rate.min,
    };
    Some(Over { lock: other.lock.clone(), ratio, tie: ratio.min <= 1.0 && ratio.max >= 1.0 })
}

/// Of each lock that has a figure at every load; the least first, and as the locks were named where they are equal.
fn regrets(loads: &[Load], candidates: &[String]) -> Vec<Regret> {
    let at = |load: &Load, lock: &str| {
        if load.unfair.iter().any(|unfair| unfair == lock) {
            return None;
        }
        let rate_of = |lock: &str| load.points.iter().find(|point| point.lock == lock).and_then(rate);
        let best = rate_of(load.best.as_deref()?)?.median;
        (best > 0.0).then_some(1.0 - rate_of(lock)?.median / best)
    };
    let regret = |lock: &String| {
        let regrets = loads.iter().map(|load| at(load, lock)).collect::<Option<Vec<f64>>>()?;
        Some(Regret { lock: lock.clone(), worst: regrets.iter().copied().fold(0.0, f64::max), regrets })
    };
    let mut regrets: Vec<Regret> = candidates.iter().filter_map(regret).collect();
    regrets.sort_by(|a, b| a.worst.total_cmp(&b.worst));
    regrets
}

fn render(report: &Report) -> String {
    let settings = &report.settings;
    let stopped = if report.interrupted { " Interrupted." } else { "" };
    let ties = report.loads.iter().filter_map(tie).chain(report.loads.iter().filter_map(unfair)).collect::<String>();
    format!(
        "{}\n\n{}\n{ties}\n{}\nMedians of {} seeds; over: the ratio of the medians, and of any two seeds. Locks whose ranges \
         over the seeds overlap tie.\nRegret: what is lacking of the load's best throughput, as parts of that. fairness: \
         0.5 is even, 1 starvation; Jain: 1 is even.{stopped}",
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
    let header =
        ["load", "best", "million/s", "fairness", "Jain", "next", "over next", "min - max", "over mcs", "over ttas"];
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

/// The ratio, or that it says nothing, and its range.
fn cells(over: Option<&Over>) -> [String; 2] {
    let Some(over) = over else { return [const { String::new() }; 2].map(|_| ABSENT.to_owned()) };
    let tie = if over.tie { " (tie)" } else { "" };
    let ratio = over.ratio;
    [format!("{:.2}{tie}", ratio.median), format!("{:.2} - {:.2}", ratio.min, ratio.max)]
}

/// Which locks cannot be told apart at a load.
fn tie(load: &Load) -> Option<String> {
    let best = load.best.as_ref().filter(|_| !load.ties.is_empty())?;
    Some(format!("{}: {best} ties with {}\n", name(load), load.ties.join(", ")))
}

/// Which locks are left out at a load.
fn unfair(load: &Load) -> Option<String> {
    (!load.unfair.is_empty()).then(|| format!("{}: less fair than asked for: {}\n", name(load), load.unfair.join(", ")))
}

fn choice(report: &Report) -> String {
    let Some(least) = report.regrets.first() else {
        return "No lock that was asked for serves every load.\n".to_owned();
    };
    let mut table = text_table::with_header(&["load", "best", "regret"], 2..3);
    for (load, regret) in report.loads.iter().zip(&least.regrets) {
        let best = load.best.clone().unwrap_or_else(|| ABSENT.to_owned());
        table.add_row([name(load), best, format!("{:.1} %", 100.0 * regret)]);
    }
    let percent = |regret: &Regret| format!("{} {:.1} %", regret.lock, 100.0 * regret.worst);
    let next: Vec<String> = report.regrets.iter().skip(1).take(RUNNERS_UP).map(percent).collect();
    let next = if next.is_empty() { String::new() } else { format!("Next, by their worst: {}\n", next.join("; ")) };
    format!(
        "One lock for all of them: {}, whose worst regret is {:.1} %\n{table}\n{next}",
        least.lock,
        100.0 * least.worst
    )
}
