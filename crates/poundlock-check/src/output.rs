// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output: results on stdout, line by line as they are known, and a progress bar on terminals.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

/// The reader of stdout has closed it. Not reported: the status is enough, as after SIGPIPE.
#[derive(Debug)]
pub struct ClosedPipe;

impl fmt::Display for ClosedPipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stdout is closed")
    }
}

impl std::error::Error for ClosedPipe {}

/// Writes `text` and a newline to stdout, and flushes it.
pub fn print(text: impl fmt::Display) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(ClosedPipe.into()),
        result => result.context("cannot write to stdout"),
    }
}

/// The numbers of results that are as expected, and that are not.
#[derive(Clone, Copy, Default)]
pub struct Count {
    pub passed: usize,
    pub failed: usize,
}

/// The progress of a number of jobs, shown on terminals only.
pub struct Progress(ProgressBar);

impl Progress {
    /// The progress of `count` things.
    pub fn new(count: usize, things: &str) -> Progress {
        let style = format!("{{wide_bar}} {{pos}} of {{len}} {things}, {{eta}} left");
        let style = ProgressStyle::with_template(&style).expect("a constant template");
        Progress(ProgressBar::new(count as u64).with_style(style))
    }

    /// Prints `text`, the result of one of the things, marked unless it is `good`.
    pub fn report(&self, good: bool, text: &str) -> Result<()> {
        self.0.inc(1);
        let mark = if good { "" } else { "FAIL " };
        self.0.suspend(|| print(format!("{mark}{text}")))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
