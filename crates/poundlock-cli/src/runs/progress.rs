//! Progress on stderr.

use crate::output::Page;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

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
