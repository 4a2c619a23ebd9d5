//! Runs of a program, how they ended, and what several of them amount to.

pub mod measure;

use crate::failure::Failure;
use crate::output::{Page, note};
use crate::runs::measure::End;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The exit status of a command that was interrupted.
const INTERRUPTED: u8 = 130;
/// How much of a failed run's output is kept.
const TAIL: usize = 2000;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    Ok,
    Exit { status: i32 },
    Signal { number: i32, name: String },
    Timeout,
    NoFigure { reason: String },
    NotStarted { reason: String },
}

impl Outcome {
    /// In a few words.
    pub fn describe(&self) -> String {
        match self {
            Outcome::Ok => "ok".to_owned(),
            Outcome::Exit { status } => format!("exit status {status}"),
            Outcome::Signal { name, .. } => format!("killed by {name}"),
            Outcome::Timeout => "timed out".to_owned(),
            Outcome::NoFigure { reason } | Outcome::NotStarted { reason } => reason.clone(),
        }
    }
}

impl From<End> for Outcome {
    fn from(end: End) -> Outcome {
        match end {
            End::Exited(0) => Outcome::Ok,
            End::Exited(status) => Outcome::Exit { status },
            End::Killed(number) => Outcome::Signal { number, name: signal_name(number) },
            End::TimedOut | End::Interrupted => Outcome::Timeout,
        }
    }
}

fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |signal| signal.to_string())
}

/// The end of a run's output.
pub fn tail(output: &[u8]) -> String {
    String::from_utf8_lossy(&output[output.len().saturating_sub(TAIL)..]).into_owned()
}

/// Says what failed, and what the run said last.
pub fn complain(what: &str, outcome: &Outcome, output_tail: Option<&str>) {
    let lines: Vec<&str> = output_tail.unwrap_or_default().lines().collect();
    let last: String = lines[lines.len().saturating_sub(3)..].iter().map(|line| format!("\n  | {line}")).collect();
    note(format_args!("{what}: {}{last}", outcome.describe()));
}

/// The median of figures, and their range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// None of none.
    pub fn of(figures: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = if figures.len().is_multiple_of(2) {
            f64::midpoint(figures[middle - 1], figures[middle])
        } else {
            figures[middle]
        };
        Some(Spread { median, min, max })
    }
}

/// Interrupted, some run failed, or all went well.
pub fn exit_code<'a>(interrupted: bool, mut outcomes: impl Iterator<Item = &'a Outcome>) -> ExitCode {
    match (interrupted, outcomes.any(|outcome| *outcome != Outcome::Ok)) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    }
}

/// The choices in the order of measuring in a repeat, which is counted from 0: each begins with another, so that none
/// always follows the same.
pub fn rotated<T>(choices: &[T], repeat: u32) -> impl Iterator<Item = &T> {
    let first = repeat as usize % choices.len();
    choices[first..].iter().chain(&choices[..first])
}

/// Set by the first interrupt, which ends the runs with what there is. The second ends it at once.
pub fn interrupts() -> Result<Arc<AtomicBool>, Failure> {
    catch().map_err(|error| Failure::ours(format!("cannot catch interrupts: {error}")))
}

fn catch() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

/// How a command reports its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// A bar on a terminal, else nothing.
    Auto,
    /// A line for each run, also where stderr is a file or a pipe.
    Lines,
}

/// Reports on stderr, in `form`, that the run `what` begins. `bar` counts the runs that have ended.
pub fn announce(bar: &ProgressBar, form: ProgressForm, what: String) {
    match form {
        ProgressForm::Auto => bar.set_message(what),
        ProgressForm::Lines => {
            let (run, all) = (bar.position() + 1, bar.length().unwrap_or_default());
            // Progress that cannot be shown is no reason to stop.
            let _ = bar.suspend(|| Page::Stderr.show(format_args!("  run {run} of {all}: {what}")));
        }
    }
}

/// Shows how many of the runs are done. On a terminal only.
pub fn progress(runs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed}, about {eta} left]");
    let bar = ProgressBar::new(runs).with_style(style.expect("a fixed template"));
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn medians_of_odd_and_even_counts() {
        let of = |figures: &[f64]| Spread::of(figures.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(of(&[]), None);
    }
}
