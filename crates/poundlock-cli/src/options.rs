//! The command line's words. The manual pages are generated from here.

use crate::commands::bench::args::BenchArgs;
use crate::commands::sim::args::SimArgs;
use crate::runs::ProgressForm;
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
    /// Tell what each lock of a program did: who waited for it, how long, and how fair it was
    ///
    /// Runs the program with its locks replaced, as run does, and counts. When it has ended prints, on stderr, the locks
    /// that were waited for most; --json and --csv have all. A lock is named by its symbol if it is static, else by the
    /// stack that first had to wait for it. Forked and executed processes are counted each for itself.
    ///
    /// With --pid tells what a living process has done that was started with `run --stats`, with --file what a process
    /// left, however it ended. docs/statistics.md says how each figure is got.
    ///
    /// The exit status is the program's own; 128 and the signal's number if a signal ended it.
    Stat(StatArgs),
    /// Draw who waits for a program's locks, and for whom
    ///
    /// Runs the program with its locks replaced, and keeps the stack of every wait and of every hold that somebody waited
    /// for, both after the lock was released, so that no hold gets longer by it. Draws a flame graph: for each lock its
    /// waiters by the time that they waited, and its holders by the time that they held it.
    ///
    /// The exit status is the program's own; 128 and the signal's number if a signal ended it.
    Profile(ProfileArgs),
    /// Write a page about a program's locks
    ///
    /// Runs the program as profile does, and writes one HTML file with the tables of stat, a plot of the waits, and the
    /// flame graph. It needs nothing else to be read.
    ///
    /// The exit status is the program's own; 128 and the signal's number if a signal ended it.
    Report(ReportArgs),
    /// Show what a process's locks do now
    ///
    /// The process must have been started with `run --stats`, or POUNDLOCK_STATS. Figures are of the time since the last
    /// ones; waiters is how many threads waited in the mean. q ends it.
    Top(TopArgs),
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
    /// Run locks on a simulated machine of up to 1,024 CPUs
    ///
    /// The locks' own code runs on a model of a cache-coherent machine with an operating system; docs/simulator.md has the
    /// model. The exit status is 1 if any simulation failed, or if a lock let two threads in at once.
    Sim(SimArgs),
    /// Do one simulation: sim calls it
    #[command(hide = true)]
    SimWorker { job: String },
    /// Show which CPUs share a core, an L3, a die, a socket
    Topo(TopoArgs),
    /// Measure how long a cache line takes from each CPU to each other
    ///
    /// Two threads on two CPUs pass a word to and fro by compare-and-swap; a latency is half of a round trip. With --json
    /// what has been measured is kept in the file, and the same command goes on where it was interrupted: the exit status
    /// is then 130. The machine should have nothing else to do.
    Latency(LatencyArgs),
    /// Find the shortest closed tour over CPUs, along which locks hand over
    ///
    /// Without a matrix, shows the route that locks use here and now: a saved one, or one that follows from the topology.
    Route(RouteArgs),
}

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

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The lock, NAME[,KEY=VALUE...], see `poundlock list`; or native
    #[arg(short, long, value_name = "SPEC", default_value = "shfl_mutex")]
    pub lock: String,
    #[command(flatten)]
    pub others: OtherLocksArgs,
    /// Count what each lock does, in a file in FOLDER, or $XDG_RUNTIME_DIR or /dev/shm, for `stat --pid` and `stat --file`
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    pub stats: Option<Option<PathBuf>>,
    /// Say on stderr which lock is used
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
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

#[derive(Args, Debug)]
pub(crate) struct StatArgs {
    /// How many locks to print, of each process
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
    /// Write all locks to FILE as JSON (-: to stdout)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write all locks to FILE as CSV (-: to stdout)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    #[command(flatten)]
    pub source: SourceArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ProfileArgs {
    /// The flame graph, as SVG
    #[arg(short, long, value_name = "FILE", default_value = "poundlock-profile.svg")]
    pub output: PathBuf,
    /// Write the stacks to FILE as text, a line each, with microseconds at its end
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// How many stacks to print
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub rows: usize,
    #[command(flatten)]
    pub source: SourceArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The page
    #[arg(short, long, value_name = "FILE", default_value = "poundlock-report.html")]
    pub output: PathBuf,
    /// How many locks to show, of each process
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30)]
    pub rows: usize,
    #[command(flatten)]
    pub source: SourceArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// The process
    #[arg(short, long, value_name = "PID")]
    pub pid: u32,
    /// How long to look each time
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: Duration,
    /// Look once, and print that
    #[arg(long)]
    pub once: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// The locks, comma-separated; KEY=VALUE belongs to the lock before it (mcs,wait=spin,cna names two). May be
    /// repeated. All locks unless given
    #[arg(short, long = "locks", value_name = "SPEC[,SPEC...]")]
    pub locks: Vec<String>,
    #[command(flatten)]
    pub others: OtherLocksArgs,
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
    /// Report progress on stderr: a bar if that is a terminal, or a line at the start of each run
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub progress: ProgressForm,
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

#[derive(Args, Debug)]
pub(crate) struct TopoArgs {
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Draw the machine into FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Read the machine from a copy of its /sys
    #[arg(long, value_name = "FOLDER")]
    pub sysfs: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct LatencyArgs {
    /// The CPUs, such as 0-3,8. All that the process may use unless given
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// How many samples to take of each two CPUs
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub samples: u32,
    /// How many round trips make a sample
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub round_trips: u32,
    /// Keep the measurements in FILE as JSON, and go on with those that are there (-: to stdout at the end)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Measure all anew, whatever the JSON file has
    #[arg(long, requires = "json")]
    pub restart: bool,
    /// Write the medians to FILE as a table: row and column are the CPUs' numbers, the lower triangle is filled
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw a heat map into FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct RouteArgs {
    /// The latencies: what `poundlock latency` wrote as JSON or CSV, or another such table
    #[arg(short, long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// Only these of its CPUs, such as 0-3,8
    #[arg(long, value_name = "LIST", requires = "matrix")]
    pub cpus: Option<String>,
    /// Save the route: in FILE, or where the library finds it for this user's programs
    #[arg(long, value_name = "FILE", requires = "matrix", num_args = 0..=1, require_equals = true)]
    pub save: Option<Option<PathBuf>>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let positive = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    positive.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or("not a time in seconds".to_owned())
}
