//! The subcommands, each in a module of its name.

mod bench;
mod compare;
mod doctor;
mod latency;
mod list;
mod profile;
mod report;
mod route;
mod run;
pub mod sim;
mod stat;
mod top;
mod topo;

use crate::failure::Failure;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

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
    Run(run::RunArgs),
    /// Compare a program's speed under locks, and without
    ///
    /// Runs the program under each lock in turn, and again in another order for each repeat. Prints medians with their
    /// spread, CPU time, peak memory, and the ratio to native: the median of the ratios within each repeat. What a run
    /// leaves behind in its process group is killed after the run.
    ///
    /// The exit status is 1 if any run failed or timed out.
    Compare(compare::CompareArgs),
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
    Stat(stat::StatArgs),
    /// Draw who waits for a program's locks, and for whom
    ///
    /// Runs the program with its locks replaced, and keeps the stack of every wait and of every hold that somebody waited
    /// for, both after the lock was released, so that no hold gets longer by it. Draws a flame graph: for each lock its
    /// waiters by the time that they waited, and its holders by the time that they held it.
    ///
    /// The exit status is the program's own; 128 and the signal's number if a signal ended it.
    Profile(profile::ProfileArgs),
    /// Write a page about a program's locks
    ///
    /// Runs the program as profile does, and writes one HTML file with the tables of stat, a plot of the waits, and the
    /// flame graph. It needs nothing else to be read.
    ///
    /// The exit status is the program's own; 128 and the signal's number if a signal ended it.
    Report(report::ReportArgs),
    /// Show what a process's locks do now
    ///
    /// The process must have been started with `run --stats`, or POUNDLOCK_STATS. Figures are of the time since the last
    /// ones; waiters is how many threads waited in the mean. q ends it.
    Top(top::TopArgs),
    /// List the locks: their sizes, settings and promises
    List(list::ListArgs),
    /// Tell whether a program's locks can be replaced
    ///
    /// Reads the program and the libraries that it is linked with; runs neither. The exit status is 0 if its locks can
    /// be replaced, 1 if not, 125 if that cannot be told.
    Doctor(doctor::DoctorArgs),
    /// Measure locks by the workloads of the papers that they are from
    ///
    /// Threads take one lock again and again, as the workload has it. Every run is a process of its own; each repeat runs
    /// every lock with every number of threads once, and begins with another lock than the one before. Prints medians of
    /// the throughput, its ratio to the C library's mutex in the same repeat, how evenly the lock was shared out, and
    /// what hand-overs cost; docs/benchmarks.md says how each figure is got.
    ///
    /// The exit status is 1 if any run failed or timed out, or if a lock let two threads in at once.
    Bench(bench::args::BenchArgs),
    /// Do one run of a benchmark: bench calls it
    #[command(hide = true)]
    BenchWorker { job: String },
    /// Run locks on a simulated machine of up to 1,024 CPUs
    ///
    /// The locks' own code runs on a model of a cache-coherent machine with an operating system; docs/simulator.md has the
    /// model. The exit status is 1 if any simulation failed, or if a lock let two threads in at once.
    Sim(sim::args::SimArgs),
    /// Do one simulation: sim calls it
    #[command(hide = true)]
    SimWorker { job: String },
    /// Show which CPUs share a core, an L3, a die, a socket
    Topo(topo::TopoArgs),
    /// Measure how long a cache line takes from each CPU to each other
    ///
    /// Two threads on two CPUs pass a word to and fro by compare-and-swap; a latency is half of a round trip. With --json
    /// what has been measured is kept in the file, and the same command goes on where it was interrupted: the exit status
    /// is then 130. The machine should have nothing else to do.
    Latency(latency::LatencyArgs),
    /// Find the shortest closed tour over CPUs, along which locks hand over
    ///
    /// Without a matrix, shows the route that locks use here and now: a saved one, or one that follows from the topology.
    Route(route::RouteArgs),
}

/// Does what a command says. Returns the exit status.
pub fn dispatch(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => Err(run::run(&args)),
        Command::Stat(args) => stat::stat(&args),
        Command::Profile(args) => profile::profile(&args),
        Command::Report(args) => report::report(&args),
        Command::Top(args) => top::top(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::List(args) => list::list(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::BenchWorker { job } => bench::worker(&job),
        Command::Sim(args) => sim::sim(&args),
        Command::SimWorker { job } => sim::worker(&job),
        Command::Topo(args) => topo::topo(&args),
        Command::Latency(args) => latency::latency(&args),
        Command::Route(args) => route::route(&args),
    }
}
