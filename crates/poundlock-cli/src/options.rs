//! Options that several commands take, and how their values are read.

use crate::failure::Failure;
use crate::output::{Page, json, undrawable, write};
use clap::Args;
use serde::Serialize;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The preload library's place, for the commands that need it.
#[derive(Args, Debug)]
pub(crate) struct PreloadArgs {
    /// The preload library, if not where poundlock finds it by itself
    #[arg(long, value_name = "FILE", env = "POUNDLOCK_PRELOAD", hide_env_values = true)]
    pub preload: Option<PathBuf>,
}

/// The locks beside the mutexes', for the commands that preload the library.
#[derive(Args, Debug, Default)]
pub(crate) struct OtherLocksArgs {
    /// The readers-writer lock, NAME[,KEY=VALUE...], see `poundlock list`; or native. shfl_rw unless given
    #[arg(long, value_name = "SPEC")]
    pub rwlock: Option<String>,
    /// The spin lock, qspin[,KEY=VALUE...] or native. qspin unless given
    #[arg(long, value_name = "SPEC")]
    pub spinlock: Option<String>,
}

/// Where figures go, for the commands that measure.
#[derive(Args, Debug)]
pub(crate) struct OutputArgs {
    /// Write every run and the summary to FILE as JSON (-: to stdout, with the table on stderr)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw medians and spreads into FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl OutputArgs {
    /// [`Page::beside`] these files.
    pub fn page(&self) -> Result<Page, Failure> {
        Page::beside([&self.json, &self.svg])
    }

    /// Shows the table on `page`, and writes the document and its picture to their files, if any.
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

/// What is observed: a program that is run, a living process, or what processes left.
#[derive(Args, Debug)]
pub(crate) struct SourceArgs {
    /// The lock, NAME[,KEY=VALUE...], see `poundlock list`
    #[arg(short, long, value_name = "SPEC", default_value = "shfl_mutex")]
    pub lock: String,
    #[command(flatten)]
    pub others: OtherLocksArgs,
    /// A living process, started with `run --stats`, instead of a program
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["file", "program"])]
    pub pid: Option<u32>,
    /// What a process left (may be repeated), or a folder of such files, instead of a program
    #[arg(short, long, value_name = "FILE", conflicts_with = "program")]
    pub file: Vec<PathBuf>,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// The program and its arguments
    #[arg(required_unless_present_any = ["pid", "file"], trailing_var_arg = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let positive = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    positive.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or("not a time in seconds".to_owned())
}

/// A time in nanoseconds: a number with ns, us or ms; without a unit only 0.
pub(crate) fn time(text: &str) -> Result<u64, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let scale = match &text[digits..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "" if text == "0" => 1.0,
        _ => return Err("not a time such as 200ns, 10us or 1.5ms".to_owned()),
    };
    let number: f64 = text[..digits].parse().map_err(|_| "not a time such as 200ns, 10us or 1.5ms".to_owned())?;
    Ok((number * scale).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_units() {
        assert_eq!(["0", "200ns", "10us", "1.5ms"].map(time), [Ok(0), Ok(200), Ok(10_000), Ok(1_500_000)]);
        for wrong in ["", "10", "us", "1.2.3us", "10 us", "-1us", "10s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
