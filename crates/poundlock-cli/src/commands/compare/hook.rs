//! The shell commands of `--prepare` and `--cleanup`, which run before and after each run.

use crate::failure::reason;
use crate::options::OtherLocksArgs;
use crate::program::preload;
use crate::runs::{Outcome, measure, tail};
use crate::spec::Choice;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Command, ExitStatus, Stdio};

/// Names the lock of the run, or native, to the commands.
const LOCK_VARIABLE: &str = "POUNDLOCK_COMPARE_LOCK";

/// Why a command failed, and the end of its output.
#[derive(Debug)]
pub struct Failed {
    pub reason: String,
    pub output_tail: String,
}

/// Runs `command` by sh, with native locks and without a time limit. Processes that it leaves in
/// the background go on.
pub fn run(command: Option<&str>, choice: &Choice) -> Result<(), Failed> {
    let Some(command) = command else {
        return Ok(());
    };
    let failed = |reason: String| Failed { reason, output_tail: String::new() };
    // A file, since a process in the background would hold a pipe open.
    let mut output = tempfile::tempfile().map_err(|error| failed(reason(&error)))?;
    let status = start(command, choice, &output).map_err(|error| failed(reason(&error)))?;
    match Outcome::from(measure::end_of(status)) {
        Outcome::Ok => Ok(()),
        outcome => {
            let mut text = Vec::new();
            // Without the output, the reason alone is reported.
            let _ = output.rewind().and_then(|()| output.read_to_end(&mut text));
            Err(Failed { reason: outcome.describe(), output_tail: tail(&text) })
        }
    }
}

/// Runs `command` to its end.
fn start(command: &str, choice: &Choice, output: &File) -> io::Result<ExitStatus> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).env(LOCK_VARIABLE, choice.to_string());
    for (name, value) in preload::changes(&Choice::Native, &OtherLocksArgs::default(), None) {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?).status()
}
