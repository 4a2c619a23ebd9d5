//! What a benchmark does, as data: the one description that the native benchmark runs, prints with its figures, and
//! that the simulator can run as well.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is wrong with a workload or with running it. Displays as one line that names it.
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

/// One benchmark: threads that take one lock again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// The paper and section that it is from.
    pub source: String,
    /// The data that holders access.
    pub section: Section,
    /// What sets of threads there are; threads are dealt to them by their shares.
    pub classes: Vec<Class>,
    /// Whether the lock is a readers-writer lock, which operations that only read take as readers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub readers: bool,
    /// Where the threads run.
    #[serde(default)]
    pub placement: Placement,
    /// How many threads it is meant for, as so many for each CPU; empty: whoever runs it says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads_per_cpu: Vec<usize>,
    /// Each thread's acquisitions of which the times are taken: every one (1), every second (2), ...
    pub timed: u32,
    /// What all that is drawn is drawn from.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

// By reference, since serde wants it so.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn default_seed() -> u64 {
    1
}

/// The accesses of the critical section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Section {
    /// None.
    None,
    /// Increments each of an array of 4-byte integers.
    Words {
        /// How many there are.
        words: u32,
    },
    /// Looks a key up in an AVL tree, inserts it or removes it.
    Map {
        /// Keys are drawn below this; half of them are there at first.
        keys: u32,
        /// Of 10,000 operations, how many insert or remove.
        writes: u32,
    },
    /// Looks a key up in a hash table with chains, or moves an entry to another key.
    Hash {
        /// Keys are drawn below this; half of them are there at first.
        keys: u32,
        /// The number of chains.
        buckets: u32,
        /// Of 10,000 operations, how many move.
        writes: u32,
    },
}

/// A set of threads that do the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// How many threads of a round of dealing are of this class.
    #[serde(default = "one")]
    pub share: u32,
    /// What is computed under the lock, besides the section's accesses.
    #[serde(default)]
    pub inside: Work,
    /// What is computed between an unlock and the next lock.
    #[serde(default)]
    pub outside: Work,
    /// The threads' nice value.
    #[serde(default)]
    pub nice: i32,
    /// Each thread's weight for the locks that keep shares, by their API; that of its nice value unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Makes the class a tenant of this weight, for the locks that keep shares by group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<u32>,
    /// Makes the class a control group that may use so much CPU time: only simulated systems have such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_max: Option<CpuMax>,
}

/// A control group's limit, in microseconds as cgroup v2's cpu.max has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuMax {
    /// CPU time, of all threads together, in each period.
    pub quota: u64,
    /// How long that is.
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

/// Computing that touches no shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// How much; 0 is none.
    pub length: u64,
    /// Of what.
    pub unit: Unit,
    /// Each time is drawn evenly from `length` less this part of it to `length` and this part more. From 0 to 1.
    #[serde(default)]
    pub spread: f64,
}

/// What work is measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Steps of a pseudo-random number generator, each a multiplication that depends on the one before.
    #[default]
    Steps,
    /// Time, by the clock: a thread that is not running meanwhile does less.
    Nanoseconds,
}

/// Where threads run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Where the operating system likes.
    #[default]
    Free,
    /// Each on a CPU of its own: all of a socket's cores first, then the next socket's; then begin again.
    FirstFill,
    /// Each on a CPU of its own, the next one on the next socket; then begin again.
    RoundRobin,
}

const PARTS: u32 = 10_000;
/// Of keys, buckets and words, so that the data stay below a few gibibytes.
const MOST: u32 = 1 << 24;
/// Of a thread or a tenant: more than the scheduler knows.
const MOST_WEIGHT: u32 = 1 << 20;
const LONGEST_NS: u64 = 10_000_000_000;
/// Of threads for each CPU.
const MOST_PER_CPU: usize = 1024;
/// As the kernel allows, in microseconds: of a quota and of a period the least, of a period the most.
const LEAST_CPU_MAX: u64 = 1_000;
const LONGEST_PERIOD: u64 = 1_000_000;

impl Workload {
    /// Reads a description.
    pub fn from_toml(text: &str) -> Result<Workload, WorkloadError> {
        let workload: Workload = toml::from_str(text).map_err(|wrong| WorkloadError(one_line(text, &wrong)))?;
        workload.check()?;
        Ok(workload)
    }

    /// Whether it can be run.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.section.check()?;
        if self.readers && !matches!(self.section, Section::Map { .. } | Section::Hash { .. }) {
            return error("readers: no operation of this section only reads");
        }
        if self.classes.is_empty() {
            return error("classes: a workload needs at least one");
        }
        if self.classes.iter().any(|class| class.share == 0 || class.share > 1024) {
            return error("share: not a number from 1 to 1024");
        }
        if let Some(wrong) = self.threads_per_cpu.iter().find(|threads| !(1..=MOST_PER_CPU).contains(*threads)) {
            return error(format!("threads_per_cpu: {wrong} is not a number from 1 to {MOST_PER_CPU}"));
        }
        if self.timed == 0 {
            return error("timed: not a number of at least 1");
        }
        self.classes.iter().try_for_each(Class::check)
    }

    /// Whether it can be run on this machine.
    pub fn check_native(&self) -> Result<(), WorkloadError> {
        if self.classes.iter().any(|class| class.cpu_max.is_some()) {
            return error("cpu_max: only poundlock sim makes control groups; natively, run the whole benchmark in one");
        }
        self.check()
    }

    /// The class of thread `index`: each round deals as many to a class as its share says.
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

/// toml's explanation with its place, without its drawing.
fn one_line(text: &str, wrong: &toml::de::Error) -> String {
    let line = wrong.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let what = wrong.message().lines().collect::<Vec<_>>().join(" ");
    line.map_or(what.clone(), |line| format!("line {line}: {what}"))
}

impl Section {
    fn check(&self) -> Result<(), WorkloadError> {
        let (sizes, writes) = match *self {
            Section::None => (vec![], 0),
            Section::Words { words } => (vec![("words", words, 1)], 0),
            Section::Map { keys, writes } => (vec![("keys", keys, 2)], writes),
            Section::Hash { keys, buckets, writes } => (vec![("keys", keys, 2), ("buckets", buckets, 1)], writes),
        };
        for (name, size, least) in sizes {
            if !(least..=MOST).contains(&size) {
                return error(format!("{name}: {size} is not a number from {least} to {MOST}"));
            }
        }
        if writes > PARTS { error(format!("writes: {writes} of {PARTS} operations are too many")) } else { Ok(()) }
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

    /// A thread's weight, relative to nice 0 as 1024. CFS's table rounds the formula of the nice values.
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
    fn a_description_survives_being_written() {
        let workload = Workload::from_toml(CFL).expect("a workload");
        let text = toml::to_string(&workload).expect("it can be written");
        assert_eq!(Workload::from_toml(&text), Ok(workload));
    }

    #[test]
    fn threads_are_dealt_by_shares() {
        let workload = Workload::from_toml(CFL).expect("a workload");
        let classes: Vec<usize> = (0..7).map(|index| workload.class_of(index)).collect();
        assert_eq!(classes, [0, 0, 1, 0, 0, 1, 0]);
    }

    #[test]
    fn what_is_wrong_is_named_in_one_line() {
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
            ("nice = -5", "cpu_max = { quota = 5000, period = 2000000 }", "cpu_max: 5000 of 2000000"),
            ("length = 1000,", "length = 10000000001,", "inside: 10000000001"),
        ] {
            let message = Workload::from_toml(&CFL.replacen(from, to, 1)).expect_err(to).to_string();
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
