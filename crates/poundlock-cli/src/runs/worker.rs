//! Jobs in processes of their own: this binary again, as a hidden subcommand.
//!
//! Settings of locks belong to a process, a lock that hangs can be killed, and no run finds what
//! another one left.

use super::measure::{End, Measured, measure};
use super::{Outcome, tail};
use crate::failure::{Failure, reason};
use crate::options::OtherLocksArgs;
use crate::output;
use crate::program::{own_path, preload};
use crate::spec::Choice;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Starts jobs as `subcommand`.
pub struct Workers {
    own: PathBuf,
    subcommand: &'static str,
}

/// A job that has ended.
#[derive(Debug)]
pub struct Ended<T> {
    pub outcome: Outcome,
    /// Present if the outcome is [`Outcome::Ok`].
    pub result: Option<T>,
    /// The end of the output of a job that failed.
    pub output_tail: Option<String>,
}

impl Workers {
    pub fn new(subcommand: &'static str) -> Result<Workers, Failure> {
        Ok(Workers { own: own_path()?, subcommand })
    }

    /// Runs a job to its end, or kills it after `timeout`. Returns None if it was interrupted.
    pub fn run<T: DeserializeOwned>(
        &self,
        job: &impl Serialize,
        timeout: Option<Duration>,
        interrupted: &AtomicBool,
    ) -> Option<Ended<T>> {
        let job = serde_json::to_string(job).expect("a job is made of numbers and text");
        let command: [OsString; 3] = [self.own.clone().into(), self.subcommand.into(), job.into()];
        let failed = |outcome, output: &[u8]| Ended {
            outcome,
            result: None,
            output_tail: Some(tail(output)),
        };
        // A worker's native mutex must be the C library's, whatever this process has preloaded.
        let changes = preload::changes(&Choice::Native, &OtherLocksArgs::default(), None);
        Some(match measure(&command, &changes, timeout, interrupted) {
            Ok(Measured { end: End::Interrupted, .. }) => return None,
            Ok(measured) => match (Outcome::from(measured.end), last_line(&measured.output)) {
                (Outcome::Ok, Ok(result)) => {
                    Ended { outcome: Outcome::Ok, result: Some(result), output_tail: None }
                }
                (Outcome::Ok, Err(reason)) => {
                    failed(Outcome::NoFigure { reason }, &measured.output)
                }
                (outcome, _) => failed(outcome, &measured.output),
            },
            Err(error) => Ended {
                outcome: Outcome::NotStarted { reason: reason(&error) },
                result: None,
                output_tail: None,
            },
        })
    }
}

/// In the worker: reads the job.
pub fn parse<T: DeserializeOwned>(job: &str) -> Result<T, Failure> {
    serde_json::from_str(job).map_err(|wrong| Failure::ours(format!("not a job: {wrong}")))
}

/// In the worker: prints the result as one line of JSON.
pub fn answer(result: &impl Serialize) -> Result<ExitCode, Failure> {
    output::print(serde_json::to_string(result).map_err(Failure::ours)? + "\n")?;
    Ok(ExitCode::SUCCESS)
}

fn last_line<T: DeserializeOwned>(output: &[u8]) -> Result<T, String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|wrong| format!("its figures cannot be read: {wrong}"))
}
