//! The structures of bench's JSON: runs and points.

use crate::provenance::Provenance;
use crate::runs::{Outcome, Spread};
use poundlock_bench::figures::{FIGURES, class_shares};
use poundlock_bench::{Counts, Limit, Workload};
use serde::Serialize;
use std::collections::BTreeMap;

/// The document of `--json`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Seconds since 1970.
    pub started: u64,
    /// The POUNDLOCK_ variables that the runs inherited.
    pub environment: BTreeMap<String, String>,
    pub workload: Workload,
    pub threads: Vec<usize>,
    pub locks: Vec<String>,
    pub settings: Settings,
    /// Whether an interrupt ended it before its last run.
    pub interrupted: bool,
    /// One for each lock with each number of threads.
    pub points: Vec<Point>,
    pub runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
pub struct Settings {
    pub limit: Limit,
    pub repeats: u32,
    pub timeout: Option<f64>,
}

/// One run of the workload.
#[derive(Debug, Serialize)]
pub struct Run {
    pub lock: String,
    pub threads: usize,
    /// From 1.
    pub repeat: u32,
    pub outcome: Outcome,
    /// By name. A figure that does not apply is null.
    pub figures: BTreeMap<&'static str, Option<f64>>,
    /// The share of each class in the time that the lock was held.
    pub class_shares: Vec<f64>,
    pub counts: Option<Counts>,
    /// The end of the output of a failed run.
    pub output_tail: Option<String>,
}

impl Run {
    /// A run with the figures that follow from its counts.
    pub fn new(
        workload: &Workload,
        lock: String,
        threads: usize,
        repeat: u32,
        outcome: Outcome,
        counts: Option<Counts>,
        output_tail: Option<String>,
    ) -> Run {
        let figure = |of: fn(&Workload, &Counts) -> Option<f64>| {
            counts.as_ref().and_then(|counts| of(workload, counts))
        };
        Run {
            lock,
            threads,
            repeat,
            outcome,
            figures: FIGURES.iter().map(|known| (known.name, figure(known.of))).collect(),
            class_shares: counts
                .as_ref()
                .map(|counts| class_shares(workload, counts))
                .unwrap_or_default(),
            counts,
            output_tail,
        }
    }

    fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied().flatten()
    }
}

/// The summary of the runs of a lock with a number of threads. Spreads cover the runs that
/// succeeded.
#[derive(Debug, Serialize)]
pub struct Point {
    pub lock: String,
    pub threads: usize,
    pub succeeded: usize,
    pub failed: usize,
    /// Acquisitions per second relative to the reference in the same repeat.
    pub ratio: Option<Spread>,
    pub figures: BTreeMap<&'static str, Option<Spread>>,
    pub class_shares: Vec<Spread>,
}

impl Point {
    /// Summarises the runs of `lock` with `threads`, relative to `reference`.
    pub fn of(lock: &str, threads: usize, runs: &[Run], reference: &str) -> Point {
        let here: Vec<&Run> = runs.iter().filter(|run| run.threads == threads).collect();
        let mine: Vec<&Run> = here.iter().copied().filter(|run| run.lock == lock).collect();
        let good: Vec<&Run> =
            mine.iter().copied().filter(|run| run.outcome == Outcome::Ok).collect();
        let ratio = |run: &&Run| {
            let other = here
                .iter()
                .find(|beside| beside.lock == reference && beside.repeat == run.repeat)?;
            Some(
                run.figure("per_second")?
                    / other.figure("per_second").filter(|figure| *figure > 0.0)?,
            )
        };
        let figure = |name: &str| Spread::of(good.iter().filter_map(|run| run.figure(name)));
        let classes = good.first().map_or(0, |run| run.class_shares.len());
        let class = |class: usize| Spread::of(good.iter().map(|run| run.class_shares[class]));
        Point {
            lock: lock.to_owned(),
            threads,
            succeeded: good.len(),
            failed: mine.len() - good.len(),
            ratio: Spread::of(good.iter().filter_map(ratio)),
            figures: FIGURES.iter().map(|known| (known.name, figure(known.name))).collect(),
            class_shares: (0..classes).filter_map(class).collect(),
        }
    }

    /// A figure by its name.
    pub fn figure(&self, name: &str) -> Option<Spread> {
        self.figures.get(name).copied().flatten()
    }
}
