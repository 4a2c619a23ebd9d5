//! `sim advise`: recommends locks for a simulated machine: the best for each load, and one for all.
//!
//! A load is a workload with a number of threads. Two locks tie at a load if the ranges of their
//! throughputs over the seeds overlap. The regret of a lock at a load is the share of the best
//! throughput there that it loses. The lock with the smallest worst regret is recommended for all
//! loads. Locks that are less fair than requested are excluded.

mod judge;
mod loads;
mod report;
mod text;

use super::args::{AdviseArgs, SettingArgs};
use super::job;
use super::plan::{Found, Parts, Plan, at_a_time, place};
use crate::failure::Failure;
use crate::options::OutputArgs;
use crate::provenance::Provenance;
use crate::runs::{exit_code, interrupts};
use judge::{load, regrets};
use loads::{all, asked, families, loads, reads};
use poundlock_bench::Workload;
use report::Report;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Simulates the loads and prints the advice.
pub fn advise(args: &AdviseArgs) -> Result<ExitCode, Failure> {
    let settings = &args.settings;
    let output = OutputArgs { json: settings.json.clone(), svg: None };
    let plans = Loads::plan(args)?;
    let page = output.page()?;
    let report = plans.simulate(settings, args.fairness)?;
    output.publish(page, &text::render(&report), &report, || Err("advise has no chart".into()))?;
    let runs = report.loads.iter().flat_map(|load| &load.runs);
    Ok(exit_code(report.interrupted, runs.map(|run| &run.outcome)))
}

/// The loads and candidates, checked.
struct Loads<'a> {
    machine_name: String,
    cpus: usize,
    candidates: Vec<String>,
    /// The plans of each load: for mutual-exclusion locks, and for readers-writer locks.
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
            return Err(Failure::ours(format!(
                "'{idle}': no given workload uses a readers-writer lock"
            )));
        }
        // A load that none of the candidates can run is dropped.
        loads
            .retain(|(workload, _)| workload.readers || !candidates.iter().all(|lock| reads(lock)));
        let (file, machine) = (&file, &machine);
        let plan = |(workload, threads): &(Workload, usize)| {
            let threads = *threads;
            let mut parts = Parts::of(settings.warmup, settings.measured, machine, threads);
            if parts.most.is_none() && threads > cpus {
                parts.warmup = parts.warmup.max(machine.period() / 2.0);
                parts.measured = parts.measured.max(machine.period());
            }
            let plan = move |(workload, locks)| Plan {
                settings,
                machine: file.clone(),
                machine_name: machine.about.clone(),
                workload,
                locks,
                threads: vec![threads],
                parts: vec![parts],
            };
            families(workload, &candidates).into_iter().map(plan).collect()
        };
        let plans = loads.iter().map(plan).collect();
        Ok(Loads { machine_name: machine.about.clone(), cpus, candidates, plans })
    }

    fn simulate(self, settings: &SettingArgs, fairness: Option<f64>) -> Result<Report, Failure> {
        let jobs: Vec<_> = self.plans.iter().flatten().flat_map(Plan::jobs).collect();
        let interrupted = interrupts()?;
        let mut ended =
            job::run_all(&jobs, at_a_time(settings.repeats.jobs), None, &interrupted)?.into_iter();
        let mut loads = vec![];
        for plans in &self.plans {
            let mut found = Found::default();
            for plan in plans {
                let of_plan = plan.found(ended.by_ref().take(plan.jobs().len()), false);
                found.runs.extend(of_plan.runs);
                found.unsteady += of_plan.unsteady;
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
