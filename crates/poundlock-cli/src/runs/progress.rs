//! Progress on stderr.

use crate::output::Page;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

/// Forms of progress reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// A bar if stderr is a terminal, else nothing.
    Auto,
    /// A line at the start of each run, also if stderr is a file or a pipe.
    Lines,
}

/// Reports in `form` that the run `what` begins. `bar` counts the runs that have ended.
pub fn announce(bar: &ProgressBar, form: ProgressForm, what: String) {
    match form {
        ProgressForm::Auto => bar.set_message(what),
        ProgressForm::Lines => {
            let (run, all) = (bar.position() + 1, bar.length().unwrap_or_default());
            // A failed report does not end the runs.
            let _ = bar.suspend(|| Page::Stderr.show(format_args!("  run {run} of {all}: {what}")));
        }
    }
}

/// A progress bar for `runs` runs, visible on a terminal only.
pub fn progress(runs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed}, {eta} left]");
    let bar = ProgressBar::new(runs).with_style(style.expect("a fixed template"));
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}
