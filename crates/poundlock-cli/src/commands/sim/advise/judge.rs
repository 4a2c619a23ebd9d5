//! Judges the locks at each load, and over all loads.

use super::loads::REFERENCES;
use crate::commands::sim::plan::{Found, Parts, Plan};
use crate::points::{Point, Run};
use crate::runs::Spread;
use poundlock_bench::Workload;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Load {
    pub kind: &'static str,
    pub workload: Workload,
    pub threads: usize,
    #[serde(flatten)]
    pub parts: Parts,
    /// How many runs reached their limit before they were steady.
    pub unsteady: usize,
    /// The lock with the best median.
    pub best: Option<String>,
    /// The locks that tie with it.
    pub ties: Vec<String>,
    pub next: Option<Over>,
    /// Over [`REFERENCES`].
    pub references: Vec<Over>,
    /// The locks that are less fair than requested.
    pub unfair: Vec<String>,
    pub points: Vec<Point>,
    pub runs: Vec<Run>,
}

/// The lead of the best lock over another one. A reference that is no candidate may be ahead.
#[derive(Debug, Serialize)]
pub struct Over {
    pub lock: String,
    /// The ratio of the medians, with the range over any two seeds.
    pub ratio: Spread,
    pub tie: bool,
}

#[derive(Debug, Serialize)]
pub struct Regret {
    pub lock: String,
    pub worst: f64,
    /// The regret at each load.
    pub regrets: Vec<f64>,
}

/// Judges the runs of a load.
pub fn load(
    plans: &[Plan],
    found: Found,
    candidates: &[String],
    cpus: usize,
    fairness: Option<f64>,
) -> Load {
    let locks: Vec<String> = plans.iter().flat_map(|plan| plan.locks.clone()).collect();
    let plan = plans.last().expect("the references are always simulated");
    let threads = plan.threads[0];
    let points = found.points(&locks, &plan.threads);
    let chosen = points.iter().filter(|point| candidates.contains(&point.lock));
    let (fair, unfair): (Vec<&Point>, Vec<&Point>) =
        chosen.partition(|point| is_fair(point, fairness));
    let unfair = unfair.into_iter().map(|point| point.lock.clone()).collect();
    let mut ranked: Vec<(&Point, Spread)> =
        fair.into_iter().filter_map(|p| Some((p, rate(p)?))).collect();
    ranked.sort_by(|a, b| b.1.median.total_cmp(&a.1.median));
    let best = ranked.first().copied();
    let over = |other: &Point| over(best?, other);
    let others = ranked.iter().skip(1).filter_map(|(point, _)| over(point));
    let others: Vec<Over> = others.collect();
    let references =
        REFERENCES.iter().filter_map(|name| points.iter().find(|point| point.lock == *name));
    let kind = match threads {
        1 => "uncontended",
        _ if threads <= cpus => "contended",
        _ => "over-subscribed",
    };
    Load {
        kind,
        workload: plan.workload.clone(),
        threads,
        parts: plan.parts[0],
        unsteady: found.unsteady,
        best: best.map(|(point, _)| point.lock.clone()),
        ties: others.iter().filter(|other| other.tie).map(|other| other.lock.clone()).collect(),
        references: references.filter_map(over).collect(),
        next: others.into_iter().next(),
        unfair,
        points,
        runs: found.runs,
    }
}

/// Whether the lock is fair enough. A single thread has no fairness factor, and passes.
fn is_fair(point: &Point, most: Option<f64>) -> bool {
    let factor = point.figure("fairness_factor").map(|factor| factor.median);
    most.is_none_or(|most| factor.is_none_or(|factor| factor <= most))
}

/// Acquisitions per second, if all seeds succeeded.
fn rate(point: &Point) -> Option<Spread> {
    point.figure("per_second").filter(|_| point.failed == 0)
}

/// The lead over `other`. None for the lock itself, and if the other one made no progress.
fn over((best, rate_of_best): (&Point, Spread), other: &Point) -> Option<Over> {
    let rate = rate(other).filter(|rate| rate.median > 0.0 && other.lock != best.lock)?;
    let ratio = Spread {
        median: rate_of_best.median / rate.median,
        min: rate_of_best.min / rate.max,
        max: rate_of_best.max / rate.min,
    };
    Some(Over { lock: other.lock.clone(), ratio, tie: ratio.min <= 1.0 && ratio.max >= 1.0 })
}

/// The regrets of the locks that have a figure at every load, the least first. Equal ones keep the
/// order of candidates.
pub fn regrets(loads: &[Load], candidates: &[String]) -> Vec<Regret> {
    let at = |load: &Load, lock: &str| {
        if load.unfair.iter().any(|unfair| unfair == lock) {
            return None;
        }
        let rate_of =
            |lock: &str| load.points.iter().find(|point| point.lock == lock).and_then(rate);
        let best = rate_of(load.best.as_deref()?)?.median;
        (best > 0.0).then_some(1.0 - rate_of(lock)?.median / best)
    };
    let regret = |lock: &String| {
        let regrets = loads.iter().map(|load| at(load, lock)).collect::<Option<Vec<f64>>>()?;
        Some(Regret {
            lock: lock.clone(),
            worst: regrets.iter().copied().fold(0.0, f64::max),
            regrets,
        })
    };
    let mut regrets: Vec<Regret> = candidates.iter().filter_map(regret).collect();
    regrets.sort_by(|a, b| a.worst.total_cmp(&b.worst));
    regrets
}
