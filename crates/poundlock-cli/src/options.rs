//! Options that several commands take, and how their values are read.

use crate::failure::Failure;
use crate::output::{Page, json, undrawable, write};
use clap::{Args, ValueEnum};
use poundlock_bench::{Placement, Workload};
use serde::Serialize;
use std::error::Error;
use std::ffi::OsString;
use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::time::Duration;

/// The path of the preload library, for the commands that need it.
#[derive(Args, Debug)]
pub(crate) struct PreloadArgs {
    /// Path of the preload library [default: found relative to this binary]
    #[arg(long, value_name = "FILE", env = "POUNDLOCK_PRELOAD", hide_env_values = true)]
    pub preload: Option<PathBuf>,
}

/// The lock that replaces mutexes if none is named: the preload library's default
/// (`preload/config.c`).
pub(crate) fn default_lock() -> &'static str {
    const BEST: &str = "shfl_ron";
    if poundlock::locks().any(|info| info.name == BEST) { BEST } else { "shfl_mutex" }
}

/// The locks that replace other kinds than mutexes, for the commands that preload the library.
#[derive(Args, Debug, Default)]
pub(crate) struct OtherLocksArgs {
    /// Readers-writer lock, NAME[,KEY=VALUE...] from `poundlock list`, or native [default: shfl_rw]
    #[arg(long, value_name = "SPEC")]
    pub rwlock: Option<String>,
    /// Spin lock, qspin[,KEY=VALUE...] or native [default: qspin]
    #[arg(long, value_name = "SPEC")]
    pub spinlock: Option<String>,
}

/// The placement of a workload's threads.
#[derive(Args, Debug)]
pub(crate) struct PlacementArgs {
    /// Placement of threads on CPUs [default: that of the workload]
    #[arg(long, value_name = "PLACEMENT", value_enum)]
    pub placement: Option<Place>,
}

impl PlacementArgs {
    /// The workload with the placement that was asked for.
    pub fn apply(&self, workload: Workload) -> Workload {
        let placement = self.placement.map_or(workload.placement, Placement::from);
        Workload { placement, ..workload }
    }
}

/// The placements, as values of --placement.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Place {
    /// The scheduler chooses
    Free,
    /// Each thread is bound to a CPU: first all CPUs of a socket, then those of the next
    FirstFill,
    /// Each thread is bound to a CPU, of each socket in turn
    RoundRobin,
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value().expect("no value is skipped");
        f.write_str(value.get_name())
    }
}

impl From<Place> for Placement {
    fn from(place: Place) -> Placement {
        match place {
            Place::Free => Placement::Free,
            Place::FirstFill => Placement::FirstFill,
            Place::RoundRobin => Placement::RoundRobin,
        }
    }
}

/// Output files, for the commands that measure.
#[derive(Args, Debug)]
pub(crate) struct OutputArgs {
    /// Write every run and the summary to FILE as JSON (-: stdout; the table then goes to stderr)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a chart of medians and ranges to FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl OutputArgs {
    /// Checks the files, see [`Page::beside`].
    pub fn page(&self) -> Result<Page, Failure> {
        Page::beside([&self.json, &self.svg])
    }

    /// Prints the table on `page`, and writes the document and the picture to their files, if any.
    pub fn publish(
        &self,
        page: Page,
        table: &str,
        document: &impl Serialize,
        svg: impl FnOnce() -> Result<String, Box<dyn Error>>,
    ) -> Result<(), Failure> {
        page.show(table)?;
        if let Some(file) = &self.json {
            write(file, json(document)?)?;
        }
        if let Some(file) = &self.svg {
            write(file, svg().map_err(undrawable)?)?;
        }
        Ok(())
    }
}

/// The source of statistics: a new program, a running process, or files.
#[derive(Args, Debug)]
pub(crate) struct SourceArgs {
    /// Lock, NAME[,KEY=VALUE...] from `poundlock list`; or native: count the program's own locks,
    /// and replace none
    #[arg(short, long, value_name = "SPEC", default_value = default_lock())]
    pub lock: String,
    #[command(flatten)]
    pub others: OtherLocksArgs,
    /// Report on a running process that was started with `run --stats`
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["file", "program"])]
    pub pid: Option<u32>,
    /// Report on a statistics file, or on a folder of them (may be repeated)
    #[arg(short, long, value_name = "FILE", conflicts_with = "program")]
    pub file: Vec<PathBuf>,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// Program and its arguments
    #[arg(
        required_unless_present_any = ["pid", "file"], trailing_var_arg = true,
        value_name = "COMMAND"
    )]
    pub program: Vec<OsString>,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let positive = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    positive
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or("not a time in seconds".to_owned())
}

/// Parses a positive time with the unit ms, s, m or h; without a unit, in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let scale = match &text[digits..] {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("not a time such as 500ms, 10s or 2m".to_owned()),
    };
    let number = text[..digits].parse().ok().filter(|number: &f64| *number > 0.0);
    number
        .and_then(|number| Duration::try_from_secs_f64(number * scale).ok())
        .ok_or("not a time such as 500ms, 10s or 2m".to_owned())
}

/// Parses a time in nanoseconds: a number with the unit ns, us or ms, or 0 without a unit.
pub(crate) fn time(text: &str) -> Result<u64, String> {
    let digits =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let scale = match &text[digits..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "" if text == "0" => 1.0,
        _ => return Err("not a time such as 200ns, 10us or 1.5ms".to_owned()),
    };
    let number: f64 =
        text[..digits].parse().map_err(|_| "not a time such as 200ns, 10us or 1.5ms".to_owned())?;
    Ok((number * scale).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{duration, time};
    use std::time::Duration;

    #[test]
    fn durations_are_in_seconds_by_default() {
        let seconds = ["10", "10s", "500ms", "1.5m", "1h"].map(duration);
        let expected = [10.0, 10.0, 0.5, 90.0, 3600.0].map(|s| Ok(Duration::from_secs_f64(s)));
        assert_eq!(seconds, expected);
        for wrong in ["", "s", "0", "-1s", "10 s", "1d", "1e3"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_units() {
        assert_eq!(
            ["0", "200ns", "10us", "1.5ms"].map(time),
            [Ok(0), Ok(200), Ok(10_000), Ok(1_500_000)]
        );
        for wrong in ["", "10", "us", "1.2.3us", "10 us", "-1us", "10s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
