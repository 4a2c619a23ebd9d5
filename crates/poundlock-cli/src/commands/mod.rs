//! The subcommands, each in the module of its name. The manual pages are generated from here.

mod bench;
mod compare;
mod completions;
mod control;
mod doctor;
mod draw;
mod latency;
mod list;
mod page;
mod profile;
mod report;
mod route;
mod run;
pub mod sim;
mod stat;
mod terminal;
mod top;
mod topo;
mod tune;
mod watch;

use crate::failure::Failure;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Run unmodified programs under scalable, fair locks, and see what their locks do
#[derive(Debug, Parser)]
#[command(name = "poundlock", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program with its pthread and C11 mutexes replaced by a lock
    ///
    /// The program replaces poundlock in the process, so its exit status and signals are its own.
    /// If the program does not start, the exit status is 125 for a wrong lock, setting or preload
    /// library, 126 if the program cannot be run, and 127 if it is not found.
    Run(run::RunArgs),
    /// Compare a program's speed under several locks and under its own
    ///
    /// Runs the program under each lock in turn, and in another order in each repeat. Prints
    /// medians and ranges, CPU time, peak memory, and the ratio to native: the median of the ratios
    /// within each repeat. Processes that a run leaves in its process group are killed after the
    /// run.
    ///
    /// The exit status is 1 if any run failed or timed out.
    Compare(compare::CompareArgs),
    /// Report the contention, hold times and fairness of each lock of a program
    ///
    /// Runs the program with its locks replaced, as run does, and counts. With --lock native,
    /// replaces nothing, and counts the operations on the program's own pthread locks. After the
    /// program ends, prints the locks with the longest total wait and a verdict to stderr; --json
    /// and --csv write all locks. A static lock has the name of its symbol, any other lock the call
    /// stack of its first waiter. Each forked or executed process has its own table.
    ///
    /// --pid reports on a running process that was started with `run --stats`. --file reports on
    /// the file that a process left, even if it was killed. docs/statistics.md describes each
    /// figure.
    ///
    /// The exit status is that of the program, or 128 plus the signal number if a signal ended it.
    Stat(stat::StatArgs),
    /// Draw a flame graph of the waiters and holders of a program's locks
    ///
    /// Runs the program with its locks replaced. Records the call stack of every wait, and of every
    /// hold that delayed a waiter, after the lock is released, so that recording lengthens no hold.
    /// In the flame graph each lock has its waiters by time waited and its holders by time held.
    ///
    /// The exit status is that of the program, or 128 plus the signal number if a signal ended it.
    Profile(profile::ProfileArgs),
    /// Write an HTML report about a program's locks
    ///
    /// Runs the program as profile does, and writes one self-contained HTML file with the tables of
    /// stat, a chart of the waits, and the flame graph.
    ///
    /// The exit status is that of the program, or 128 plus the signal number if a signal ended it.
    Report(report::ReportArgs),
    /// Watch the locks of a running process
    ///
    /// The process must have been started with `run --stats` or POUNDLOCK_STATS. Figures cover the
    /// time since the previous display; "waiters" is the mean number of waiting threads. Press q to
    /// quit, the first letter of a column to sort by it, and Enter to show the selected lock alone.
    /// There, keys change its settings if the process was started with `run --control`. A narrow
    /// terminal omits columns.
    Top(top::TopArgs),
    /// Report what a running, unmodified process waits for: which locks, and where in its code
    ///
    /// Watches any process by BPF, without a restart: programs in C, C++, Rust, Go and Java, with
    /// pthread locks or their own. Prints the split of thread time, the locks with the longest
    /// waits and the stacks of their waiters, and a verdict. Replaces no lock, sends no signal, and
    /// leaves nothing in the process. Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.
    ///
    /// On a terminal, without --for, --json and --report, shows the report so far and refreshes it
    /// each second; press q to end. Otherwise ends after --for, when the process ends, or at
    /// Ctrl-C. Always reports at the end. docs/watch.md describes each figure and what cannot be
    /// seen.
    ///
    /// The exit status is 125 if the process cannot be watched.
    Watch(watch::WatchArgs),
    /// Show the settings of the locks of a running process, and change them
    ///
    /// The process must have been started with `run --control` or POUNDLOCK_CONTROL, with
    /// shfl_ron or shfl_mutex as its lock. Lists the locks that threads have waited for, with the
    /// settings by which the next thread will wait. LOCK and SETTINGS change the settings of some:
    /// `poundlock control -p PID cache patience=0`; threads that wait already finish by the earlier
    /// ones. `default` undoes that. docs/control.md describes the columns.
    Control(control::ControlArgs),
    /// Find the settings of a program's locks that serve it best, and write them as rules
    ///
    /// Runs the program once with statistics to find the locks for which its threads wait. Then
    /// runs it again and again, with other settings of these locks, with another algorithm for one
    /// of them where a rule can give it, with its own locks and with the present settings in random
    /// order, and drops what is worse. The best settings are compared with the present ones in
    /// further runs. If they are better with 95 % confidence, the rules are written to a file for
    /// `run --rules`, with the evidence in comments; otherwise nothing is written.
    ///
    /// --pid does the same in a running process, in short windows of time, and returns all settings
    /// to those of before, unless --keep is given. docs/tune.md describes the method.
    ///
    /// The exit status is 0 whether something helps or not, 130 after an interrupt, and 125 if the
    /// program fails.
    Tune(tune::TuneArgs),
    /// List the locks, or describe some: order, sizes, settings, paper
    ///
    /// Without names, prints a line per lock: its name, its size, its default way of waiting, and
    /// the order in which waiters acquire it.
    List(list::ListArgs),
    /// Check whether a program's locks can be replaced
    ///
    /// Reads the program and the libraries that it is linked with, and executes neither. The exit
    /// status is 0 if the locks can be replaced, 1 if not, and 125 if the check itself fails.
    Doctor(doctor::DoctorArgs),
    /// Measure locks with the workloads of their papers
    ///
    /// Threads acquire and release one lock repeatedly. Every run is a separate process. Each
    /// repeat runs every lock with every number of threads once, starting with another lock than
    /// the previous repeat. Prints medians of throughput, the ratio to the C library's mutex in the
    /// same repeat, fairness, and the cost of hand-overs; docs/benchmarks.md describes each figure.
    ///
    /// The exit status is 1 if any run failed or timed out, or if a lock violated mutual exclusion.
    Bench(bench::args::BenchArgs),
    /// Internal: one run of bench
    #[command(hide = true)]
    BenchWorker { job: String },
    /// Run locks on a simulated machine of up to 1,024 CPUs
    ///
    /// The shipped code of the locks runs on a model of a cache-coherent machine with an operating
    /// system; docs/simulator.md describes the model. The exit status is 1 if any simulation
    /// failed, or if a lock violated mutual exclusion.
    Sim(sim::args::SimArgs),
    /// Internal: one simulation of sim
    #[command(hide = true)]
    SimWorker { job: String },
    /// Internal: a picture of the documents, from its description as JSON
    #[command(hide = true)]
    Draw { description: String },
    /// Show which CPUs share a core, an L3 cache, a die, a NUMA node, a socket
    Topo(topo::TopoArgs),
    /// Measure the cache-line latency between each pair of CPUs
    ///
    /// Two threads on two CPUs pass a word back and forth by compare-and-swap; the latency is half
    /// of a round trip. With --json, results are saved while the measurement runs. If it is
    /// interrupted, the exit status is 130, and the same command resumes. The machine should be
    /// otherwise idle.
    Latency(latency::LatencyArgs),
    /// Find the shortest closed tour over the CPUs, for locks that hand over along a route
    ///
    /// Without --matrix, shows the route that locks use on this machine: a saved one, or one
    /// derived from the topology.
    Route(route::RouteArgs),
    /// Print a script that completes poundlock's commands and options in a shell
    ///
    /// docs/install.md lists the files that shells read. Packages install them.
    Completions(completions::CompletionsArgs),
}

/// Runs a command. Returns the exit status.
pub fn dispatch(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(args) => Err(run::run(&args)),
        Command::Stat(args) => stat::stat(&args),
        Command::Profile(args) => profile::profile(&args),
        Command::Report(args) => report::report(&args),
        Command::Top(args) => top::top(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Watch(args) => watch::watch(&args),
        Command::Control(args) => control::control(&args),
        Command::Tune(args) => tune::tune(&args),
        Command::List(args) => list::list(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::BenchWorker { job } => bench::worker(&job),
        Command::Sim(args) => sim::sim(&args),
        Command::SimWorker { job } => sim::worker(&job),
        Command::Draw { description } => draw::draw(&description),
        Command::Topo(args) => topo::topo(&args),
        Command::Latency(args) => latency::latency(&args),
        Command::Route(args) => route::route(&args),
        Command::Completions(args) => completions::completions(&args),
    }
}
