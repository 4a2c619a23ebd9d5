//! The regret at each point, and over all of them.

use super::points::Point;
use crate::commands::sim::job::Ended;
use crate::runs::{Outcome, Spread};
use poundlock_bench::figures::FIGURES;
use poundlock_bench::{Counts, Workload};
use serde::Serialize;

/// A point with the figures of its locks.
#[derive(Debug, Serialize)]
pub struct Judged {
    pub machine: String,
    pub workload: String,
    pub threads: usize,
    /// None if the lock failed, or none is fair enough.
    pub regret: Option<f64>,
    /// The fastest lock that is fair enough.
    pub best: Option<String>,
    /// The lock itself, then the rivals.
    pub locks: Vec<Figures>,
}

/// Medians over the seeds; None if one failed.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub lock: String,
    pub per_second: Option<f64>,
    pub per_cpu_second: Option<f64>,
    pub fairness_factor: Option<f64>,
    /// How many seeds reached the limit before their throughput was steady.
    pub unsteady: usize,
    #[serde(skip)]
    pub outcomes: Vec<Outcome>,
}

impl Figures {
    /// Whether the lock is fair enough. A single thread has no fairness factor.
    fn is_fair(&self, most: f64) -> bool {
        self.fairness_factor.is_none_or(|factor| factor <= most)
    }
}

impl Judged {
    /// The figures of the best lock.
    pub fn best(&self) -> Option<&Figures> {
        self.locks.iter().find(|figures| Some(&figures.lock) == self.best.as_ref())
    }
}

/// Over the points with a regret.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub points: usize,
    pub median: Option<f64>,
    pub p90: Option<f64>,
    pub worst: Option<f64>,
    /// Points at which the lock is less fair than is asked of its rivals.
    pub unfair: usize,
    /// Simulations that reached their limit before they were steady.
    pub unsteady: usize,
    pub failed: usize,
}

impl Summary {
    pub fn of(points: &[Judged], fairness: f64) -> Summary {
        let mut regrets: Vec<f64> = points.iter().filter_map(|point| point.regret).collect();
        regrets.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * regrets.len() as f64).ceil() as usize;
            regrets.get(rank.saturating_sub(1)).copied()
        };
        let locks = || points.iter().flat_map(|point| &point.locks);
        let is_unfair =
            |point: &&Judged| !point.locks.first().is_none_or(|own| own.is_fair(fairness));
        let failed = |outcome: &&Outcome| **outcome != Outcome::Ok;
        Summary {
            points: regrets.len(),
            median: at(0.5),
            p90: at(0.9),
            worst: at(1.0),
            unfair: points.iter().filter(is_unfair).count(),
            unsteady: locks().map(|figures| figures.unsteady).sum(),
            failed: locks().flat_map(|figures| &figures.outcomes).filter(failed).count(),
        }
    }
}

/// Judges the simulations of a point, which are in the order of its jobs.
pub fn judge(point: &Point, ended: Vec<Option<Ended>>, lock: &str, fairness: f64) -> Judged {
    let figures = |name: &String| {
        let runs = point.jobs.iter().zip(&ended).filter(|(job, _)| job.lock == *name);
        of(name, &point.workload, &runs.filter_map(|(_, end)| end.as_ref()).collect::<Vec<_>>())
    };
    let locks: Vec<Figures> = point.locks.iter().map(figures).collect();
    let rate = |figures: &Figures| figures.per_second.filter(|rate| *rate > 0.0);
    let best = locks
        .iter()
        .filter(|figures| figures.is_fair(fairness))
        .filter_map(|figures| Some((rate(figures)?, &figures.lock)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let own = locks.iter().find(|figures| figures.lock == lock).and_then(|own| own.per_second);
    Judged {
        machine: point.machine.clone(),
        workload: point.workload.name.clone(),
        threads: point.threads,
        regret: best.zip(own).map(|((best, _), own)| (1.0 - own / best).max(0.0)),
        best: best.map(|(_, lock)| lock.clone()),
        locks,
    }
}

fn of(lock: &str, workload: &Workload, ended: &[&Ended]) -> Figures {
    let counts: Option<Vec<&Counts>> =
        ended.iter().map(|end| Some(&end.result.as_ref()?.counts)).collect();
    let figure = |name: &str| {
        let known = FIGURES.iter().find(|known| known.name == name).expect("there is one");
        let values = counts.as_ref()?.iter().filter_map(|counts| (known.of)(workload, counts));
        Spread::of(values).map(|spread| spread.median)
    };
    let unsteady = |end: &&&Ended| end.result.as_ref().is_some_and(|result| !result.steady);
    Figures {
        lock: lock.to_owned(),
        per_second: figure("per_second"),
        per_cpu_second: figure("per_cpu_second"),
        fairness_factor: figure("fairness_factor"),
        unsteady: ended.iter().filter(unsteady).count(),
        outcomes: ended.iter().map(|end| end.outcome.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Judged, Summary};

    #[test]
    fn a_summary_has_quantiles_of_the_regrets() {
        let point = |regret| Judged {
            machine: String::new(),
            workload: String::new(),
            threads: 1,
            regret,
            best: None,
            locks: vec![],
        };
        let mut points: Vec<Judged> = (1..=10).rev().map(|k| point(Some(f64::from(k)))).collect();
        points.push(point(None));
        let summary = Summary::of(&points, 0.75);
        assert_eq!((summary.points, summary.median), (10, Some(5.0)));
        assert_eq!((summary.p90, summary.worst), (Some(9.0), Some(10.0)));
        assert_eq!(Summary::of(&[], 0.75).worst, None);
    }
}
