//! The command line's words. The manual pages are generated from here.

use crate::bench::args::BenchArgs;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Runs unmodified programs under locks that keep their throughput, fairness and size
#[derive(Debug, Parser)]
#[command(name = "poundlock", version, max_term_width = 100, arg_required_else_help = false)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program with its pthread and C11 mutexes replaced by a lock
    ///
    /// The program takes poundlock's place in the process: its exit status and its signals are its own. poundlock's own
    /// exit status is 125 if a lock, a setting or the preload library is wrong, 126 if the program cannot be run, 127 if
    /// it cannot be found.
    Run(RunArgs),
    /// Compare a program's speed under locks, and without
    ///
    /// Runs the program under each lock in turn, and again in another order for each repeat. Prints medians with their
    /// spread, CPU time, peak memory, and the ratio to native: the median of the ratios within each repeat. What a run
    /// leaves behind in its process group is killed after the run.
    ///
    /// The exit status is 1 if any run failed or timed out.
    Compare(CompareArgs),
    /// List the locks: their sizes, settings and promises
    List(ListArgs),
    /// Tell whether a program's locks can be replaced
    ///
    /// Reads the program and the libraries that it is linked with; runs neither. The exit status is 0 if its locks can
    /// be replaced, 1 if not, 125 if that cannot be told.
    Doctor(DoctorArgs),
    /// Measure locks by the workloads of the papers that they are from
    ///
    /// Threads take one lock again and again, as the workload has it. Every run is a process of its own; each repeat runs
    /// every lock with every number of threads once, and begins with another lock than the one before. Prints medians of
    /// the throughput, its ratio to the C library's mutex in the same repeat, how evenly the lock was shared out, and
    /// what hand-overs cost; docs/benchmarks.md says how each figure is got.
    ///
    /// The exit status is 1 if any run failed or timed out, or if a lock let two threads in at once.
    Bench(BenchArgs),
    /// Do one run of a benchmark: bench calls it
    #[command(hide = true)]
    BenchWorker { job: String },
}

/// The preload library's place, for the commands that need it.
#[derive(Args, Debug)]
pub(crate) struct PreloadArgs {
    /// The preload library, if not where poundlock finds it by itself
    #[arg(long, value_name = "FILE", env = "POUNDLOCK_PRELOAD", hide_env_values = true)]
    pub preload: Option<PathBuf>,
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

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The lock, NAME[,KEY=VALUE...], see `poundlock list`; or native
    #[arg(short, long, value_name = "SPEC", default_value = "shfl_mutex")]
    pub lock: String,
    /// Say on stderr which lock is used
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// The locks, comma-separated; KEY=VALUE belongs to the lock before it (mcs,wait=spin,cna names two). May be
    /// repeated. All locks unless given
    #[arg(short, long = "locks", value_name = "SPEC[,SPEC...]")]
    pub locks: Vec<String>,
    /// How often each lock is measured
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// How many rounds to run first without counting them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub warmup: u32,
    /// Take the figure from the program's output, by the first group of this regular expression's last match, instead
    /// of the wall time. Higher figures are better. ^ and $ match at lines, commas in numbers are ignored
    #[arg(long, value_name = "REGEX")]
    pub metric: Option<String>,
    /// The metric's lower figures are better
    #[arg(long, requires = "metric")]
    pub lower_is_better: bool,
    /// Kill a run that takes longer, and count it as failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Leave out the runs without a replaced lock, and with them the ratios
    #[arg(long)]
    pub no_native: bool,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// The program, and arguments, which are not looked at
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let positive = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    positive.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or("not a time in seconds".to_owned())
}
