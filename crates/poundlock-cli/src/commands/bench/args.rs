//! The options of `bench`.

use crate::options::{OutputArgs, PlacementArgs, seconds, time};
use crate::threads::Threads;
use clap::{Args, Subcommand};
use poundlock_bench::{Class, Placement, Section, Unit, Work, Workload};
use poundlock_topology::input;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub workload: Kind,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Kind {
    /// A key-value map: an AVL tree under one lock (CNA section 7.1.1, figures 6 and 8 to 10)
    Map {
        /// Number of keys, half of which are in the map at the start
        #[arg(long, value_name = "N", default_value_t = 1024)]
        keys: u32,
        /// Percentage of operations that insert or remove, half each; the others look up
        #[arg(long, value_name = "PERCENT", default_value = "20", value_parser = percent)]
        updates: u32,
        /// Work between operations, in steps of a pseudo-random number generator, a few ns each
        #[arg(long, value_name = "STEPS", default_value_t = 0)]
        work: u64,
        /// Use readers-writer locks, which lookups acquire as readers; -l then names such locks
        #[arg(long)]
        rw: bool,
        #[command(flatten)]
        common: Common,
    },
    /// A hash table under one lock (ShflLock section 6.3, figure 11)
    Hash {
        /// Number of keys, half of which are in the table
        #[arg(long, value_name = "N", default_value_t = 8192)]
        keys: u32,
        /// Number of chains
        #[arg(long, value_name = "N", default_value_t = 1024)]
        buckets: u32,
        /// Percentage of operations that move an entry to another key; the others look up
        #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
        writes: u32,
        /// Use readers-writer locks, which lookups acquire as readers; -l then names such locks
        /// (figure 11 (g) and (h))
        #[arg(long)]
        rw: bool,
        #[command(flatten)]
        common: Common,
    },
    /// An array that is incremented under a lock, with a pause outside (RON section 6.2.2,
    /// algorithm 4, figures 5 to 10)
    Ron {
        /// Number of integers that the critical section increments
        #[arg(long, value_name = "N", default_value_t = 100)]
        words: u32,
        /// Time between critical sections, randomised by up to 15 %, such as 10us, 400us
        #[arg(long, value_name = "TIME", default_value = "10us", value_parser = time)]
        outside: u64,
        #[command(flatten)]
        common: Common,
    },
    /// Sets of threads with different hold times (CFL section 4.6, figure 8; SCL)
    Cfl {
        /// Hold time of each set, such as 10us,100us
        #[arg(
            long, value_name = "TIME,...", default_value = "10us,100us", value_parser = time,
            value_delimiter = ','
        )]
        hold: Vec<u64>,
        /// Time between critical sections, for all sets
        #[arg(long, value_name = "TIME", default_value = "0", value_parser = time)]
        outside: u64,
        /// Threads are dealt to the sets in rounds: number per round of each set [default: 1 each]
        #[arg(long, value_name = "N,...", value_delimiter = ',')]
        shares: Vec<u32>,
        /// Nice value of the threads of each set; negative values need privileges [default: 0]
        #[arg(long, value_name = "NICE,...", value_delimiter = ',', allow_hyphen_values = true)]
        nice: Vec<i32>,
        /// Weight of the threads of each set, for locks with shares [default: by nice value]
        #[arg(long, value_name = "WEIGHT,...", value_delimiter = ',')]
        weights: Vec<u32>,
        /// Make each set a tenant of this weight (1024 is normal), for locks with shares by group
        #[arg(long, value_name = "WEIGHT,...", value_delimiter = ',')]
        tenants: Vec<u32>,
        #[command(flatten)]
        common: Common,
    },
    /// An empty critical section in a loop (Bueso, figure 2 and table 2)
    Loop {
        #[command(flatten)]
        common: Common,
    },
    /// A workload from a file (see bench/workloads/*.toml)
    File {
        /// Description of the workload, in TOML
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        common: Common,
    },
}

/// The options of every workload.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Locks, comma-separated; KEY=VALUE belongs to the lock before it: mcs,wait=spin,cna names
    /// two. May be repeated [default: all locks]
    #[arg(short, long = "locks", value_name = "SPEC[,SPEC...]")]
    pub locks: Vec<String>,
    /// Numbers of threads: N,... or N..M for N, 2N, 4N, ... up to M; Nx is N times the number of
    /// CPUs [default: those of the workload, or powers of two up to the number of CPUs, and twice
    /// that number]
    #[arg(short, long, value_name = "N[x],...|N[x]..M[x]", value_parser = Threads::parse)]
    pub threads: Option<Threads>,
    /// Measured time of each run
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub seconds: Duration,
    /// Time of each run before the measurement
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = seconds)]
    pub warmup: Duration,
    /// End each run after N acquisitions by all threads instead of by time
    #[arg(long, value_name = "N", conflicts_with_all = ["seconds", "warmup"])]
    pub acquisitions: Option<u64>,
    /// Number of runs of each lock with each number of threads
    #[arg(
        short = 'n', long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub repeats: u32,
    /// Kill a run that takes longer, and count it as failed [default: a minute plus ten times the
    /// expected time; none with --acquisitions]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub placement: PlacementArgs,
    /// Time only every Nth acquisition of each thread, since timing lengthens the critical section
    /// [default: 1 for ron and cfl, 16 for the others]
    #[arg(long, value_name = "N")]
    pub timed: Option<u32>,
    /// Random seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Omit the runs with the C library's mutex, and the ratios
    #[arg(long)]
    pub no_native: bool,
    /// Print the description of the workload as TOML and exit
    #[arg(long)]
    pub describe: bool,
}

/// RON's non-critical section takes a random 0.85 to 1.15 of its length (algorithm 4, line 9).
const RON_SPREAD: f64 = 0.15;
/// Every how many acquisitions times are taken where critical sections are short.
const SPARSE: u32 = 16;

impl Kind {
    /// The options that all workloads share.
    pub fn common(&self) -> &Common {
        match self {
            Kind::Map { common, .. }
            | Kind::Hash { common, .. }
            | Kind::Ron { common, .. }
            | Kind::Cfl { common, .. }
            | Kind::Loop { common }
            | Kind::File { common, .. } => common,
        }
    }

    /// Builds the workload from the options. The caller checks it.
    pub fn workload(&self) -> Result<Workload, String> {
        let workload = match self {
            Kind::Map { keys, updates, work, rw, .. } => {
                let section = Section::Map { keys: *keys, writes: *updates };
                let outside = Work { length: *work, unit: Unit::Steps, spread: 0.0 };
                let workload =
                    of_one_class("map", "CNA (EuroSys'19) section 7.1.1", section, outside);
                Workload { readers: *rw, ..workload }
            }
            Kind::Hash { keys, buckets, writes, rw, .. } => {
                let section = Section::Hash { keys: *keys, buckets: *buckets, writes: *writes };
                let workload = of_one_class(
                    "hash",
                    "ShflLock (SOSP'19) section 6.3",
                    section,
                    Work::default(),
                );
                Workload { readers: *rw, placement: Placement::FirstFill, ..workload }
            }
            Kind::Ron { words, outside, .. } => {
                let section =
                    if *words > 0 { Section::Words { words: *words } } else { Section::None };
                let outside =
                    Work { length: *outside, unit: Unit::Nanoseconds, spread: RON_SPREAD };
                let workload = of_one_class(
                    "ron",
                    "RON (OSDI'23) section 6.2.2, algorithm 4",
                    section,
                    outside,
                );
                Workload { placement: Placement::FirstFill, timed: 1, ..workload }
            }
            Kind::Cfl { hold, outside, shares, nice, weights, tenants, .. } => Workload {
                classes: cfl_classes(hold, *outside, shares, nice, [weights, tenants])?,
                timed: 1,
                ..of_one_class("cfl", "CFL (PPoPP'24) section 4.6", Section::None, Work::default())
            },
            Kind::Loop { .. } => Workload {
                placement: Placement::FirstFill,
                ..of_one_class(
                    "loop",
                    "Bueso (CACM'15) figure 2, table 2",
                    Section::None,
                    Work::default(),
                )
            },
            Kind::File { file, .. } => {
                let text = input::text(file).map_err(|error| crate::failure::reason(&error));
                text.and_then(|text| Workload::from_toml(&text).map_err(|wrong| wrong.to_string()))
                    .map_err(|wrong| format!("'{}': {wrong}", file.display()))?
            }
        };
        Ok(self.common().apply(workload))
    }
}

impl Common {
    fn apply(&self, workload: Workload) -> Workload {
        let workload = self.placement.apply(workload);
        Workload {
            timed: self.timed.unwrap_or(workload.timed),
            seed: self.seed.unwrap_or(workload.seed),
            ..workload
        }
    }
}

fn of_one_class(name: &str, source: &str, section: Section, outside: Work) -> Workload {
    Workload {
        name: name.to_owned(),
        source: source.to_owned(),
        section,
        classes: vec![Class { outside, ..Class::default() }],
        readers: false,
        placement: Placement::Free,
        threads_per_cpu: vec![],
        timed: SPARSE,
        seed: 1,
    }
}

fn cfl_classes(
    hold: &[u64],
    outside: u64,
    shares: &[u32],
    nice: &[i32],
    [weights, tenants]: [&[u32]; 2],
) -> Result<Vec<Class>, String> {
    let lengths = [shares.len(), nice.len(), weights.len(), tenants.len()];
    for (name, given) in ["--shares", "--nice", "--weights", "--tenants"].into_iter().zip(lengths) {
        if given != 0 && given != hold.len() {
            return Err(format!(
                "{name} has {given} values, and --hold has {}: give one value per set",
                hold.len()
            ));
        }
    }
    let lasting = |length| Work { length, unit: Unit::Nanoseconds, spread: 0.0 };
    let class = |(index, hold): (usize, &u64)| Class {
        share: shares.get(index).copied().unwrap_or(1),
        inside: lasting(*hold),
        outside: lasting(outside),
        nice: nice.get(index).copied().unwrap_or(0),
        weight: weights.get(index).copied(),
        tenant: tenants.get(index).copied(),
        cpu_max: None,
    };
    Ok(hold.iter().enumerate().map(class).collect())
}

/// Parses a percentage as parts of 10,000.
fn percent(text: &str) -> Result<u32, String> {
    let parsed = text.parse().ok().filter(|percent: &f64| (0.0..=100.0).contains(percent));
    parsed
        .map(|percent| (percent * 100.0).round() as u32)
        .ok_or("not a number from 0 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn percents_have_two_decimals() {
        assert_eq!(["0", "0.5", "20", "100"].map(percent), [Ok(0), Ok(50), Ok(2_000), Ok(10_000)]);
        for wrong in ["", "-1", "100.1", "NaN", "x"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
