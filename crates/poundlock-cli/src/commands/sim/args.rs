//! The options of `sim`.

use crate::options::{PlacementArgs, default_lock, time};
use crate::threads::Threads;
use clap::{Args, Subcommand, ValueEnum};
use poundlock_sim::Locality;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    pub command: SimCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Simulate one lock with one number of threads
    ///
    /// Prints the figures of bench, the memory traffic and the events of the lock; --json also has
    /// the counts of each thread.
    Run(RunArgs),
    /// Simulate locks over numbers of threads
    ///
    /// Simulations run in parallel, each in a separate process. The same seeds give byte-identical
    /// figures.
    Sweep(SweepArgs),
    /// Recommend locks for a machine: the best for each load, and one for all loads
    ///
    /// Simulates CNA's map with one thread; with one thread per CPU, without and with work outside
    /// the lock; and with two threads per CPU. If a readers-writer lock is among the candidates,
    /// adds lookups with 1 % writes. Reports the fastest lock of each load, its lead, and the locks
    /// that tie with it within the range of the seeds. The regret of a lock at a load is the share
    /// of the best throughput that it loses; the lock with the smallest worst regret is recommended
    /// for all loads.
    Advise(AdviseArgs),
    /// Simulate the default lock at many loads of many machines, and report where another lock is
    /// faster
    ///
    /// A point is a machine, a workload and a number of threads. The regret at a point is the share
    /// of the throughput that the lock loses to the best one, among those that are fair enough.
    /// Each simulation lasts until its throughput is steady.
    Regret(RegretArgs),
    /// Simulate published figures and compare the results with the papers
    ///
    /// The file of a figure has the machine, workload, locks, numbers of threads and published
    /// values.
    Figure(FigureArgs),
    /// Write a timeline of the holders, waiters, shufflers and sleepers of a lock
    ///
    /// Simulates once, with the first seed, and writes the trace event format that Perfetto and
    /// chrome://tracing display.
    Trace(TraceArgs),
}

/// The workload and the settings of a simulation.
#[derive(Args, Debug)]
pub(crate) struct SceneArgs {
    /// Workload: a name (bench/workloads/NAME.toml), or a file in the format of `bench --describe`
    #[arg(short, long, value_name = "NAME|FILE")]
    pub workload: String,
    #[command(flatten)]
    pub placement: PlacementArgs,
    #[command(flatten)]
    pub settings: SettingArgs,
}

/// The machine, durations and repeats of a simulation.
#[derive(Args, Debug)]
pub(crate) struct SettingArgs {
    /// Machine: a name (machines/NAME.toml), a file, or a table of latencies from `poundlock
    /// latency --csv` or --json
    #[arg(short, long, value_name = "NAME|FILE")]
    pub machine: String,
    /// Replace the latencies between the machine's CPUs by a table from `poundlock latency --csv`
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// Locality domain: the set of CPUs that locks treat as near
    #[arg(long, value_name = "DOMAIN", value_enum, default_value = "l3")]
    pub domain: Domain,
    /// Measured simulated time, such as 500us, 10ms [default: until the throughput is steady; for
    /// trace 5ms]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = time)]
    pub measured: Option<u64>,
    /// Simulated time before the measurement
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = time)]
    pub warmup: u64,
    /// Time of the instructions between two memory accesses of a critical section, in nanoseconds
    #[arg(long, value_name = "NS", default_value_t = 1.0, value_parser = nanoseconds)]
    pub step: f64,
    #[command(flatten)]
    pub repeats: RepeatArgs,
    /// Write the figures to FILE as JSON (-: stdout; the table then goes to stderr)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The seeds, and the number of simulations at a time.
#[derive(Args, Debug)]
pub(crate) struct RepeatArgs {
    /// Number of seeds
    #[arg(
        short = 'n', long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub seeds: u32,
    /// First seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of simulations at a time [default: the number of CPUs]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Lock, NAME[,KEY=VALUE...] from `poundlock list`
    #[arg(short, long, value_name = "SPEC", default_value = default_lock())]
    pub lock: String,
    /// Number of threads; Nx is N times the number of CPUs
    #[arg(short, long, value_name = "N[x]", value_parser = Threads::parse)]
    pub threads: Threads,
    #[command(flatten)]
    pub scene: SceneArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TraceArgs {
    /// Lock, NAME[,KEY=VALUE...] from `poundlock list`
    #[arg(short, long, value_name = "SPEC", default_value = default_lock())]
    pub lock: String,
    /// Number of threads; Nx is N times the number of CPUs
    #[arg(short, long, value_name = "N[x]", value_parser = Threads::parse)]
    pub threads: Threads,
    /// Output file (JSON)
    #[arg(short, long, value_name = "FILE", default_value = "poundlock-trace.json")]
    pub output: PathBuf,
    #[command(flatten)]
    pub scene: SceneArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    /// Locks, comma-separated; KEY=VALUE belongs to the lock before it: mcs,wait=spin,cna names
    /// two. May be repeated. Ratios are to the first one [default: all locks]
    #[arg(short, long = "locks", value_name = "SPEC[,SPEC...]")]
    pub locks: Vec<String>,
    /// Numbers of threads: N,... or N..M for N, 2N, 4N, ... up to M; Nx is N times the number of
    /// CPUs [default: those of the workload]
    #[arg(short, long, value_name = "N[x],...|N[x]..M[x]", value_parser = Threads::parse)]
    pub threads: Option<Threads>,
    /// Write a chart of medians and ranges to FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write medians and ranges to FILE as CSV (-: stdout; the table then goes to stderr)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    #[command(flatten)]
    pub scene: SceneArgs,
}

#[derive(Args, Debug)]
pub(crate) struct AdviseArgs {
    /// Workload instead of the standard loads: a name or a file. May be repeated. Each workload
    /// with each number of threads is a load
    #[arg(short, long = "workload", value_name = "NAME|FILE")]
    pub workloads: Vec<String>,
    /// Candidates, as for sweep [default: all mutual-exclusion locks, and the readers-writer locks
    /// if a workload has readers; each with its default wait and with wait=spin]. mcs and ttas are
    /// always simulated as references
    #[arg(short, long = "locks", value_name = "SPEC[,SPEC...]")]
    pub locks: Vec<String>,
    /// Numbers of threads instead of those of the standard loads, as for sweep [default with
    /// --workload: those of the workload, or 1, the number of CPUs and twice that number]
    #[arg(short, long, value_name = "N[x],...|N[x]..M[x]", value_parser = Threads::parse)]
    pub threads: Option<Threads>,
    /// Exclude locks whose fairness factor exceeds FACTOR at a load: 0.5 is even, 1 is starvation
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub fairness: Option<f64>,
    #[command(flatten)]
    pub settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RegretArgs {
    /// Lock whose regret is reported
    #[arg(short, long, value_name = "SPEC", default_value = default_lock())]
    pub lock: String,
    /// Rivals, as for sweep [default: 14 locks with their default wait, and 5 with wait=spin while
    /// threads are at most CPUs]
    #[arg(short, long = "rivals", value_name = "SPEC[,SPEC...]")]
    pub rivals: Vec<String>,
    /// Machine: a name or a file. May be repeated [default: all but the synthetic one]
    #[arg(short, long = "machine", value_name = "NAME|FILE")]
    pub machines: Vec<String>,
    /// Workload: a name or a file. May be repeated [default: five of the papers]
    #[arg(short, long = "workload", value_name = "NAME|FILE")]
    pub workloads: Vec<String>,
    /// Numbers of threads, as for sweep [default: 4, half as many as CPUs, as many, 4 and 16 times
    /// as many]
    #[arg(short, long, value_name = "N[x],...|N[x]..M[x]", value_parser = Threads::parse)]
    pub threads: Option<Threads>,
    #[command(flatten)]
    pub placement: PlacementArgs,
    /// Fewer machines, rivals and numbers of threads: a tenth of the work
    #[arg(long)]
    pub quick: bool,
    /// Exclude rivals whose fairness factor exceeds FACTOR at a point: 0.5 is even, 1 is starvation
    #[arg(long, value_name = "FACTOR", default_value_t = 0.75, value_parser = factor)]
    pub fairness: f64,
    /// Folder of results: those of an earlier call are used as long as neither the lock nor the
    /// simulator has changed
    #[arg(long, value_name = "DIRECTORY")]
    pub cache: Option<PathBuf>,
    /// Number of seeds
    #[arg(
        short = 'n', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub seeds: u32,
    /// Number of simulations at a time [default: the number of CPUs]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
    /// Write the points to FILE as JSON (-: stdout; the table then goes to stderr)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write each lock at each point to FILE as CSV (-: stdout; the table then goes to stderr)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a heat map of machines and loads to FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the tables to FILE as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct FigureArgs {
    /// Figures: names (bench/figures/NAME.toml) or files
    #[arg(value_name = "NAME|FILE", required_unless_present = "all")]
    pub names: Vec<String>,
    /// Simulate all figures of bench/figures
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    #[command(flatten)]
    pub repeats: RepeatArgs,
    /// Write the figures to FILE as JSON (-: stdout; the tables then go to stderr)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a chart of the figure to FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the comparison to FILE as a page in Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// The kinds of locality domain, as values of --domain.
#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Domain {
    /// CPUs that share a last-level cache
    L3,
    /// CPUs of a NUMA node
    Node,
    /// CPUs of a socket
    Package,
    /// Consecutive CPU numbers, as many as a NUMA node has CPUs, as LiTL's locks assume
    Numbers,
}

impl From<Domain> for Locality {
    fn from(domain: Domain) -> Locality {
        match domain {
            Domain::L3 => Locality::L3,
            Domain::Node => Locality::Node,
            Domain::Package => Locality::Package,
            Domain::Numbers => Locality::Numbers,
        }
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|factor: &f64| (0.5..=1.0).contains(factor));
    parsed.ok_or("not a factor from 0.5 to 1".to_owned())
}

fn nanoseconds(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|time: &f64| (0.0..=1e6).contains(time));
    parsed.ok_or("not a time in nanoseconds".to_owned())
}
