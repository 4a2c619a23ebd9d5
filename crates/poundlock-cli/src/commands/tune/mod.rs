//! `poundlock tune`: finds the settings of single locks that serve a program best.

mod hot;
mod process;
mod program;
mod report;
mod rules_text;
mod search;
mod setup;
mod step;

use crate::failure::Failure;
use crate::options::{OtherLocksArgs, PreloadArgs, default_lock, duration, seconds};
use crate::output::{Page, is_stdout, json, note, write};
use crate::provenance::{Provenance, seconds_since_1970};
use crate::runs::{INTERRUPTED, ProgressForm};
use crate::{program as programs, rules};
use clap::{Args, ValueEnum};
use report::Evidence;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use step::Tuned;

#[derive(Args, Debug)]
pub(crate) struct TuneArgs {
    /// Tune a running process that was started with `run --control --stats`
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["program", "metric"])]
    pub pid: Option<u32>,
    /// Begin no measurement after that time, such as 90s or 10m [default: 5m, of a process 1m]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Begin no more runs of the program than that
    #[arg(
        long, value_name = "N", conflicts_with = "pid",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub runs: Option<u32>,
    /// Figure to improve [default: elapsed, of a process acquisitions]
    #[arg(long, value_name = "FIGURE", conflicts_with = "metric")]
    pub by: Option<By>,
    /// Improve a figure from the program's output: the first group of the last match of REGEX.
    /// Higher figures are better. ^ and $ match at line boundaries; commas in numbers are ignored
    #[arg(long, value_name = "REGEX")]
    pub metric: Option<String>,
    /// Lower figures of the metric are better
    #[arg(long, requires = "metric")]
    pub lower_is_better: bool,
    /// File to write the rules to, if something helps (-: stdout)
    #[arg(short, long, value_name = "FILE", default_value = "poundlock-rules.toml")]
    pub output: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    /// Leave what is better in effect in the running process
    #[arg(long, requires = "pid", conflicts_with = "program")]
    pub keep: bool,
    /// Number of locks to tune at most, those with the longest waits first
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = most)]
    pub top: usize,
    /// Time of one measurement of a running process, such as 100ms [default: a 600th of --for]
    #[arg(
        long, value_name = "TIME", value_parser = duration, requires = "pid",
        conflicts_with = "program"
    )]
    pub window: Option<Duration>,
    /// Begin no more measurements of a running process than that
    #[arg(
        long, value_name = "N", requires = "pid", conflicts_with = "program",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub windows: Option<u32>,
    /// Present lock of the program: shfl_mutex or shfl_ron[,KEY=VALUE...]
    #[arg(short, long, value_name = "SPEC", default_value = default_lock(), conflicts_with = "pid")]
    pub lock: String,
    /// Present rules of the program. New rules precede them
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    pub rules: Option<PathBuf>,
    /// Try these locks for the whole program also, as in compare
    #[arg(long, value_name = "SPEC[,SPEC...]", conflicts_with = "pid")]
    pub locks: Vec<String>,
    /// Do not try the program's own locks
    #[arg(long, conflicts_with = "pid")]
    pub no_native: bool,
    #[command(flatten)]
    pub others: OtherLocksArgs,
    /// Kill a run that takes longer, and count it as failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "pid")]
    pub timeout: Option<Duration>,
    /// Write all figures to FILE as JSON (-: stdout; the tables then go to stderr)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Progress on stderr
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub progress: ProgressForm,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// Program and its arguments
    #[arg(required_unless_present = "pid", trailing_var_arg = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
}

/// Figures to improve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The wall time of a run
    Elapsed,
    /// The CPU time of a run
    Cpu,
    /// Acquisitions per second: of all locks of a run, of the tuned locks of a process
    Acquisitions,
    /// Acquisitions per second of the thread of a running process that gets the fewest
    Slowest,
}

fn most(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=16).contains(number));
    number.ok_or_else(|| "not a number from 1 to 16".to_owned())
}

/// Tunes a program or a process, and prints and writes the result.
pub fn tune(args: &TuneArgs) -> Result<ExitCode, Failure> {
    let rules_on_stdout = is_stdout(&args.output).then(|| args.output.clone());
    let page = Page::beside([&args.json, &rules_on_stdout])?;
    check_output(args)?;
    let started = seconds_since_1970();
    let tuned = match args.pid {
        Some(pid) => process::tune(args, pid)?,
        None => program::tune(args)?,
    };
    let provenance = Provenance::new(poundlock::C_COMPILER.to_owned());
    let text = rules_of(&tuned, args, &provenance, started)?;
    let rules = text.is_some().then_some(args.output.as_path());
    page.show(report::text(&tuned, args, rules, page))?;
    if let Some(text) = text {
        write_rules(args, &text)?;
    }
    if let Some(file) = &args.json {
        let document = report::document(&tuned, args, provenance, started, rules);
        write(file, json(&document)?)?;
    }
    Ok(if tuned.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Fails if the file of rules cannot be written, or exists and must not be replaced.
fn check_output(args: &TuneArgs) -> Result<(), Failure> {
    if is_stdout(&args.output) {
        return Ok(());
    }
    Page::beside([&Some(args.output.clone())])?;
    if !args.force && args.output.symlink_metadata().is_ok() {
        return Err(Failure::ours(format!(
            "'{}' exists: --output names another file, and --force replaces it",
            args.output.display()
        )));
    }
    Ok(())
}

fn write_rules(args: &TuneArgs, text: &str) -> Result<(), Failure> {
    // The file may have been made meanwhile.
    check_output(args).inspect_err(|_| note("the rules were not written"))?;
    write(&args.output, text)
}

/// The file of rules. None if nothing is better, or no rule can state it.
fn rules_of(
    tuned: &Tuned,
    args: &TuneArgs,
    provenance: &Provenance,
    started: u64,
) -> Result<Option<String>, Failure> {
    if rules_text::rules(&tuned.kept, &tuned.targets).is_empty() {
        return Ok(None);
    }
    let present = match &args.rules {
        Some(file) => rules::text(file)?,
        None => String::new(),
    };
    let text = rules_text::file(tuned, &evidence(args, provenance, started), &present);
    rules::check(text.as_bytes(), &args.lock)
        .map_err(|why| Failure::ours(format!("no rules are written: {why}")))?;
    Ok(Some(text))
}

fn evidence(args: &TuneArgs, provenance: &Provenance, started: u64) -> Evidence {
    let subject = match args.pid {
        Some(pid) => format!("Process {pid}: {}", program_of(pid).display()),
        None => {
            let program = programs::find(&args.program[0]).unwrap_or_default();
            let command = report::words(args).join(" ");
            format!("Command, with -l {}: {command} ({})", args.lock, program.display())
        }
    };
    let lines = vec![
        format!("Written by `poundlock tune` {} on {}.", env!("CARGO_PKG_VERSION"), date(started)),
        subject,
        format!("Machine: {}.", provenance.machine_line()),
        format!(
            "Ratios of {} to the settings before; more than 1 is better. 95 % intervals.",
            metric_name(args)
        ),
    ];
    Evidence { lines }
}

fn program_of(pid: u32) -> PathBuf {
    std::fs::read_link(Path::new(&format!("/proc/{pid}/exe"))).unwrap_or_default()
}

/// The figure that is improved, in words.
fn metric_name(args: &TuneArgs) -> String {
    let by = match (args.by, args.pid) {
        (Some(by), _) => by,
        (None, Some(_)) => By::Acquisitions,
        (None, None) => By::Elapsed,
    };
    match (&args.metric, by) {
        (Some(metric), _) => format!("the metric {metric}"),
        (None, By::Elapsed) => "the speed (inverse wall time)".to_owned(),
        (None, By::Cpu) => "the inverse CPU time".to_owned(),
        (None, By::Acquisitions) => "acquisitions per second".to_owned(),
        (None, By::Slowest) => "acquisitions per second of the slowest thread".to_owned(),
    }
}

/// The day of a time in seconds since 1970, in UTC: YYYY-MM-DD.
fn date(seconds: u64) -> String {
    let seconds = libc::time_t::try_from(seconds).unwrap_or_default();
    // SAFETY: a tm may be zero, and gmtime_r writes to nothing else.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&seconds, &mut time);
        time
    };
    format!("{:04}-{:02}-{:02}", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn a_date_is_in_utc() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
    }
}
