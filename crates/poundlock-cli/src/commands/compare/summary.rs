//! The structures of compare's JSON: runs and their summaries.

use crate::provenance::Provenance;
use crate::runs::{Outcome, Spread, stddev};
use serde::Serialize;
use std::collections::BTreeMap;

/// A comparison. Times are in seconds, sizes in bytes.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub schema: &'static str,
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Seconds since 1970.
    pub started: u64,
    pub command: Vec<String>,
    /// The POUNDLOCK_ variables that the runs inherited.
    pub environment: BTreeMap<String, String>,
    pub preload: String,
    pub settings: Settings,
    pub figure: Figure,
    pub peak_rss_floor_bytes: u64,
    /// Whether an interrupt ended the comparison before its last run.
    pub interrupted: bool,
    pub locks: Vec<Summary>,
    pub runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
pub struct Settings {
    pub repeats: u32,
    pub warmup: u32,
    pub timeout: Option<f64>,
    pub metric: Option<String>,
    pub prepare: Option<String>,
    pub cleanup: Option<String>,
}

/// The figure that is compared.
#[derive(Debug, Serialize)]
pub struct Figure {
    pub name: &'static str,
    pub unit: &'static str,
    /// "lower" or "higher".
    pub better: &'static str,
}

/// One run of the program.
#[derive(Debug, Serialize)]
pub struct Run {
    pub lock: String,
    /// From 1; None for a warm-up.
    pub repeat: Option<u32>,
    pub outcome: Outcome,
    /// The compared figure, if the run succeeded.
    pub figure: Option<f64>,
    pub wall: f64,
    pub cpu_user: f64,
    pub cpu_system: f64,
    pub peak_rss_bytes: u64,
    /// The end of the output of a failed run.
    pub output_tail: Option<String>,
}

/// The summary of a lock's runs. Spreads cover the runs that succeeded; None if none did.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub lock: String,
    pub succeeded: usize,
    pub failed: usize,
    pub figure: Option<Spread>,
    /// None with fewer than two figures.
    pub figure_stddev: Option<f64>,
    pub wall: Option<Spread>,
    pub cpu: Option<Spread>,
    pub peak_rss_bytes: Option<Spread>,
    /// The figure divided by that of native in the same repeat.
    pub ratio: Option<Spread>,
}

impl Summary {
    /// Summarises the runs under `lock`, with ratios to those under `native`. Of warm-ups, only
    /// failures count.
    pub fn of(lock: &str, native: &str, runs: &[Run]) -> Summary {
        let mine: Vec<&Run> = runs.iter().filter(|run| run.lock == lock).collect();
        let good: Vec<&Run> = mine
            .iter()
            .copied()
            .filter(|run| run.repeat.is_some() && run.figure.is_some())
            .collect();
        let spread = |figure: fn(&Run) -> f64| Spread::of(good.iter().map(|run| figure(run)));
        let ratio = |run: &&Run| {
            let same = |other: &&Run| other.lock == native && other.repeat == run.repeat;
            Some(run.figure? / runs.iter().find(same)?.figure.filter(|figure| *figure != 0.0)?)
        };
        let figures: Vec<f64> = good.iter().filter_map(|run| run.figure).collect();
        Summary {
            lock: lock.to_owned(),
            succeeded: good.len(),
            failed: mine.iter().filter(|run| run.outcome != Outcome::Ok).count(),
            figure: Spread::of(figures.iter().copied()),
            figure_stddev: stddev(&figures),
            wall: spread(|run| run.wall),
            cpu: spread(|run| run.cpu_user + run.cpu_system),
            peak_rss_bytes: spread(|run| run.peak_rss_bytes as f64),
            ratio: Spread::of(good.iter().filter_map(ratio)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, Summary};
    use crate::runs::{Outcome, Spread};

    fn run(lock: &str, repeat: u32, figure: Option<f64>) -> Run {
        let outcome = if figure.is_some() { Outcome::Ok } else { Outcome::Timeout };
        Run {
            lock: lock.to_owned(),
            repeat: Some(repeat),
            outcome,
            figure,
            wall: 1.0,
            cpu_user: 2.0,
            cpu_system: 1.0,
            peak_rss_bytes: 4096,
            output_tail: None,
        }
    }

    #[test]
    fn ratios_are_within_a_repeat() {
        // Each repeat is slower than the one before; the lock is always twice as slow as native
        // beside it.
        let runs: Vec<Run> = (1..=3)
            .flat_map(|repeat| {
                [
                    run("native", repeat, Some(repeat.into())),
                    run("mcs", repeat, Some((2 * repeat).into())),
                ]
            })
            .collect();
        let summary = Summary::of("mcs", "native", &runs);
        assert_eq!(summary.ratio, Some(Spread { median: 2.0, min: 2.0, max: 2.0 }));
        assert_eq!(summary.cpu, Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(summary.figure_stddev, Some(2.0), "of 2, 4 and 6");
    }

    #[test]
    fn a_failed_run_is_counted_and_has_no_figure() {
        let runs = [
            run("native", 1, None),
            run("mcs", 1, Some(5.0)),
            run("native", 2, Some(2.0)),
            run("mcs", 2, None),
        ];
        let summary = Summary::of("mcs", "native", &runs);
        assert_eq!((summary.succeeded, summary.failed), (1, 1));
        assert_eq!(summary.ratio, None, "no repeat has both");
        assert_eq!(summary.figure.map(|figure| figure.median), Some(5.0));
    }
}
