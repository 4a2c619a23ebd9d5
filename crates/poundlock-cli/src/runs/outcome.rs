//! How a run ended, and how failures are reported.

use super::measure::End;
use crate::output::note;
use serde::Serialize;

/// The number of bytes of a failed run's output that are kept.
const TAIL: usize = 2000;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    Ok,
    Exit {
        status: i32,
    },
    Signal {
        number: i32,
        name: String,
    },
    Timeout,
    NoFigure {
        reason: String,
    },
    NotStarted {
        reason: String,
    },
    /// `compare --prepare` failed; the run was not started.
    NotPrepared {
        reason: String,
    },
    /// `compare --cleanup` failed after a successful run.
    NotCleaned {
        reason: String,
    },
}

impl Outcome {
    /// Describes the outcome in a few words.
    pub fn describe(&self) -> String {
        match self {
            Outcome::Ok => "ok".to_owned(),
            Outcome::Exit { status } => format!("exit status {status}"),
            Outcome::Signal { name, .. } => format!("killed by {name}"),
            Outcome::Timeout => "timed out".to_owned(),
            Outcome::NoFigure { reason } | Outcome::NotStarted { reason } => reason.clone(),
            Outcome::NotPrepared { reason } => format!("--prepare failed: {reason}"),
            Outcome::NotCleaned { reason } => format!("--cleanup failed: {reason}"),
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
    nix::sys::signal::Signal::try_from(number)
        .map_or_else(|_| format!("signal {number}"), |signal| signal.to_string())
}

/// The end of a run's output.
pub fn tail(output: &[u8]) -> String {
    String::from_utf8_lossy(&output[output.len().saturating_sub(TAIL)..]).into_owned()
}

/// Reports a failure to stderr, with the last lines of the run's output.
pub fn complain(what: &str, outcome: &Outcome, output_tail: Option<&str>) {
    let lines: Vec<&str> = output_tail.unwrap_or_default().lines().collect();
    let last: String =
        lines[lines.len().saturating_sub(3)..].iter().map(|line| format!("\n  | {line}")).collect();
    note(format_args!("{what}: {}{last}", outcome.describe()));
}
