//! `sim`'s words.

use crate::options::time;
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
    /// Prints the figures of bench, the memory's traffic and the lock's events; --json has each thread's counts.
    Run(RunArgs),
    /// Simulate locks over numbers of threads
    ///
    /// Points are simulated side by side, each in a process of its own. The same seeds give the same figures, byte for
    /// byte.
    Sweep(SweepArgs),
    /// Say which lock serves which load on a machine, and which one serves them all
    ///
    /// Simulates a few loads: one thread; CNA's map with as many threads as there are CPUs, without and with work outside
    /// of the lock, and with twice as many; and lookups with 1 % writes if a readers-writer lock is asked for. Says
    /// which lock is ahead at each, by how much, and which are no further behind than the seeds are apart; then the one
    /// lock whose worst regret, what it lacks of each load's best throughput, is the least.
    Advise(AdviseArgs),
    /// Simulate published figures, and print published against simulated
    ///
    /// A figure has its machine, workload, locks and numbers of threads in a file, and what the paper says of it.
    Figure(FigureArgs),
    /// Write a timeline of who holds a lock, waits, shuffles and sleeps
    ///
    /// Simulates once, with the first seed, and writes the trace event format that Perfetto and chrome://tracing show.
    Trace(TraceArgs),
}

/// What is simulated, but for locks and threads.
#[derive(Args, Debug)]
pub(crate) struct SceneArgs {
    /// The workload: the name of one that comes with poundlock (bench/workloads/NAME.toml), or a file, such as bench
    /// --describe prints
    #[arg(short, long, value_name = "NAME|FILE")]
    pub workload: String,
    #[command(flatten)]
    pub settings: SettingArgs,
}

/// Where, for how long and how often.
#[derive(Args, Debug)]
pub(crate) struct SettingArgs {
    /// The machine: the name of one that comes with poundlock (machines/NAME.toml), or a file; a table of latencies, as
    /// `poundlock latency` writes with --csv or --json, makes a machine by itself
    #[arg(short, long, value_name = "NAME|FILE")]
    pub machine: String,
    /// Latencies between its CPUs to take instead of its own, as `poundlock latency --csv` writes them
    #[arg(long, value_name = "FILE")]
    pub matrix: Option<PathBuf>,
    /// What locks take for a domain
    #[arg(long, value_name = "DOMAIN", value_enum, default_value = "l3")]
    pub domain: Domain,
    /// How long each simulation is measured, of simulated time; as 500us, 10ms
    #[arg(short = 'd', long, value_name = "TIME", default_value = "5ms", value_parser = time)]
    pub measured: u64,
    /// How long each simulation goes on before that
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = time)]
    pub warmup: u64,
    /// What a critical section's instructions take between two of its memory accesses, in nanoseconds
    #[arg(long, value_name = "NS", default_value_t = 1.0, value_parser = nanoseconds)]
    pub step: f64,
    #[command(flatten)]
    pub repeats: RepeatArgs,
    /// Write the figures to FILE as JSON (-: to stdout, with the table on stderr)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// How often, and how many at a time.
#[derive(Args, Debug)]
pub(crate) struct RepeatArgs {
    /// How many seeds to simulate
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub seeds: u32,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many simulations to run at a time. As many as there are CPUs unless given
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The lock, NAME[,KEY=VALUE...], see `poundlock list`
    #[arg(short, long, value_name = "SPEC", default_value = "shfl_mutex")]
    pub lock: String,
    /// The number of threads; Nx is N times as many as there are CPUs
    #[arg(short, long, value_name = "N[x]", value_parser = Threads::parse)]
    pub threads: Threads,
    #[command(flatten)]
    pub scene: SceneArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TraceArgs {
    /// The lock, NAME[,KEY=VALUE...], see `poundlock list`
    #[arg(short, long, value_name = "SPEC", default_value = "shfl_mutex")]
    pub lock: String,
    /// The number of threads; Nx is N times as many as there are CPUs
    #[arg(short, long, value_name = "N[x]", value_parser = Threads::parse)]
    pub threads: Threads,
    /// The timeline
    #[arg(short, long, value_name = "FILE", default_value = "poundlock-trace.json")]
    pub output: PathBuf,
    #[command(flatten)]
    pub scene: SceneArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    /// The locks, comma-separated; KEY=VALUE belongs to the lock before it (mcs,wait=spin,cna names two). May be
    /// repeated. All locks unless given. Ratios are to the first one
    #[arg(short, long = "locks", value_name = "SPEC[,SPEC...]")]
    pub locks: Vec<String>,
    /// The numbers of threads: N,..., or N..M for N and twice as many each time, up to M; Nx is N times as many as there
    /// are CPUs. As the workload has it unless given
    #[arg(short, long, value_name = "N[x],...|N[x]..M[x]", value_parser = Threads::parse)]
    pub threads: Option<Threads>,
    /// Draw medians and spreads into FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write medians and ranges to FILE as CSV (-: to stdout, with the table on stderr)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    #[command(flatten)]
    pub scene: SceneArgs,
}

#[derive(Args, Debug)]
pub(crate) struct AdviseArgs {
    /// A workload in place of those of the usual loads: the name of one that comes with poundlock, or a file. May be
    /// repeated. Each is a load with each number of threads
    #[arg(short, long = "workload", value_name = "NAME|FILE")]
    pub workloads: Vec<String>,
    /// The locks to choose from, as for sweep. All of one holder at a time unless given, and the readers-writer locks if
    /// a workload has readers; each with its own way of waiting, and spinning. mcs and ttas are simulated anyway
    #[arg(short, long = "locks", value_name = "SPEC[,SPEC...]")]
    pub locks: Vec<String>,
    /// The numbers of threads in place of those of the usual loads, as for sweep. With workloads given: as the workload has
    /// it, or 1, as many as there are CPUs, and twice as many, unless told
    #[arg(short, long, value_name = "N[x],...|N[x]..M[x]", value_parser = Threads::parse)]
    pub threads: Option<Threads>,
    /// Leave out locks whose fairness factor is above FACTOR at a load: 0.5 is even, 1 starvation
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub fairness: Option<f64>,
    #[command(flatten)]
    pub settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct FigureArgs {
    /// The figures: names of those that come with poundlock (bench/figures/NAME.toml), or files
    #[arg(value_name = "NAME|FILE", required_unless_present = "all")]
    pub names: Vec<String>,
    /// All that come with poundlock
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    #[command(flatten)]
    pub repeats: RepeatArgs,
    /// Write the figures to FILE as JSON (-: to stdout, with the tables on stderr)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the figure into FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write what was found to FILE as a page in Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// The localities, as the command line has them.
#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Domain {
    /// The CPUs of a last-level cache
    L3,
    /// Those of a NUMA node
    Node,
    /// Those of a socket
    Package,
    /// As many in a row by number as a NUMA node has, whatever node they are of: LiTL's locks take them for one
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
