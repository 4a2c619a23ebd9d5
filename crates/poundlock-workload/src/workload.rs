//! The description of a benchmark, which the native benchmark and the simulator run.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An error in a workload. Displays as one line that names the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError(pub String);

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WorkloadError {}

fn error<T>(message: impl fmt::Display) -> Result<T, WorkloadError> {
    Err(WorkloadError(message.to_string()))
}

/// A benchmark: threads that acquire one lock repeatedly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The paper and section that it reproduces.
    pub source: String,
    /// The accesses of the critical section.
    pub section: Section,
    /// Sets of threads. Threads are distributed over them by their shares.
    pub classes: Vec<Class>,
    /// Whether the lock is a readers-writer lock, which operations that only read acquire as
    /// readers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub readers: bool,
    /// The placement of the threads.
    #[serde(default)]
    pub placement: Placement,
    /// The numbers of threads per CPU that it is meant for; empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads_per_cpu: Vec<usize>,
    /// Every n-th acquisition of each thread is timed.
    pub timed: u32,
    /// The random seed.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

// By reference, as serde requires.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn default_seed() -> u64 {
    1
}

/// A critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Section {
    /// No accesses.
    None,
    /// Increments each of an array of 4-byte integers.
    Words {
        /// The number of integers.
        words: u32,
    },
    /// Looks up, inserts or removes a key of an AVL tree.
    Map {
        /// Keys are below this; half of them are present at first.
        keys: u32,
        /// Inserts and removes per 10,000 operations.
        writes: u32,
    },
    /// Looks up a key of a hash table with chains, or moves an entry to another key.
    Hash {
        /// Keys are below this; half of them are present at first.
        keys: u32,
        /// The number of chains.
        buckets: u32,
        /// Moves per 10,000 operations.
        writes: u32,
    },
}

/// A set of threads with the same behaviour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// The number of threads of this class in each round of the distribution.
    #[serde(default = "one")]
    pub share: u32,
    /// Computation under the lock, in addition to the section's accesses.
    #[serde(default)]
    pub inside: Work,
    /// Computation between an unlock and the next lock.
    #[serde(default)]
    pub outside: Work,
    /// The threads' nice value.
    #[serde(default)]
    pub nice: i32,
    /// Each thread's weight for locks that keep shares; by default that of its nice value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Makes the class a tenant of this weight, for locks that keep shares by group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<u32>,
    /// Makes the class a control group with a limit of its CPU time; simulated machines only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_max: Option<CpuMax>,
}

/// A control group's limit in microseconds, as cgroup v2's cpu.max.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuMax {
    /// CPU time of all threads together in each period.
    pub quota: u64,
    /// The length of a period.
    pub period: u64,
}

fn one() -> u32 {
    1
}

impl Default for Class {
    fn default() -> Class {
        Class {
            share: 1,
            inside: Work::default(),
            outside: Work::default(),
            nice: 0,
            weight: None,
            tenant: None,
            cpu_max: None,
        }
    }
}

/// Computation that accesses no shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// The amount; 0 is none.
    pub length: u64,
    /// The unit of `length`.
    pub unit: Unit,
    /// Each amount is uniformly distributed over `length` ± this fraction of it; from 0 to 1.
    #[serde(default)]
    pub spread: f64,
}

/// The unit of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Steps of a pseudo-random number generator, each a multiplication that depends on the one
    /// before.
    #[default]
    Steps,
    /// Time by the clock: a thread that loses the CPU computes less.
    Nanoseconds,
}

/// The placement of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Not bound.
    #[default]
    Free,
    /// One thread per CPU: all cores of a socket, then the next socket; then start over.
    FirstFill,
    /// One thread per CPU, each on the next socket; then start over.
    RoundRobin,
}

const PARTS: u32 = 10_000;
/// The most keys, buckets or words, so that the data take a few gibibytes at most.
const MOST: u32 = 1 << 24;
/// The largest weight of a thread or a tenant: larger than the scheduler's.
const MOST_WEIGHT: u32 = 1 << 20;
const LONGEST_NS: u64 = 10_000_000_000;
/// The most threads per CPU.
const MOST_PER_CPU: usize = 1024;
/// The kernel's limits in microseconds: the least quota or period, and the longest period.
const LEAST_CPU_MAX: u64 = 1_000;
const LONGEST_PERIOD: u64 = 1_000_000;

impl Workload {
    /// Parses a description.
    pub fn from_toml(text: &str) -> Result<Workload, WorkloadError> {
        let workload: Workload =
            toml::from_str(text).map_err(|wrong| WorkloadError(one_line(text, &wrong)))?;
        workload.check()?;
        Ok(workload)
    }

    /// Checks that it can run.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.section.check()?;
        if self.readers && !matches!(self.section, Section::Map { .. } | Section::Hash { .. }) {
            return error("readers: every operation of this section writes");
        }
        if self.classes.is_empty() {
            return error("classes: a workload needs at least one");
        }
        if self.classes.iter().any(|class| class.share == 0 || class.share > 1024) {
            return error("share: not a number from 1 to 1024");
        }
        if let Some(wrong) =
            self.threads_per_cpu.iter().find(|threads| !(1..=MOST_PER_CPU).contains(*threads))
        {
            return error(format!(
                "threads_per_cpu: {wrong} is not a number from 1 to {MOST_PER_CPU}"
            ));
        }
        if self.timed == 0 {
            return error("timed: not a number of at least 1");
        }
        self.classes.iter().try_for_each(Class::check)
    }

    /// Checks that it can run natively.
    pub fn check_native(&self) -> Result<(), WorkloadError> {
        if self.classes.iter().any(|class| class.cpu_max.is_some()) {
            return error(
                "cpu_max: only poundlock sim creates control groups; natively, run the whole benchmark in one",
            );
        }
        self.check()
    }

    /// The class of thread `index`: each round has as many threads of a class as its share.
    pub fn class_of(&self, index: usize) -> usize {
        let round: u64 = self.classes.iter().map(|class| u64::from(class.share)).sum();
        let mut place = index as u64 % round;
        for (number, class) in self.classes.iter().enumerate() {
            match place.checked_sub(class.share.into()) {
                Some(rest) => place = rest,
                None => return number,
            }
        }
        unreachable!("the place is within the round")
    }
}

/// Formats a parse error as one line, with its place.
fn one_line(text: &str, wrong: &toml::de::Error) -> String {
    let line =
        wrong.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let what = wrong.message().lines().collect::<Vec<_>>().join(" ");
    line.map_or(what.clone(), |line| format!("line {line}: {what}"))
}

impl Section {
    fn check(&self) -> Result<(), WorkloadError> {
        let (sizes, writes) = match *self {
            Section::None => (vec![], 0),
            Section::Words { words } => (vec![("words", words, 1)], 0),
            Section::Map { keys, writes } => (vec![("keys", keys, 2)], writes),
            Section::Hash { keys, buckets, writes } => {
                (vec![("keys", keys, 2), ("buckets", buckets, 1)], writes)
            }
        };
        for (name, size, least) in sizes {
            if !(least..=MOST).contains(&size) {
                return error(format!("{name}: {size} is not a number from {least} to {MOST}"));
            }
        }
        if writes > PARTS {
            error(format!("writes: {writes} is not from 0 to {PARTS}"))
        } else {
            Ok(())
        }
    }
}

impl Class {
    fn check(&self) -> Result<(), WorkloadError> {
        for (name, work) in [("inside", self.inside), ("outside", self.outside)] {
            if !(0.0..=1.0).contains(&work.spread) {
                return error(format!("{name}: a spread of {} is not from 0 to 1", work.spread));
            }
            if work.length > LONGEST_NS {
                return error(format!("{name}: {} is longer than {LONGEST_NS}", work.length));
            }
        }
        for (name, weight) in [("weight", self.weight), ("tenant", self.tenant)] {
            if weight.is_some_and(|weight| !(1..=MOST_WEIGHT).contains(&weight)) {
                return error(format!("{name}: not a weight from 1 to {MOST_WEIGHT}"));
            }
        }
        if let Some(CpuMax { quota, period }) = self.cpu_max
            && (quota < LEAST_CPU_MAX || !(LEAST_CPU_MAX..=LONGEST_PERIOD).contains(&period))
        {
            return error(format!(
                "cpu_max: {quota} of {period} us: a quota is at least {LEAST_CPU_MAX}, a period from that to {LONGEST_PERIOD}"
            ));
        }
        if (-20..=19).contains(&self.nice) {
            Ok(())
        } else {
            error(format!("nice: {} is not a number from -20 to 19", self.nice))
        }
    }

    /// A thread's weight, where nice 0 has 1024. CFS's table rounds this formula.
    pub fn weight(&self) -> f64 {
        self.weight.map_or(1024.0 / 1.25f64.powi(self.nice), f64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CFL: &str = r#"
        name = "cfl"
        source = "CFL (PPoPP'24) section 4.6"
        timed = 1
        section = { kind = "none" }

        [[classes]]
        share = 2
        inside = { length = 1000, unit = "nanoseconds" }

        [[classes]]
        inside = { length = 10000, unit = "nanoseconds", spread = 0.15 }
        nice = -5
    "#;

    #[test]
    fn a_written_description_parses_to_the_same() {
        let workload = Workload::from_toml(CFL).expect("a workload");
        let text = toml::to_string(&workload).expect("it can be written");
        assert_eq!(Workload::from_toml(&text), Ok(workload));
    }

    #[test]
    fn threads_are_distributed_by_shares() {
        let workload = Workload::from_toml(CFL).expect("a workload");
        let classes: Vec<usize> = (0..7).map(|index| workload.class_of(index)).collect();
        assert_eq!(classes, [0, 0, 1, 0, 0, 1, 0]);
    }

    #[test]
    fn errors_are_one_line_that_names_the_key() {
        for (from, to, words) in [
            ("share = 2", "share = 0", "share"),
            ("share = 2", "shares = 2", "line 8: unknown field `shares`"),
            ("timed = 1", "timed = 0", "timed"),
            ("timed = 1", "timed = 1\nreaders = true", "readers"),
            ("\"none\"", "\"tree\"", "`tree`"),
            ("kind = \"none\"", "kind = \"map\", keys = 1, writes = 0", "keys: 1"),
            ("kind = \"none\"", "kind = \"hash\", keys = 8, buckets = 0, writes = 0", "buckets: 0"),
            ("kind = \"none\"", "kind = \"map\", keys = 8, writes = 10001", "writes: 10001"),
            ("0.15", "1.5", "spread of 1.5"),
            ("nice = -5", "nice = -21", "nice: -21"),
            ("nice = -5", "weight = 0", "weight: not"),
            ("nice = -5", "tenant = 2000000", "tenant: not"),
            ("timed = 1", "timed = 1\nthreads_per_cpu = [1, 0]", "threads_per_cpu: 0"),
            ("nice = -5", "cpu_max = { quota = 999, period = 100000 }", "cpu_max: 999"),
            (
                "nice = -5",
                "cpu_max = { quota = 5000, period = 2000000 }",
                "cpu_max: 5000 of 2000000",
            ),
            ("length = 1000,", "length = 10000000001,", "inside: 10000000001"),
        ] {
            let message =
                Workload::from_toml(&CFL.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(message.contains(words) && message.lines().count() == 1, "{to}: {message}");
        }
    }

    #[test]
    fn a_weight_is_that_of_the_scheduler() {
        let weight = |nice| Class { nice, ..Class::default() }.weight();
        // The kernel's table, at its ends and around its middle.
        for (nice, table) in [(-20, 88761.0), (-5, 3121.0), (0, 1024.0), (5, 335.0), (19, 15.0)] {
            assert!((weight(nice) / table - 1.0).abs() < 0.08, "nice {nice}: {}", weight(nice));
        }
    }
}
